// SPDX-License-Identifier: Apache-2.0
import WireGuard

/// The first number that wg-quick(8) tries for the table and the mark of a full tunnel.
let firstFullTunnelTable: UInt32 = 51820

extension TunnelDecider {
    /// Routes to what the peers are allowed, where the file does not say otherwise (C38).
    mutating func decideRoutes() {
        let prefixes = allowedPrefixes.filter { carriesIPv6 || $0.address.family == .v4 }
        switch configuration.interface.table ?? .auto {
        case .off: break
        case .auto: routeAutomatically(prefixes)
        case .number(let table): route(prefixes, table: table)
        case .name(let name):
            guard let table = number(of: name) else {
                return report(
                    .error, .unknownTable, "the routing table \(name) is unknown",
                    advice: "add it to /etc/iproute2/rt_tables, or write its number")
            }
            route(prefixes, table: table)
        }
        endFullTunnel()
    }

    /// 253 to 255 have their names from the kernel (RT_TABLE_DEFAULT, …_MAIN, …_LOCAL of
    /// linux/rtnetlink.h).
    private func number(of name: Identifier) -> UInt32? {
        if let number = facts.tableNumbers[name.description] { return number }
        return switch name.description {
        case "default": 253
        case "main": Route.mainTable
        case "local": 255
        default: nil
        }
    }

    /// A prefix that the kernel routes because of an address needs no second route.
    private mutating func route(_ prefixes: Set<Prefix>, table: UInt32) {
        let connected = table == Route.mainTable ? connectedRoutes : []
        for prefix in prefixes where !connected.contains(where: { $0.contains(prefix) }) {
            tunnel.host.routes.insert(Route(prefix, table: table))
        }
    }

    private var connectedRoutes: [Prefix] { tunnel.host.addresses.compactMap(\.connectedRoute) }

    private mutating func routeAutomatically(_ prefixes: Set<Prefix>) {
        route(prefixes.filter { $0.length > 0 }, table: Route.mainTable)
        let defaults = prefixes.filter { $0.length == 0 }
        if !defaults.isEmpty { routeEverything(defaults) }
    }

    // MARK: full tunnel

    /// Everything without the tunnel's mark goes into the tunnel's table; what the main table knows
    /// better than by its default route comes before (C37).
    private mutating func routeEverything(_ defaults: Set<Prefix>) {
        guard let mark = chooseMark(for: defaults), let priorities = choosePriorities() else {
            return
        }
        tunnel.device.fwmark = mark
        for destination in defaults {
            let family = destination.address.family
            tunnel.host.routes.insert(Route(destination, table: mark))
            var local = Rule(
                family: family, priority: priorities.suppress, table: Route.mainTable)
            local.suppressPrefixLength = 0
            var rest = Rule(family: family, priority: priorities.mark, table: mark)
            rest.mark = mark
            rest.isInverted = true
            tunnel.host.rules.formUnion([local, rest])
        }
        let families = Set(defaults.map(\.address.family))
        var firewall = tunnel.host.firewall ?? FirewallSettings()
        firewall.fullTunnelMark = mark
        firewall.protectedAddresses = tunnel.host.addresses
            .filter { families.contains($0.address.family) }
            .sorted(by: InterfaceAddress.precedes)
        tunnel.host.firewall = firewall
        if families.contains(.v4) { tunnel.host.settings[.sourceValidMark] = 1 }
        checkOtherFullTunnels()
    }

    /// The mark, which is the number of the table too; nil after an error was reported.
    private mutating func chooseMark(for defaults: Set<Prefix>) -> UInt32? {
        if let mark = configuration.interface.fwmark, mark != 0 {
            return checkChosen(mark, for: defaults) ? mark : nil
        }
        if let mark = facts.current?.fullTunnelMark { return mark }
        var mark = firstFullTunnelTable
        while facts.tablesInUse.contains(mark) || facts.marksInUse.contains(mark)
            || facts.current?.answerMark == mark
        {
            mark += 1
        }
        if mark != firstFullTunnelTable {
            report(
                .note, .otherTable,
                "routing table \(firstFullTunnelTable) is in use, \(name) uses \(mark)",
                advice: "set FwMark to choose the number")
        }
        return mark
    }

    /// As with wg-quick(8), a mark in the file is the number of the table.
    private mutating func checkChosen(_ mark: UInt32, for defaults: Set<Prefix>) -> Bool {
        let isReserved = 253...255 ~= mark
        let other = facts.routes.first {
            $0.table == mark && defaults.contains($0.destination)
        }
        // For a moment both would be there, and the tunnel's own datagrams would enter it.
        let isOfAnswers = facts.current?.answerMark == mark
        guard isReserved || isOfAnswers || other != nil else { return true }
        let holder =
            other.map { ": its default route leads to \($0.link ?? "nowhere")" }
            ?? (isOfAnswers ? " for answers through the tunnel" : " of the kernel's own")
        report(
            .error, .tableTaken, "FwMark = \(mark) names a routing table in use\(holder)",
            advice: "choose another FwMark, or remove it")
        return false
    }

    /// Two free neighbours, asked before the rules of all others: where the kernel puts the rules
    /// of wg-quick(8), which names no priority (fib_default_rule_pref of net/core/fib_rules.c).
    /// Without others that is 32764 and 32765, right before the main table's.
    private mutating func choosePriorities() -> (suppress: UInt32, mark: UInt32)? {
        if let kept = facts.current?.fullTunnelPriorities { return kept }
        let main: UInt32 = 32766
        let used = facts.rulePriorities.values.reduce(into: Set()) { $0.formUnion($1) }.filter {
            $0 > 0 && $0 < main
        }
        let lowest = used.min() ?? main
        if lowest > 2 { return (lowest - 2, lowest - 1) }
        for priority in (2..<main).reversed()
        where !used.contains(priority) && !used.contains(priority - 1) {
            return (priority - 1, priority)
        }
        report(
            .error, .noRulePriority, "no two free priorities for the routing rules of \(name)",
            advice: "remove rules that `ip rule` shows")
        return nil
    }

    /// The packets of each carry only its own mark.
    private mutating func checkOtherFullTunnels() {
        for other in facts.fullTunnels where other != name {
            report(
                .warning, .otherFullTunnel,
                "\(other) takes all packets of this host too",
                whoLoses: "its encrypted packets enter \(name)",
                advice: "take 0.0.0.0/0 and ::/0 from one of the two, or set Table")
        }
    }

    /// The mark of a full tunnel that is none any more was our choice, not the file's.
    private mutating func endFullTunnel() {
        guard let mark = facts.current?.fullTunnelMark, tunnel.device.fwmark == nil,
            facts.current?.device.fwmark == mark
        else { return }
        tunnel.device.fwmark = 0
    }
}

extension TunnelState {
    /// The mark and table of a running full tunnel; nil: it is none. Found also when somebody
    /// removed a part of it.
    public var fullTunnelMark: UInt32? {
        if let rule = host.rules.first(where: { $0.isInverted && $0.mark == $0.table }) {
            return rule.mark
        }
        if let mark = host.firewall?.fullTunnelMark { return mark }
        let isFull = host.routes.contains {
            $0.destination.length == 0 && $0.table == device.fwmark
        }
        return isFull ? device.fwmark : nil
    }

    /// nil when neither family has both rules.
    var fullTunnelPriorities: (suppress: UInt32, mark: UInt32)? {
        for rule in host.rules.sorted(by: Rule.precedes) where rule.isInverted {
            let local = host.rules.sorted(by: Rule.precedes).first {
                $0.family == rule.family && $0.suppressPrefixLength == 0
                    && $0.priority < rule.priority
            }
            if let local { return (local.priority, rule.priority) }
        }
        return nil
    }
}
