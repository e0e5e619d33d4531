// SPDX-License-Identifier: Apache-2.0
import WireGuard

/// Apart from where full tunnels begin: a mark has one meaning, also while a tunnel becomes full.
private let firstAnswerTable: UInt32 = 52820

extension TunnelDecider {
    /// Forwards, address translation, and the kernel's leave to forward. After the routes: a table
    /// of its own comes last.
    mutating func decideGateway(_ gateway: Gateway) {
        guard gateway != Gateway() else { return }
        checkForwards(gateway.forwards)
        var firewall = tunnel.host.firewall ?? FirewallSettings()
        firewall.forwards = gateway.forwards.sorted(by: PortForward.precedes)
        firewall.masquerades = gateway.masquerades
        if !gateway.forwards.isEmpty {
            firewall.ownAddresses = tunnel.host.addresses.sorted(by: InterfaceAddress.precedes)
        }
        if gateway.answersThroughTunnel { firewall.answerMark = decideAnswers() }
        if firewall != FirewallSettings() { tunnel.host.firewall = firewall }
        allowForwarding(gateway)
    }

    private mutating func allowForwarding(_ gateway: Gateway) {
        let forwarded = Set(gateway.forwards.map(\.target.family))
        let carried: Set<AddressFamily> =
            gateway.masquerades || gateway.forwardsBetweenPeers
            ? Set(tunnel.host.addresses.map(\.address.family))
                .union(allowedPrefixes.map(\.address.family)) : []
        let families = forwarded.union(carried)
        if families.contains(.v4) { tunnel.host.settings[.forwardsIPv4] = 1 }
        if gateway.forwardsBetweenPeers, families.contains(.v4) {
            tunnel.host.settings[.sendsRedirects] = 0
        }
        if families.contains(.v6), carriesIPv6 { tunnel.host.settings[.forwardsIPv6] = 1 }
    }

    // MARK: forwards

    private mutating func checkForwards(_ forwards: [PortForward]) {
        for (index, forward) in forwards.enumerated() {
            if let other = forwards[..<index].first(where: { $0.overlaps(forward) }) {
                report(
                    .error, .forwardTaken, "the forwards \(other) and \(forward) share a port",
                    advice: "give each port to one of them")
            }
            checkPort(forward)
            checkTarget(forward)
        }
    }

    /// A tunnel whose datagrams are led elsewhere is dead.
    private mutating func checkPort(_ forward: PortForward) {
        guard forward.transport == .udp else { return }
        var holders = facts.listenPorts
        let own = configuration.interface.listenPort ?? 0
        let port = own != 0 ? own : facts.current?.device.listenPort ?? 0
        if port != 0 { holders[port] = name }
        for (port, holder) in holders.sorted(by: { $0.key < $1.key })
        where forward.publicPort...forward.publicPortEnd ~= port {
            report(
                .error, .forwardTaken, "the forward \(forward) takes the UDP port of \(holder)",
                advice: "choose another public port")
        }
    }

    private mutating func checkTarget(_ forward: PortForward) {
        let target = forward.target
        guard target.isForwardable else {
            return report(
                .error, .forwardTarget, "the forward \(forward) leads to no host",
                advice: "name the address of a host that a peer is allowed")
        }
        if tunnel.host.addresses.contains(where: { $0.address == target }) {
            return report(
                .error, .forwardTarget, "the forward \(forward) leads to this host itself",
                advice: "let the service listen on the public port")
        }
        let isReached = allowedPrefixes.contains { $0.contains(target) }
        if !isReached {
            report(
                .warning, .forwardTarget, "no peer is allowed \(target), where \(forward) leads",
                whoLoses: "its connections leave beside the tunnel",
                advice: "add \(target) to the AllowedIPs of a peer")
        }
        // Under which address, if the tunnel has none?
        let hasSource = tunnel.host.addresses.contains { $0.address.family == target.family }
        if isReached, !forward.keepsSource, !hasSource {
            report(
                .error, .forwardTarget,
                "the forward \(forward) needs an address of \(name) of the same family",
                advice: "add Address, or keep the source of its connections")
        }
    }

    // MARK: answers

    /// The mark of connections that came through the tunnel, and the number of the table that leads
    /// back into it. nil: only peers that may send from anywhere make it necessary.
    private mutating func decideAnswers() -> UInt32? {
        let defaults = allowedPrefixes.filter {
            $0.length == 0 && (carriesIPv6 || $0.address.family == .v4)
        }
        guard !defaults.isEmpty else { return nil }
        guard let priority = chooseAnswerPriority() else { return nil }
        let mark = chooseAnswerMark()
        for destination in defaults {
            tunnel.host.routes.insert(Route(destination, table: mark))
            var rule = Rule(family: destination.address.family, priority: priority, table: mark)
            rule.mark = mark
            tunnel.host.rules.insert(rule)
        }
        return mark
    }

    private func chooseAnswerMark() -> UInt32 {
        if let mark = facts.current?.answerMark { return mark }
        var mark = firstAnswerTable
        while facts.tablesInUse.contains(mark) || facts.marksInUse.contains(mark)
            || mark == tunnel.device.fwmark || mark == facts.current?.device.fwmark
        {
            mark += 1
        }
        return mark
    }

    /// Before all others, those of a full tunnel included: an answer has one way only.
    private mutating func chooseAnswerPriority() -> UInt32? {
        if let kept = facts.current?.host.rules.first(where: \.isOfAnswers) { return kept.priority }
        let main: UInt32 = 32766
        let used = facts.rulePriorities.values.reduce(into: Set()) { $0.formUnion($1) }
            .union(tunnel.host.rules.map(\.priority)).filter { 0 < $0 && $0 < main }
        let lowest = used.min() ?? main
        if lowest > 1 { return lowest - 1 }
        report(
            .error, .noRulePriority, "no free priority for the routing rule of \(name)",
            advice: "remove rules that `ip rule` shows")
        return nil
    }
}

extension Rule {
    /// Leads marked answers back into the tunnel.
    public var isOfAnswers: Bool { !isInverted && mark != nil && mark == table }
}

extension TunnelState {
    /// Found also when somebody removed a part of it.
    var answerMark: UInt32? {
        host.rules.first(where: \.isOfAnswers)?.mark ?? host.firewall?.answerMark
    }
}

extension IPAddress {
    /// An address that one host has: not this host, the loopback network, a group or all.
    var isForwardable: Bool {
        switch self {
        case .v4(let bits): bits >> 24 != 0 && bits >> 24 != 127 && bits >> 28 < 14
        case .v6(let high, let low):
            !(high == 0 && low <= 1) && high >> 56 != 0xFF && !isLinkLocal
        }
    }
}
