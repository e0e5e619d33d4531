// SPDX-License-Identifier: Apache-2.0
import WireGuard

/// Hands out the addresses of one prefix: the lowest free one, and never the first (the network,
/// or the subnet-router anycast address of RFC 4291 section 2.6.1), the second (the hub) or, in
/// IPv4, the last (broadcast).
struct AddressPool: Equatable, Sendable {
    let prefix: Prefix
    private var used: Set<IPAddress> = []
    /// The lowest number that is not used.
    private var lowest: UInt64 = Self.first

    /// Number of the first address for devices; 1 is the hub's.
    private static let first: UInt64 = 2
    /// A larger pool is used up to here only.
    private static let largest: UInt64 = 1 << 32

    init(_ prefix: Prefix) { self.prefix = prefix }

    /// nil: the prefix has no room for the hub and one device.
    var hubAddress: IPAddress? { capacity > Self.first ? address(1) : nil }

    /// Numbers below it may be given to hub and devices.
    private var capacity: UInt64 {
        let bits = prefix.address.bitWidth - prefix.length
        let all = bits >= 32 ? Self.largest : 1 << UInt64(bits)
        if case .v4 = prefix.address, bits > 0 { return all - 1 }
        return all
    }

    func contains(_ address: IPAddress) -> Bool {
        address.bitWidth == prefix.address.bitWidth
            && address.masked(to: prefix.length) == prefix.address
    }

    /// The lowest that nobody has; nil: all are taken.
    var free: IPAddress? { lowest < capacity ? address(lowest) : nil }

    /// Nobody else gets `address` from now on.
    mutating func take(_ address: IPAddress) {
        used.insert(address)
        while lowest < capacity, used.contains(self.address(lowest)) { lowest += 1 }
    }

    mutating func release(_ address: IPAddress) {
        guard used.remove(address) != nil, let number = number(of: address) else { return }
        lowest = min(lowest, max(number, Self.first))
    }

    private func address(_ number: UInt64) -> IPAddress {
        switch prefix.address {
        case .v4(let bits): .v4(bits + UInt32(number))
        // The host part is at least as wide as any number in use.
        case .v6(let high, let low): .v6(high: high, low: low | number)
        }
    }

    /// nil: none this pool would give.
    private func number(of address: IPAddress) -> UInt64? {
        guard contains(address) else { return nil }
        switch (address, prefix.address) {
        case (.v4(let bits), .v4(let base)): return UInt64(bits - base)
        case (.v6(let high, let low), .v6(let baseHigh, let base)):
            return high == baseHigh && low - base < Self.largest ? low - base : nil
        default: return nil
        }
    }
}

extension Prefix {
    /// Whether one of them holds the other.
    func overlaps(_ other: Prefix) -> Bool {
        guard address.bitWidth == other.address.bitWidth else { return false }
        let common = min(length, other.length)
        return address.masked(to: common) == other.address.masked(to: common)
    }

    func contains(_ address: IPAddress) -> Bool { overlaps(Prefix(alone: address)) }

    /// The address and nothing else.
    init(alone address: IPAddress) {
        // Its full width is in range.
        self = Prefix(address: address, length: address.bitWidth)!
    }
}
