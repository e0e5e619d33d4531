// SPDX-License-Identifier: Apache-2.0
// Orders, so that one difference always makes one plan, and who contains whom.
import WireGuard

extension Prefix {
    func contains(_ address: IPAddress) -> Bool {
        address.bitWidth == self.address.bitWidth && address.masked(to: length) == self.address
    }

    func contains(_ other: Prefix) -> Bool {
        length <= other.length && contains(other.address)
    }

    /// IPv4 first, then by number, the wider first.
    static func precedes(_ left: Prefix, _ right: Prefix) -> Bool {
        left.address == right.address
            ? left.length < right.length : IPAddress.precedes(left.address, right.address)
    }
}

extension IPAddress {
    static func precedes(_ left: IPAddress, _ right: IPAddress) -> Bool {
        switch (left, right) {
        case (.v4(let left), .v4(let right)): left < right
        case (.v4, .v6): true
        case (.v6, .v4): false
        case (.v6(let leftHigh, let leftLow), .v6(let rightHigh, let rightLow)):
            (leftHigh, leftLow) < (rightHigh, rightLow)
        }
    }
}

extension InterfaceAddress {
    /// The addresses on its link.
    var subnet: Prefix { Prefix(address: address, length: length)! }

    /// The route that the kernel adds to the main table with the address: for IPv4 none with
    /// length 32 (fib_add_ifaddr of net/ipv4/fib_frontend.c).
    var connectedRoute: Prefix? { address.family == .v4 && length == 32 ? nil : subnet }

    static func precedes(_ left: InterfaceAddress, _ right: InterfaceAddress) -> Bool {
        left.address == right.address
            ? left.length < right.length : IPAddress.precedes(left.address, right.address)
    }
}

extension Route {
    /// The narrower first, so that a wide route never stands without those that except from it.
    static func precedes(_ left: Route, _ right: Route) -> Bool {
        if left.destination.length != right.destination.length {
            return left.destination.length > right.destination.length
        }
        if left.destination != right.destination {
            return Prefix.precedes(left.destination, right.destination)
        }
        return (left.table, left.metric ?? 0, left.metric == nil ? 0 : 1)
            < (right.table, right.metric ?? 0, right.metric == nil ? 0 : 1)
    }
}

extension Barrier {
    static func precedes(_ left: Barrier, _ right: Barrier) -> Bool {
        if left.table != right.table { return left.table < right.table }
        return left.destination == right.destination
            ? left.metric < right.metric : Prefix.precedes(left.destination, right.destination)
    }
}

extension Rule {
    /// Those that are asked first come first: an exception before what it excepts from.
    static func precedes(_ left: Rule, _ right: Rule) -> Bool { left.sortKey < right.sortKey }

    private var sortKey: (UInt32, Int, UInt32, UInt64, UInt64) {
        (
            priority, family == .v4 ? 0 : 1, table,
            mark.map { UInt64($0) + 1 } ?? 0,
            (suppressPrefixLength.map { UInt64($0) + 1 } ?? 0) << 1 | (isInverted ? 1 : 0)
        )
    }
}
