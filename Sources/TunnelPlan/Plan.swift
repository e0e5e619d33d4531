// SPDX-License-Identifier: Apache-2.0
// From the tunnel that is to the one that is wanted, in an order in which every state between is
// one to be in: what is new works before the old goes, no packet that the tunnel sent enters it
// again (C37), and none that belongs into it leaves beside it.
//
//   link → device → peers → MTU, addresses → [barriers → the old link goes → port] → up → setting,
//   firewall → routes → rules → [handshakes] → DNS; what stands in brackets only where a link is
//   replaced; then what goes: rules → routes → barriers → setting, firewall → mark → peers → addresses → MTU, down
import WireGuard

/// The changes that lead from `from` (nil: there is no tunnel) to `to`; empty when they are the
/// same in meaning. For another back-end, and for the same with `renews`, a new link is made that
/// replaces the one there is: see `Change.createReplacement`. Whoever creates a tunnel has chosen its
/// back-end; where `to` leaves it open the kernel is taken.
public func plan(
    from: TunnelState?, to: DesiredTunnel, policy: EndpointPolicy = EndpointPolicy(),
    renews: Bool = false
) -> [Change] {
    var planner = Planner(from: from, to: to, policy, renews: renews)
    return planner.plan()
}

/// The changes that leave nothing of a tunnel. With the link go its device, addresses and routes.
public func undo(of state: TunnelState) -> [Change] {
    let host = state.host
    var changes: [Change] = []
    if host.dns != nil { changes.append(.setDNS(nil)) }
    changes += host.rules.sorted(by: Rule.precedes).reversed().map { .removeRule($0) }
    changes += host.barriers.sorted(by: Barrier.precedes).map { .removeBarrier($0) }
    for setting in HostSetting.allCases where host.settings[setting] != nil {
        changes.append(.setSetting(setting, nil))
    }
    if host.firewall != nil { changes.append(.setFirewall(nil)) }
    return changes + [.removeLink]
}

private struct Planner {
    private let from: TunnelState
    private let to: DesiredTunnel
    private let policy: EndpointPolicy
    private let createsLink: BackendKind?
    /// What is replaced.
    private let replaces: TunnelState?
    /// What is added, and what is removed afterwards.
    private var changes: [Change] = []
    private var removals: [Change] = []

    init(from: TunnelState?, to: DesiredTunnel, _ policy: EndpointPolicy, renews: Bool) {
        self.policy = policy
        replaces = from
        guard let from else {
            createsLink = to.backend ?? .kernel
            self.from = TunnelState(replacing: nil, by: to.backend ?? .kernel)
            self.to = to.normalised
            return
        }
        let kind = to.backend ?? from.backend
        guard renews || kind != from.backend else {
            createsLink = nil
            self.from = from
            self.to = to.normalised
            return
        }
        createsLink = kind
        self.from = TunnelState(replacing: from, by: kind)
        self.to = to.normalised.inheriting(from.device, policy)
    }

    mutating func plan() -> [Change] {
        if let createsLink {
            changes.append(
                replaces == nil ? .createLink(createsLink) : .createReplacement(createsLink))
        }
        var peers = PeerPlanner(policy: policy)
        let peerChanges = peers.plan(from: from.device, to: to.peers)
        let mark = markChange()
        planDevice(early: mark)
        changes += peerChanges.set
        planLink()
        if createsLink != nil, let replaces { planExchange(of: replaces) }
        if to.host.isUp, !from.host.isUp { changes.append(.setUp(true)) }
        planProtection()
        planRoutes()
        if createsLink != nil, let replaces { greetPeers(of: replaces.device) }
        if to.host.dns != from.host.dns { changes.append(.setDNS(to.host.dns)) }
        planWithdrawal()
        if let mark, !mark.isEarly { removals.append(.setDevice(DeviceChange(fwmark: mark.value))) }
        removals += peerChanges.removed
        planLinkWithdrawal()
        return changes + removals
    }

    // MARK: device

    private struct MarkChange {
        var value: UInt32
        /// Before the rules that know it. Otherwise after those have gone that know the old one.
        var isEarly: Bool
    }

    private func markChange() -> MarkChange? {
        guard let mark = to.device.fwmark, mark != from.device.fwmark else { return nil }
        let leaves = from.host.rules.contains {
            $0.isInverted && $0.mark == from.device.fwmark && !to.host.rules.contains($0)
        }
        let arrives = to.host.rules.contains { $0.isInverted && $0.mark == mark }
        return MarkChange(value: mark, isEarly: arrives || !leaves)
    }

    private mutating func planDevice(early mark: MarkChange?) {
        var change = DeviceChange()
        if let key = to.device.privateKey, key != from.device.privateKey,
            !(key.isZero && from.device.privateKey == nil)
        {
            change.privateKey = key
        }
        if createsLink == nil || replaces == nil { change.listenPort = portChange }
        if let mark, mark.isEarly {
            change.fwmark = mark.value
            exempt(mark.value)
        }
        if change != DeviceChange() { changes.append(.setDevice(change)) }
    }

    /// 0 is any port: whichever it has will do.
    private var portChange: UInt16? {
        guard let port = to.device.listenPort, port != 0, port != from.device.listenPort else {
            return nil
        }
        return port
    }

    /// The port is the old device's until it has gone.
    private mutating func planExchange(of old: TunnelState) {
        planBarriers(for: old)
        changes.append(.exchangeLink)
        if let port = portChange { changes.append(.setDevice(DeviceChange(listenPort: port))) }
    }

    /// With the old link go its routes, and those behind them would be taken. The rules of a full tunnel
    /// stay: their table gets one even if somebody has removed the route.
    private mutating func planBarriers(for old: TunnelState) {
        let ends = old.host.rules.filter { $0.isInverted && $0.mark == $0.table }
            .map { Route($0.family.everything, table: $0.table) }
        let connected = old.host.addresses.compactMap(\.connectedRoute)
        let new = Set(old.host.routes.union(ends).map { Barrier(behind: $0) })
            .union(connected.map { Barrier(behindConnected: $0) })
            .subtracting(old.host.barriers).sorted(by: Barrier.precedes)
        changes += new.map { .addBarrier($0) }
        removals += new.map { .removeBarrier($0) }
    }

    /// Those that had a session. A device that comes up greets by itself whoever has a keepalive, and
    /// one that is never told where a peer is cannot.
    private mutating func greetPeers(of old: DeviceSnapshot) {
        guard to.host.isUp else { return }
        let live = Set(old.peers.filter { !policy.isStale($0) }.map(\.publicKey))
        let greeted = to.peers.filter {
            $0.keepalive == 0 && $0.endpoint != nil && live.contains($0.publicKey)
        }
        if !greeted.isEmpty { changes.append(.greetPeers(greeted.map(\.publicKey))) }
    }

    /// While the rules of the old mark are there, packets with the new one would enter the tunnel.
    /// So before them goes, as long as both are in place: those with the new mark use the main
    /// table.
    private mutating func exempt(_ mark: UInt32) {
        for rule in from.host.rules.sorted(by: Rule.precedes)
        where rule.isInverted && rule.mark != nil && rule.mark != mark && rule.priority > 1 {
            var exemption = Rule(
                family: rule.family, priority: rule.priority - 1, table: Route.mainTable)
            exemption.mark = mark
            guard !from.host.rules.contains(exemption), !to.host.rules.contains(exemption) else {
                continue
            }
            changes.append(.addRule(exemption))
            removals.append(.removeRule(exemption))
        }
    }

    // MARK: what is added

    private mutating func planLink() {
        let added = to.host.addresses.subtracting(from.host.addresses)
        // One link has an IPv6 address once, whatever its length (ipv6_add_addr of
        // net/ipv6/addrconf.c): there the old one has to go first.
        for old in addressesInTheWay(of: added) { changes.append(.removeAddress(old)) }
        if let mtu = to.host.mtu, mtu != from.host.mtu, mtu >= ipv6MinimumMTU {
            changes.append(.setMTU(mtu))
        }
        for address in added.sorted(by: InterfaceAddress.precedes) {
            changes.append(.addAddress(address))
        }
    }

    private func addressesInTheWay(of added: Set<InterfaceAddress>) -> [InterfaceAddress] {
        from.host.addresses.subtracting(to.host.addresses).filter { old in
            old.address.family == .v6 && added.contains { $0.address == old.address }
        }.sorted(by: InterfaceAddress.precedes)
    }

    private mutating func planProtection() {
        for setting in HostSetting.allCases {
            guard let value = to.host.settings[setting], value != from.host.settings[setting]
            else { continue }
            changes.append(.setSetting(setting, value))
        }
        if to.host.firewall != from.host.firewall, to.host.firewall?.fullTunnelMark != nil {
            changes.append(.setFirewall(to.host.firewall))
        }
    }

    private mutating func planRoutes() {
        let routes = to.host.routes.subtracting(from.host.routes).filter { !isFlushed($0) }
        for old in addressesRouted(by: routes) { changes.append(.removeAddress(old)) }
        changes += routes.sorted(by: Route.precedes).map { .addRoute($0) }
        let rules = to.host.rules.subtracting(from.host.rules)
        changes += rules.sorted(by: Rule.precedes).map { .addRule($0) }
    }

    /// With a link's last IPv4 address go all its IPv4 routes (fib_inetaddr_event of
    /// net/ipv4/fib_frontend.c). Those that are wanted come after it.
    private func isFlushed(_ route: Route) -> Bool {
        route.destination.address.family == .v4
            && from.host.addresses.contains { $0.address.family == .v4 }
            && !to.host.addresses.contains { $0.address.family == .v4 }
    }

    /// Addresses that go, and whose connected route is one that comes: the kernel takes them for
    /// the same.
    private func addressesRouted(by routes: Set<Route>) -> [InterfaceAddress] {
        let early = Set(addressesInTheWay(of: to.host.addresses.subtracting(from.host.addresses)))
        return from.host.addresses.subtracting(to.host.addresses).subtracting(early).filter { old in
            routes.contains {
                $0.table == Route.mainTable && $0.destination == old.connectedRoute
            }
        }.sorted(by: InterfaceAddress.precedes)
    }

    // MARK: what goes

    private mutating func planWithdrawal() {
        let rules = from.host.rules.subtracting(to.host.rules)
        // Before the exemption, which is there because of them.
        removals.insert(
            contentsOf: rules.sorted(by: Rule.precedes).reversed().map { .removeRule($0) }, at: 0)
        let routes = from.host.routes.subtracting(to.host.routes)
        removals += routes.sorted(by: Route.precedes).reversed().map { .removeRoute($0) }
        removals += from.host.barriers.subtracting(to.host.barriers).sorted(by: Barrier.precedes)
            .map { .removeBarrier($0) }
        for setting in HostSetting.allCases
        where from.host.settings[setting] != nil && to.host.settings[setting] == nil {
            removals.append(.setSetting(setting, nil))
        }
        if to.host.firewall != from.host.firewall, to.host.firewall?.fullTunnelMark == nil {
            removals.append(.setFirewall(to.host.firewall))
        }
    }

    private mutating func planLinkWithdrawal() {
        let gone = Set(
            changes.compactMap { change in
                if case .removeAddress(let address) = change { address } else { nil }
            })
        let addresses = from.host.addresses.subtracting(to.host.addresses).subtracting(gone)
        for address in addresses.sorted(by: InterfaceAddress.precedes) {
            removals.append(.removeAddress(address))
        }
        let flushed = to.host.routes.filter { isFlushed($0) }
        removals += flushed.sorted(by: Route.precedes).map { .addRoute($0) }
        // After the IPv6 addresses, which an MTU like that takes away.
        if let mtu = to.host.mtu, mtu != from.host.mtu, mtu < ipv6MinimumMTU {
            removals.append(.setMTU(mtu))
        }
        if !to.host.isUp, from.host.isUp { removals.append(.setUp(false)) }
    }
}

extension AddressFamily {
    fileprivate var everything: Prefix {
        switch self {
        case .v4: Prefix(address: .v4(0), length: 0)!
        case .v6: Prefix(address: .v6(high: 0, low: 0), length: 0)!
        }
    }
}

/// Bytes (RFC 8200 section 5).
let ipv6MinimumMTU: UInt32 = 1280

extension DesiredTunnel {
    /// A link that is down has no routes, so no rule may lead to them either.
    fileprivate var normalised: DesiredTunnel {
        guard !host.isUp else { return self }
        var result = self
        result.host.routes = []
        result.host.rules = []
        return result
    }
}

extension DesiredTunnel {
    /// For a new device in the place of `old`: what is left as it is (C58) would be lost with it. So the
    /// peers find it where it was, and it them, also those that have only ever called or have roamed.
    fileprivate func inheriting(_ old: DeviceSnapshot, _ policy: EndpointPolicy) -> DesiredTunnel {
        var result = self
        if device.privateKey == nil { result.device.privateKey = old.privateKey }
        if device.listenPort ?? 0 == 0, old.listenPort != 0 {
            result.device.listenPort = old.listenPort
        }
        if device.fwmark == nil, old.fwmark != 0 { result.device.fwmark = old.fwmark }
        let known = Dictionary(old.peers.map { ($0.publicKey, $0) }, uniquingKeysWith: { $1 })
        for index in result.peers.indices {
            guard let peer = known[result.peers[index].publicKey], let learned = peer.endpoint,
                policy.endpoint(for: result.peers[index], having: peer) == nil
            else { continue }
            result.peers[index].endpoint = learned
        }
        return result
    }
}

extension TunnelState {
    /// What is there when a new link has taken the place of another's, or of none.
    init(replacing other: TunnelState?, by kind: BackendKind) {
        var host = HostState()
        if let other {
            host.rules = other.host.rules
            host.barriers = other.host.barriers
            host.firewall = other.host.firewall
            host.settings = other.host.settings
        }
        self.init(backend: kind, device: DeviceSnapshot(), host: host)
    }
}
