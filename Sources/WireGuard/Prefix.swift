// SPDX-License-Identifier: Apache-2.0

/// A set of addresses with a common start: what AllowedIPs consists of. Host bits are cleared on
/// the way in, so two texts for one set are equal (C19).
public struct Prefix: Hashable, Sendable, CustomStringConvertible {
    public let address: IPAddress
    public let length: UInt8

    public init?(address: IPAddress, length: UInt8) {
        guard length <= address.bitWidth else { return nil }
        self.address = address.masked(to: length)
        self.length = length
    }

    /// `address/length`, or an address alone for itself only. No zone, no name (C20).
    public init?(_ text: Span<UInt8>) {
        guard let slash = text.lastIndex(of: UInt8(ascii: "/")) else {
            guard let address = IPAddress(text) else { return nil }
            self.init(address: address, length: address.bitWidth)
            return
        }
        let digits = text.extracting((slash + 1)...)
        // A leading zero is refused, as netip.ParsePrefix of the reference does.
        guard let address = IPAddress(text.extracting(..<slash)),
            let length = parseDecimal(digits, maximum: 128),
            digits.count == 1 || digits[0] != 0x30
        else { return nil }
        self.init(address: address, length: UInt8(length))
    }

    public init?(_ text: String) {
        let text = [UInt8](text.utf8)
        self.init(text.span)
    }

    public func append(to text: inout [UInt8]) {
        address.append(to: &text)
        text.append(UInt8(ascii: "/"))
        text.append(decimal: UInt64(length))
    }

    public var description: String {
        var text: [UInt8] = []
        append(to: &text)
        return String(decoding: text, as: UTF8.self)
    }
}
