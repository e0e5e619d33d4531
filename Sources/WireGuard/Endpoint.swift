// SPDX-License-Identifier: Apache-2.0

/// Where a peer is reached: an address and a UDP port. Names of hosts are resolved elsewhere.
public struct Endpoint: Hashable, Sendable, CustomStringConvertible {
    /// The interface an IPv6 address belongs to (RFC 4007 section 11).
    public enum Zone: Hashable, Sendable {
        case index(UInt32)
        /// An interface name; whoever hands the endpoint to the system looks its index up.
        case name(String)
    }

    public let address: IPAddress
    public let port: UInt16
    public let zone: Zone?

    /// nil for a zone on an IPv4 address.
    public init?(address: IPAddress, port: UInt16, zone: Zone? = nil) {
        if case .v4 = address, zone != nil { return nil }
        self.address = address
        self.port = port
        self.zone = zone
    }

    /// `a.b.c.d:port` or `[v6%zone]:port`; also `v6%zone:port` without brackets, which is split at
    /// the last colon as `wg` does (C16).
    public init?(_ text: Span<UInt8>) {
        guard let colon = text.lastIndex(of: UInt8(ascii: ":")),
            let port = parseDecimal(text.extracting((colon + 1)...), maximum: 65535)
        else { return nil }
        var host = text.extracting(..<colon)
        var bracketed = false
        if host.count >= 2, host[0] == UInt8(ascii: "["), host[host.count - 1] == UInt8(ascii: "]")
        {
            host = host.extracting(1..<(host.count - 1))
            bracketed = true
        }
        var zone: Zone?
        if let percent = host.firstIndex(of: UInt8(ascii: "%")) {
            zone = Zone(host.extracting((percent + 1)...))
            guard zone != nil else { return nil }
            host = host.extracting(..<percent)
        }
        guard let address = IPAddress(host) else { return nil }
        if case .v4 = address, bracketed { return nil }
        self.init(address: address, port: UInt16(port), zone: zone)
    }

    public init?(_ text: String) {
        let text = [UInt8](text.utf8)
        self.init(text.span)
    }

    /// Always with brackets round an IPv6 address.
    public func append(to text: inout [UInt8]) {
        if case .v4 = address {
            address.append(to: &text)
        } else {
            text.append(UInt8(ascii: "["))
            address.append(to: &text)
            zone?.append(to: &text)
            text.append(UInt8(ascii: "]"))
        }
        text.append(UInt8(ascii: ":"))
        text.append(decimal: UInt64(port))
    }

    public var description: String {
        var text: [UInt8] = []
        append(to: &text)
        return String(decoding: text, as: UTF8.self)
    }
}

extension Endpoint.Zone {
    /// With the `%` in front.
    func append(to text: inout [UInt8]) {
        text.append(UInt8(ascii: "%"))
        switch self {
        case .index(let index): text.append(decimal: UInt64(index))
        case .name(let name): text.append(name)
        }
    }

    /// A number is an index; anything else is a name of 1–15 characters (IFNAMSIZ of if.h) that
    /// Linux would allow for an interface: no `/`, no blank; and nothing that would end it early.
    init?(_ text: Span<UInt8>) {
        if let index = parseDecimal(text, maximum: UInt64(UInt32.max)) {
            guard index > 0 else { return nil }
            self = .index(UInt32(index))
            return
        }
        guard 1...15 ~= text.count else { return nil }
        var name: [UInt8] = []
        for index in text.indices {
            let character = text[index]
            let isForbidden =
                character == UInt8(ascii: "/") || character == UInt8(ascii: "%")
                || character == UInt8(ascii: ":") || character == UInt8(ascii: "[")
                || character == UInt8(ascii: "]")
            guard 0x21...0x7E ~= character, !isForbidden else { return nil }
            name.append(character)
        }
        self = .name(String(decoding: name, as: UTF8.self))
    }
}
