// SPDX-License-Identifier: Apache-2.0
import TestSupport
import Testing
import WireGuard

@testable import TunnelPlan

/// One plan between two random tunnels, and all that must hold of it.
private struct Step {
    let before: TunnelState?
    let wanted: DesiredTunnel
    let policy: EndpointPolicy
    let changes: [Change]
    private(set) var after: TunnelState?

    init(
        from before: TunnelState?, to wanted: DesiredTunnel, previous: DesiredTunnel? = nil,
        renews: Bool = false
    ) {
        self.before = before
        self.wanted = wanted
        policy = EndpointPolicy(previous: previous, now: now)
        changes = plan(from: before, to: wanted, policy: policy, renews: renews)
    }

    var replacesLink: Bool {
        changes.contains {
            switch $0 {
            case .createLink, .createReplacement: true
            default: false
            }
        }
    }

    /// Applies the changes one by one; `each` sees every state, the first included.
    mutating func run(_ each: (TunnelState) -> Void = { _ in }) {
        var model = TunnelModel(before)
        if let before { each(before) }
        for change in changes {
            do {
                try model.apply(change)
            } catch {
                Testing.Issue.record("\(error) at \(change) of \(changes)")
            }
            if let state = model.state { each(state) }
        }
        after = model.state
    }
}

@Suite struct PlanPropertyTests {
    static let seeds = [UInt64](0..<6)
    static let rounds = 200

    /// Chains of tunnels, each a change of the one before.
    private func forEachStep(
        _ seed: UInt64, decided: Bool, _ body: (inout Step) -> Void
    ) {
        var random = SeededRandom(seed: seed)
        var state: TunnelState?
        var previous: DesiredTunnel?
        for _ in 0..<Self.rounds {
            if random.oneIn(10) { (state, previous) = (nil, nil) }
            var wanted = decided ? random.tunnel(after: state) : random.anyTunnel()
            if state == nil, wanted.backend == nil { wanted.backend = .kernel }
            var step = Step(
                from: state.map { random.live($0) }, to: wanted,
                previous: random.oneIn(2) ? previous : nil, renews: random.oneIn(8))
            body(&step)
            (state, previous) = (step.after, wanted)
        }
    }

    @Test(arguments: seeds, [true, false])
    func case_C60_a_plan_leads_to_what_a_fresh_tunnel_is(_ seed: UInt64, _ decided: Bool) {
        forEachStep(seed, decided: decided) { step in
            step.run()
            var fresh = Step(from: nil, to: step.wanted)
            fresh.run()
            guard let after = step.after, let fresh = fresh.after else {
                return hold(false, "no tunnel after \(step.changes)")
            }
            let kept = step.replacesLink ? nil : step.before
            hold(
                after.backend == step.wanted.backend ?? step.before?.backend ?? .kernel, "back-end")
            expect(
                after.device, as: fresh.device, wanted: step.wanted.device,
                kept: step.before?.device)
            expect(after, holds: fresh, kept: kept, step)
            var answered = after
            if step.replacesLink {
                // A new device has no sessions yet: until it has, whoever roamed counts as lost.
                for index in answered.device.peers.indices {
                    answered.device.peers[index].lastHandshakeSeconds = now
                }
            }
            let again = plan(from: answered, to: step.wanted, policy: step.policy)
            hold(again == [], "the plan again: \(again)")
        }
    }

    /// What is not mentioned is as it was (C58).
    private func expect(
        _ device: DeviceSnapshot, as fresh: DeviceSnapshot, wanted: DeviceChange,
        kept: DeviceSnapshot?
    ) {
        let before = kept ?? DeviceSnapshot()
        hold(device.privateKey == (wanted.privateKey == nil ? before : fresh).privateKey, "key")
        hold(device.fwmark == (wanted.fwmark == nil ? before : fresh).fwmark, "mark")
        let leavesPort = wanted.listenPort ?? 0 == 0
        hold(device.listenPort == (leavesPort ? before : fresh).listenPort, "port")
    }

    private func expect(
        _ after: TunnelState, holds fresh: TunnelState, kept: TunnelState?, _ step: Step
    ) {
        var host = fresh.host
        if step.wanted.host.mtu == nil { host.mtu = kept?.host.mtu }
        hold(after.host == host, "\(after.host) is not \(host) after \(step.changes)")
        let peers = Dictionary(uniqueKeysWithValues: after.device.peers.map { ($0.publicKey, $0) })
        let old = Dictionary(
            uniqueKeysWithValues: (kept?.device.peers ?? []).map { ($0.publicKey, $0) })
        hold(peers.count == fresh.device.peers.count, "number of peers")
        for wanted in fresh.device.peers {
            guard var expected = peers[wanted.publicKey] else {
                return hold(false, "\(wanted.publicKey) is missing")
            }
            // The session and its endpoint go on.
            if let before = old[wanted.publicKey] {
                expected.lastHandshakeSeconds = before.lastHandshakeSeconds
                expected.receivedBytes = before.receivedBytes
                expected.sentBytes = before.sentBytes
            }
            // A new device knows where peers were that have no endpoint of their own.
            let learned = step.before?.device.peers.first { $0.publicKey == wanted.publicKey }
            let isLeft =
                expected.endpoint == old[wanted.publicKey]?.endpoint
                || expected.endpoint == learned?.endpoint
            expected.endpoint = isLeft ? expected.endpoint : wanted.endpoint
            expected.presharedKey = wanted.presharedKey
            expected.keepalive = wanted.keepalive
            let after = peers[wanted.publicKey]!
            hold(Set(after.prefixes) == Set(wanted.prefixes), "prefixes of \(wanted.publicKey)")
            expected.prefixes = after.prefixes
            hold(after == expected, "\(after) is not \(expected)")
        }
    }

    @Test(arguments: seeds, [true, false])
    func nothing_is_both_removed_and_added(_ seed: UInt64, _ decided: Bool) {
        forEachStep(seed, decided: decided) { step in
            step.run()
            var seen = Seen()
            for change in step.changes { seen.note(change) }
            hold(seen.names.allSatisfy { $0.value == 1 }, "twice: \(step.changes)")
        }
    }

    @Test(arguments: seeds, [true, false])
    func case_C57_untouched_peers_appear_in_no_change(_ seed: UInt64, _ decided: Bool) {
        forEachStep(seed, decided: decided) { step in
            step.run()
            guard let before = step.before, !step.replacesLink, let after = step.after else {
                return
            }
            let afterwards = Dictionary(
                uniqueKeysWithValues: after.device.peers.map { ($0.publicKey, $0) })
            // Whoever only lost a prefix to another peer is not named either.
            for peer in before.device.peers {
                guard var expected = afterwards[peer.publicKey] else { continue }
                if Set(expected.prefixes).isSubset(of: peer.prefixes) {
                    let lost = Set(peer.prefixes).subtracting(expected.prefixes)
                    let moved = Set(after.device.peers.flatMap(\.prefixes))
                    if lost.isSubset(of: moved) { expected.prefixes = peer.prefixes }
                }
                guard expected == peer else { continue }
                hold(!step.changes.contains { $0.peer == peer.publicKey }, "\(step.changes)")
            }
        }
    }

    @Test(arguments: seeds, [true, false])
    func at_no_time_a_peer_lacks_a_prefix_that_it_keeps(_ seed: UInt64, _ decided: Bool) {
        forEachStep(seed, decided: decided) { step in
            guard let before = step.before, !step.replacesLink else { return step.run() }
            var fresh = Step(from: nil, to: step.wanted)
            fresh.run()
            let kept = keptPrefixes(before.device, fresh.after?.device ?? DeviceSnapshot())
            step.run { state in
                for peer in state.device.peers {
                    let missing = (kept[peer.publicKey] ?? []).subtracting(peer.prefixes)
                    hold(missing.isEmpty, "\(peer.publicKey) lacks \(missing)")
                }
                let keys = Set(state.device.peers.map(\.publicKey))
                hold(kept.keys.allSatisfy { keys.contains($0) }, "a peer that stays is gone")
            }
        }
    }

    private func keptPrefixes(
        _ before: DeviceSnapshot, _ after: DeviceSnapshot
    ) -> [PublicKey: Set<Prefix>] {
        let wanted = Dictionary(
            uniqueKeysWithValues: after.peers.map { ($0.publicKey, Set($0.prefixes)) })
        var kept: [PublicKey: Set<Prefix>] = [:]
        for peer in before.peers {
            if let prefixes = wanted[peer.publicKey] {
                kept[peer.publicKey] = prefixes.intersection(peer.prefixes)
            }
        }
        return kept
    }

    @Test(arguments: seeds)
    func case_C37_no_state_between_loops_or_leaks(_ seed: UInt64) {
        var fullSteps = 0
        forEachStep(seed, decided: true) { step in
            let (staysFull, changes) = (step.staysFull, step.changes)
            fullSteps += staysFull.isEmpty ? 0 : 1
            step.run { state in
                for family in AddressFamily.allCases {
                    let loops = state.takes(mark: state.device.fwmark, family)
                    hold(!state.isFull(family) || !loops, "loop within \(changes)")
                }
                for family in staysFull {
                    hold(state.takes(mark: 0, family), "leak within \(changes)")
                }
            }
        }
        // Otherwise this test would prove nothing.
        #expect(fullSteps > 20)
    }
}

extension Step {
    /// The families for which the tunnel is full before and after. Without the last IPv4 address
    /// the kernel takes the IPv4 routes, which then are gone for a moment.
    fileprivate var staysFull: [AddressFamily] {
        guard let before, !replacesLink else { return [] }
        return AddressFamily.allCases.filter { family in
            let losesRoutes =
                family == .v4 && before.host.addresses.contains { $0.address.family == .v4 }
                && !wanted.host.addresses.contains { $0.address.family == .v4 }
            return before.isFull(family) && !losesRoutes
                && wanted.host.rules.contains { $0.family == family && $0.isInverted }
        }
    }
}

extension TunnelState {
    fileprivate func isFull(_ family: AddressFamily) -> Bool {
        host.rules.contains { $0.family == family && $0.isInverted }
    }

    /// Whether a packet with this mark to an address that only default routes know is sent into the
    /// tunnel: the rules in the order of their priority, then the main table, which has the host's
    /// default route.
    fileprivate func takes(mark: UInt32, _ family: AddressFamily) -> Bool {
        for rule in host.rules.sorted(by: { $0.priority < $1.priority })
        where rule.family == family {
            if let wanted = rule.mark, (wanted == mark) == rule.isInverted { continue }
            if rule.table == Route.mainTable {
                if rule.suppressPrefixLength == nil { return false }
                continue
            }
            let isRouted = host.routes.contains {
                $0.table == rule.table && $0.destination.length == 0
                    && $0.destination.address.family == family
            }
            if isRouted { return true }
        }
        return false
    }
}

extension Change {
    fileprivate var peer: PublicKey? {
        switch self {
        case .addPeer(let change), .changePeer(let change): change.publicKey
        case .removePeer(let key): key
        default: nil
        }
    }
}

/// How often a plan names each thing.
private struct Seen {
    private(set) var names: [AnyHashable: Int] = [:]

    mutating func note(_ change: Change) {
        switch change {
        case .setDevice(let change):
            if change.privateKey != nil { count("private key") }
            if change.listenPort != nil { count("port") }
            if change.fwmark != nil { count("mark") }
        case .addPeer, .changePeer, .removePeer: count(change.peer)
        case .addAddress(let address), .removeAddress(let address): count(address)
        case .addRoute(let route), .removeRoute(let route): count(route)
        case .addRule(let rule), .removeRule(let rule):
            // The exemption of a plan that changes the mark comes and goes.
            if rule.isInverted || rule.table != Route.mainTable || rule.mark == nil { count(rule) }
        // Those of an exchange come and go.
        case .addBarrier, .removeBarrier: break
        case .setMTU: count("mtu")
        case .setUp: count("up")
        case .setDNS: count("dns")
        case .setFirewall: count("firewall")
        case .setSetting(let setting, _): count(setting)
        case .createLink, .createReplacement, .removeLink: count("link")
        case .exchangeLink: count("exchange")
        case .greetPeers: count("greeting")
        }
    }

    private mutating func count(_ name: some Hashable) { names[AnyHashable(name), default: 0] += 1 }
}
