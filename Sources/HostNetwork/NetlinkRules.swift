// SPDX-License-Identifier: Apache-2.0
import CNetlink
import Glibc
import TunnelPlan
import WireGuard

/// A routing policy rule of the host, whoever made it. What selects besides the mark (addresses,
/// interfaces, ports) is not told.
public struct HostRule: Hashable, Sendable {
    public var family: AddressFamily
    public var priority: UInt32
    /// 0: it leads to none.
    public var table: UInt32
    /// nil: packets of any mark.
    public var mark: UInt32?
    /// FRA_PROTOCOL of linux/fib_rules.h; `Netlink.ownProtocol` for ours.
    public var protocolNumber: UInt8
}

extension Netlink {
    /// Those with our protocol number, of all tunnels of this host.
    public func ownRules() throws(NetworkError) -> Set<Rule> {
        Set(try rules().compactMap { $0.protocol == Self.ownProtocol ? Rule($0) : nil })
    }

    public func allRules() throws(NetworkError) -> [HostRule] {
        try rules().compactMap { entry in
            guard let family = AddressFamily(number: entry.family) else { return nil }
            return HostRule(
                family: family, priority: entry.priority, table: entry.table,
                mark: entry.has_mark ? entry.mark : nil, protocolNumber: entry.protocol)
        }
    }

    public func addRule(_ rule: Rule) throws(NetworkError) {
        var entry = netlink_rule(rule)
        let result = unsafe netlink_rule_add(handle, &entry)
        if result == -EEXIST, try ownRules().contains(rule) { return }
        try check(
            result, "add \(rule.text)",
            hint: result == -EEXIST ? "another rule like it is there: remove that one" : nil)
    }

    public func removeRule(_ rule: Rule) throws(NetworkError) {
        // The kernel removes the first that has all that is asked for; what is not asked for may
        // differ, so an inversion or a missing suppression must be looked at before.
        guard try ownRules().contains(rule) else { return }
        var entry = netlink_rule(rule)
        let result = unsafe netlink_rule_remove(handle, &entry)
        if result == -ENOENT || result == -ESRCH { return }
        try check(result, "remove \(rule.text)")
    }

    private func rules() throws(NetworkError) -> [netlink_rule] {
        var list = unsafe netlink_rules()
        defer { unsafe netlink_rules_free(&list) }
        try check(unsafe netlink_rule_list(handle, &list), "list the routing rules")
        return unsafe Array(UnsafeBufferPointer(start: list.items, count: list.count))
    }
}

extension Rule {
    /// nil for a rule that `Rule` cannot express, which is none of ours.
    init?(_ entry: netlink_rule) {
        guard entry.plain, entry.table != 0, let family = AddressFamily(number: entry.family),
            !entry.has_mark || entry.mask == UInt32.max
        else { return nil }
        self.init(family: family, priority: entry.priority, table: entry.table)
        mark = entry.has_mark ? entry.mark : nil
        isInverted = entry.inverted
        // NETLINK_NO_SUPPRESSION
        suppressPrefixLength =
            entry.suppress_prefix_length == UInt32.max ? nil : entry.suppress_prefix_length
    }

    fileprivate var text: String {
        var text = "\(family == .v4 ? "IPv4" : "IPv6") rule \(priority):"
        if isInverted { text += " not" }
        if let mark { text += " mark \(mark)" }
        text += " table \(table)"
        if let suppressPrefixLength { text += " suppress prefix length \(suppressPrefixLength)" }
        return text
    }
}

extension netlink_rule {
    init(_ rule: Rule) {
        self.init()
        family = rule.family.number
        inverted = rule.isInverted
        priority = rule.priority
        table = rule.table
        if let mark = rule.mark {
            has_mark = true
            self.mark = mark
            mask = UInt32.max
        }
        suppress_prefix_length = rule.suppressPrefixLength ?? UInt32.max
    }
}
