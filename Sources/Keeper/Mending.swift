// SPDX-License-Identifier: Apache-2.0
// Between requests: what others removed comes back, what the host changed is followed, peers with
// names get the address that works.
import TunnelPlan
import WireGuard

struct HealWork: Equatable, Sendable {
    /// The first look of this keeper: what differs, differed before it came.
    var isFirst = false
    var changes: [Change] = []
    /// The link was gone.
    var isRebuild = false
    var lines: [KeeperEvent] = []
}

extension Reconciler {
    mutating func beginHeal(isFirst: Bool = false) -> [Action] {
        guard let running else { return [] }
        healer.take()
        work = .heal(HealWork(isFirst: isFirst))
        return [
            .observe(names.resolved(running.intent.configuration), backend: running.intent.backend)
        ]
    }

    mutating func proceed(
        _ given: HealWork, with observation: Observation, _ now: Moment
    ) -> [Action] {
        work = .none
        guard let running else { return [] }
        var desired: DesiredTunnel
        do throws(KeeperFailure) {
            desired = try decide(running.intent, observation).desired
        } catch {
            // The host is not as the configuration needs it now; it is told, and what is there
            // stays.
            return announceFailure(error.message, now)
        }
        // Whoever moves the packets now goes on; only a request changes that.
        if let state = observation.state { desired.backend = state.backend }
        let all = steps(from: observation.state, to: desired, previous: running.desired, now)
        let isRebuild = observation.state == nil
        let changes =
            isRebuild
            ? all : mending(all, desired: desired, previous: running.desired)
        self.running?.desired = desired
        clock.begin(observation.facts.ownPublicKey, now)
        guard !changes.isEmpty else { return [] }
        var heal = given
        heal.changes = changes
        heal.isRebuild = isRebuild
        heal.lines = events(changes, previous: running.desired, isRebuild: isRebuild)
        let measure = clockMeasure(for: desired, observation, now)
        heal.changes = heeding(measure, changes, observation.state)
        work = .heal(heal)
        return take(measure, now) + [.perform(heal.changes, all: !isRebuild)]
    }

    mutating func proceed(
        _ heal: HealWork, after failures: [StepFailure], _ now: Moment
    ) -> [Action] {
        work = .none
        var actions: [Action] = []
        let isContested = !heal.isFirst && healer.spend(now: now.milliseconds)
        if let first = failures.first {
            healer.markFailed(now: now.milliseconds)
            actions += announceFailure(
                "cannot mend \(name): \(line(heal.changes[first.index])): \(first.failure.message)",
                now)
        }
        if heal.isRebuild, !failures.isEmpty { return actions }
        for event in heal.lines where healer.isNews(event.message, now: now.milliseconds) {
            actions.append(.announce(event))
        }
        if isContested {
            let event = KeeperEvent(
                .contested,
                "somebody keeps changing \(name); from now on it is mended once in "
                    + "\(Healer.refillTime / 1000) s; find the program that manages this interface "
                    + "too (systemd-networkd: ManageForeignRoutes=no)")
            if healer.isNews(event.message, now: now.milliseconds) {
                actions.append(.announce(event))
            }
        }
        return actions
    }

    /// At most two lines: what was decided anew is followed, the rest was taken by others. Ten thousand
    /// routes that somebody flushed are no ten thousand warnings (C109).
    private func events(
        _ changes: [Change], previous: DesiredTunnel?, isRebuild: Bool
    ) -> [KeeperEvent] {
        if isRebuild {
            return [KeeperEvent(.healed, "\(name) was removed by somebody else; it is made again")]
        }
        var followed: [Change] = []
        var taken: [Change] = []
        for change in changes {
            if let previous, belongs(change, to: previous) {
                taken.append(change)
            } else {
                followed.append(change)
            }
        }
        var events: [KeeperEvent] = []
        if !followed.isEmpty {
            events.append(KeeperEvent(.followed, "\(name): \(summary(of: followed))"))
        }
        if !taken.isEmpty {
            let what = taken.count == 1 ? "it" : "\(taken.count) things, they are back"
            events.append(
                KeeperEvent(
                    .healed,
                    "\(name): somebody else removed or changed \(what): \(summary(of: taken))"))
        }
        return events
    }

    private func summary(of changes: [Change]) -> String {
        let shown = 4
        let rest = changes.count > shown ? ", and \(changes.count - shown) more" : ""
        return changes.prefix(shown).map { line($0) }.joined(separator: ", ") + rest
    }

    private func belongs(_ change: Change, to desired: DesiredTunnel) -> Bool {
        switch change {
        case .addAddress(let address): desired.host.addresses.contains(address)
        case .addRoute(let route): desired.host.routes.contains(route)
        case .addRule(let rule): desired.host.rules.contains(rule)
        case .setMTU(let mtu): desired.host.mtu == mtu
        case .setUp(let isUp): desired.host.isUp == isUp
        case .setDNS(let dns): desired.host.dns == dns
        case .setFirewall(let firewall): desired.host.firewall == firewall
        case .setSetting(let setting, let value): desired.host.settings[setting] == value
        case .setDevice(let device): desired.device.fwmark == device.fwmark
        default: false
        }
    }
}

// MARK: endpoints with names

extension Reconciler {
    mutating func giveEndpoints(_ observation: Observation, _ now: Moment) -> [Action] {
        work = .none
        guard let state = observation.state else {
            names.postpone(now: now.milliseconds)
            healer.mark(now: now.milliseconds)
            return []
        }
        let (held, news) = endpointsAfterHold(state, now)
        let decided =
            names.check(
                state.device.peers, now: now.milliseconds, wallSeconds: now.wallSeconds) + held
        let lookups = lookUpNames(now) + news
        guard !decided.isEmpty else { return lookups }
        let changes = decided.map { key, endpoint in
            var change = PeerChange(publicKey: key)
            change.updateOnly = true
            change.endpoint = endpoint
            return Change.changePeer(change)
        }
        work = .endpoints(
            decided.dropLast(held.count).map { key, endpoint in
                "peer \(key.base64) is reached at \(endpoint) (\(names.host(of: key)))"
            })
        return lookups + [.perform(changes, all: true)]
    }

    mutating func finishEndpoints(
        _ lines: [String], _ failures: [StepFailure], _ now: Moment
    ) -> [Action] {
        work = .none
        guard let first = failures.first else {
            return lines.map { .announce(KeeperEvent(.endpoint, $0)) }
        }
        return announceFailure("cannot set an endpoint: \(first.failure.message)", now)
    }
}
