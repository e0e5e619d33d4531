// SPDX-License-Identifier: Apache-2.0
// Where the reconciler asks TunnelPlan.
import TunnelPlan
import WireGuard

struct Decision: Equatable, Sendable {
    var desired: DesiredTunnel
    var issues: [Issue]
    /// The issues for people, and what the host has to say.
    var warnings: [String]
}

extension Reconciler {
    /// What `intent` needs on the host that was observed. Throws `.configurationInvalid` with every
    /// reason.
    func decide(
        _ intent: Intent, _ observation: Observation
    ) throws(KeeperFailure) -> Decision {
        var facts = observation.facts
        facts.resolved = names.addresses(for: intent.configuration)
        var options = TunnelOptions()
        options.backend = intent.backend
        options.gateway = intent.gateway
        let decision = DesiredTunnel.from(
            configuration: intent.configuration, name: name, facts: facts, options: options)
        guard var desired = decision.tunnel else {
            let reasons = decision.issues.filter { $0.severity == .error }.map(\.description)
            throw KeeperFailure(.configurationInvalid, reasons.joined(separator: "\n"))
        }
        var warnings = decision.issues.filter { $0.severity != .error }.map(\.description)
        if observation.state == nil || desired.backend != nil {
            desired.backend = observation.backend?.kind ?? desired.backend
        }
        if observation.state == nil, let note = observation.backend?.note { warnings.append(note) }
        return Decision(desired: desired, issues: decision.issues, warnings: warnings)
    }

    func steps(
        from state: TunnelState?, to desired: DesiredTunnel, previous: DesiredTunnel?,
        _ now: Moment, renews: Bool = false
    ) -> [Change] {
        plan(
            from: state, to: desired,
            policy: EndpointPolicy(previous: previous, now: now.wallSeconds), renews: renews)
    }

    /// From what a failure left to what was before; nil: nothing was.
    func stepsBack(from state: TunnelState?, to before: TunnelState?) -> [Change] {
        guard let before else { return state.map { undo(of: $0) } ?? [] }
        return plan(from: state, to: DesiredTunnel(restoring: before))
    }

    func line(_ change: Change) -> String {
        PlanDocument(name: name, changes: []).line(change)
    }
}

extension DesiredTunnel {
    /// What leads back to `state`.
    init(restoring state: TunnelState) {
        self.init()
        backend = state.backend
        device = DeviceChange(
            privateKey: state.device.privateKey, listenPort: state.device.listenPort,
            fwmark: state.device.fwmark)
        peers = state.device.peers.map { peer in
            var desired = DesiredPeer(publicKey: peer.publicKey)
            desired.presharedKey = peer.presharedKey
            desired.endpoint = peer.endpoint
            desired.keepalive = peer.keepalive
            desired.prefixes = Set(peer.prefixes)
            return desired
        }
        host = state.host
    }
}
