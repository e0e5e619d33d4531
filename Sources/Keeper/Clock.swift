// SPDX-License-Identifier: Apache-2.0
// Where the reconciler heeds a clock that is behind (C78).
import TunnelPlan
import WireGuard

extension Reconciler {
    /// Only a device that is made now has forgotten what it sent; and nobody knows it yet, so nothing
    /// of a tunnel that runs waits for a clock.
    func clockMeasure(
        for desired: DesiredTunnel, _ observation: Observation, _ now: Moment
    ) -> ClockGuard.Measure {
        guard observation.state == nil else { return .none }
        return clock.measure(for: desired.backend, key: observation.facts.ownPublicKey, now)
    }

    /// What waits for the clock is left out, also when it is asked for once more meanwhile.
    func heeding(
        _ measure: ClockGuard.Measure, _ changes: [Change], _ state: TunnelState?
    ) -> [Change] {
        let isHeld = measure == .holdEndpoints || (clock.hold != nil && state != nil)
        return isHeld ? clock.withoutEndpoints(changes, state) : changes
    }

    /// The device is about to be made.
    mutating func take(_ measure: ClockGuard.Measure, _ now: Moment) -> [Action] {
        switch measure {
        case .none: return []
        case .raiseFloor(let seconds):
            return [.raiseFloor(seconds), .announce(KeeperEvent(.clock, clockText(now)))]
        case .holdEndpoints:
            clock.beginHold(now)
            let text =
                "\(clockText(now)); its peers get their endpoints when it is set, or in "
                + "\(ClockGuard.longestHold / 1000) s"
            return [.announce(KeeperEvent(.clock, text))]
        }
    }

    private func clockText(_ now: Moment) -> String {
        let behind = (clock.record?.seconds ?? 0) - now.wallSeconds
        return "the clock is \(behind) s behind the latest handshake of \(name)"
    }

    /// While endpoints are held, those with names wait too.
    mutating func isCheckOfEndpointsDue(_ now: Moment) -> Bool {
        let isDue = names.checkAt.map { $0 <= now.milliseconds } ?? false
        guard clock.hold != nil else { return isDue }
        if isDue { names.postpone(now: now.milliseconds) }
        return clock.isHoldOver(now)
    }

    /// What was held back, but for names, which the book gives; and what there is to say.
    mutating func endpointsAfterHold(
        _ state: TunnelState, _ now: Moment
    ) -> ([(PublicKey, Endpoint)], [Action]) {
        guard clock.hold != nil else { return ([], []) }
        clock.endHold()
        let text =
            clock.behind(now) == nil
            ? "the clock has passed the latest handshake of \(name); its peers have their endpoints"
            : "\(clockText(now)) still: its peers have their endpoints, and those that remember "
                + "refuse it; set the clock"
        let without = Set(state.device.peers.filter { $0.endpoint == nil }.map(\.publicKey))
        let held = (running?.desired?.peers ?? []).compactMap { peer -> (PublicKey, Endpoint)? in
            let isBooked = !names.host(of: peer.publicKey).isEmpty
            guard let endpoint = peer.endpoint, without.contains(peer.publicKey), !isBooked else {
                return nil
            }
            return (peer.publicKey, endpoint)
        }
        return (held, [.announce(KeeperEvent(.clock, text))])
    }
}
