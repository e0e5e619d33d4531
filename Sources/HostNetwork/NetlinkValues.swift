// SPDX-License-Identifier: Apache-2.0
// Between the values of WireGuard and TunnelPlan and the structs of netlink.h. Unsafe code here only
// views the bytes of a local struct's array member, which Swift imports as a tuple.
import CNetlink
import TunnelPlan
import WireGuard

@unsafe func copy<Bytes>(_ source: Span<UInt8>, to target: inout Bytes) {
    unsafe withUnsafeMutableBytes(of: &target) { target in
        for index in 0..<min(source.count, target.count) { unsafe target[index] = source[index] }
    }
}

/// The characters of a C array up to its NUL.
@unsafe func string<Characters>(_ source: inout Characters) -> String {
    unsafe withUnsafeBytes(of: &source) { bytes in
        var text: [UInt8] = []
        for index in 0..<bytes.count {
            let byte = unsafe bytes[index]
            if byte == 0 { break }
            text.append(byte)
        }
        return String(decoding: text, as: UTF8.self)
    }
}

extension IPAddress {
    /// 4 or 6.
    var netlinkFamily: UInt8 {
        switch self {
        case .v4: 4
        case .v6: 6
        }
    }

    /// In network byte order.
    var netlinkBytes: [UInt8] {
        switch self {
        case .v4(let bits):
            (0..<4).map { UInt8(truncatingIfNeeded: bits >> UInt32(24 - 8 * $0)) }
        case .v6(let high, let low):
            [high, low].flatMap { word in
                (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(56 - 8 * $0)) }
            }
        }
    }

    /// From the beginning of `source`; nil for a family that is neither 4 nor 6.
    @unsafe init?<Bytes>(_ source: inout Bytes, family: UInt8) {
        func word(_ range: Range<Int>) -> UInt64 {
            unsafe withUnsafeBytes(of: &source) { bytes in
                var word: UInt64 = 0
                for index in range { word = word << 8 | UInt64(unsafe bytes[index]) }
                return word
            }
        }
        switch family {
        case 4: self = .v4(UInt32(word(0..<4)))
        case 6: self = .v6(high: word(0..<8), low: word(8..<16))
        default: return nil
        }
    }

    /// nil: none, as after a gateway that is not there.
    init?(_ address: netlink_address) {
        var address = address
        unsafe self.init(&address.bytes, family: address.family)
    }
}

extension netlink_address {
    init(_ address: IPAddress, length: UInt8) {
        self.init()
        family = address.netlinkFamily
        self.length = length
        unsafe copy(address.netlinkBytes.span, to: &bytes)
    }

    init(_ prefix: Prefix) { self.init(prefix.address, length: prefix.length) }
}

extension Prefix {
    init?(_ prefix: netlink_address) {
        guard let address = IPAddress(prefix) else { return nil }
        self.init(address: address, length: prefix.length)
    }
}

extension AddressFamily {
    var number: UInt8 {
        switch self {
        case .v4: 4
        case .v6: 6
        }
    }

    init?(number: UInt8) {
        switch number {
        case 4: self = .v4
        case 6: self = .v6
        default: return nil
        }
    }
}
