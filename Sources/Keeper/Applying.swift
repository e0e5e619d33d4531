// SPDX-License-Identifier: Apache-2.0
// A configuration becomes the tunnel: look, decide, write down, perform, and when a step fails go
// back to what was (C62).
import TunnelPlan
import WireGuard

struct ApplyWork: Equatable, Sendable {
    enum Origin: Equatable, Sendable {
        case request(RequestID, ApplyOptions)
        /// Nobody confirmed.
        case reverted
        /// The keeper before this one died half way.
        case resumed
        /// The machine began.
        case booted
    }

    enum Stage: Equatable, Sendable {
        case observing
        case preUp, performing, postUp
        /// Going back, because of this.
        case lookingBack(KeeperFailure)
        case goingBack(KeeperFailure, [Change])
    }

    let origin: Origin
    let intent: Intent
    var stage = Stage.observing
    /// As it was found.
    var before: TunnelState?
    var desired = DesiredTunnel()
    var changes: [Change] = []
    var issues: [Issue] = []
    var warnings: [String] = []
    /// Of a configuration before it that nobody has confirmed yet.
    var formerDeadline: Int64?
    var measure = ClockGuard.Measure.none
    var ownKey: PublicKey?

    init(origin: Origin, intent: Intent) {
        self.origin = origin
        self.intent = intent
    }
}

extension Reconciler {
    mutating func apply(
        _ id: RequestID, _ intent: Intent, _ options: ApplyOptions, _ now: Moment
    ) -> [Action] {
        guard case .none = work else { return [.answer(id, .failure(busy))] }
        var intent = intent
        // The newest of what is there, or the file would bring back an old one.
        intent.isPersistent =
            intent.isPersistent || boot.intent != nil || stored.pending?.isPersistent == true
        if intent.hooks == .refuse, !intent.configuration.interface.hooks.isEmpty {
            let message =
                "the configuration of \(name) has \(intent.configuration.interface.hooks.count) "
                + "commands for a shell; read them, then allow or ignore them"
            return [.answer(id, .failure(KeeperFailure(.configurationInvalid, message)))]
        }
        return beginApply(ApplyWork(origin: .request(id, options), intent: intent), now)
    }

    var busy: KeeperFailure {
        KeeperFailure(.busy, "\(name) is being changed by another request; try again")
    }

    mutating func beginApply(_ given: ApplyWork, _ now: Moment) -> [Action] {
        work = .apply(given)
        // What is known about names that stay helps; the names themselves change on success.
        var book = names
        book.update(for: given.intent.configuration, now: now.milliseconds)
        return [
            .observe(book.resolved(given.intent.configuration), backend: given.intent.backend)
        ]
    }

    mutating func proceed(
        _ given: ApplyWork, with observation: Observation, _ now: Moment
    ) -> [Action] {
        if case .lookingBack(let cause) = given.stage {
            return goBack(given, from: observation.state, because: cause)
        }
        var apply = given
        do throws(KeeperFailure) {
            let decision = try decide(apply.intent, observation)
            apply.desired = decision.desired
            apply.issues = decision.issues
            apply.warnings = decision.warnings
            // Absent means "leave" (C58), but the mark may be one of the interrupted change.
            if apply.origin == .resumed, apply.desired.device.fwmark == nil {
                apply.desired.device.fwmark = 0
            }
        } catch {
            return refuse(apply, error, now)
        }
        apply.before = observation.state
        var options = ApplyOptions()
        if case .request(_, let given) = apply.origin { options = given }
        apply.changes = steps(
            from: observation.state, to: apply.desired, previous: running?.desired, now,
            renews: options.renewsLink)
        if apply.origin == .resumed, let state = observation.state {
            apply.changes += greetings(of: state, apply.desired)
        }
        if case .request(let id, _) = apply.origin, options.isDryRun {
            work = .none
            let plan = Applied(plan: document(of: apply), warnings: apply.warnings)
            return [.answer(id, .planned(plan))]
        }
        apply.measure = clockMeasure(for: apply.desired, observation, now)
        apply.ownKey = observation.facts.ownPublicKey
        apply.changes = heeding(apply.measure, apply.changes, observation.state)
        guard !apply.changes.isEmpty else { return commit(apply, now) }
        var next = stored
        apply.formerDeadline = stored.deadline
        next.pending = apply.intent
        next.phase = .applying
        return save(next) + beginSteps(apply, now)
    }

    /// The keeper that died may have exchanged the link and greeted nobody: who has had no handshake
    /// with this one, and could be waiting for the one before it.
    private func greetings(of state: TunnelState, _ desired: DesiredTunnel) -> [Change] {
        let quiet = Set(desired.peers.filter { $0.keepalive == 0 }.map(\.publicKey))
        let keys = state.device.peers.filter {
            $0.lastHandshakeSeconds == 0 && $0.endpoint != nil && quiet.contains($0.publicKey)
        }.map(\.publicKey)
        return keys.isEmpty || !desired.host.isUp ? [] : [.greetPeers(keys)]
    }

    private func document(of apply: ApplyWork) -> PlanDocument {
        var document = PlanDocument(
            name: name, changes: apply.changes, issues: apply.issues,
            configuration: apply.intent.configuration)
        document.formerForwards = apply.before?.host.firewall?.forwards ?? []
        return document
    }

    private mutating func beginSteps(_ given: ApplyWork, _ now: Moment) -> [Action] {
        var apply = given
        let commands = apply.before == nil ? apply.intent.commands(.preUp) : []
        apply.stage = commands.isEmpty ? .performing : .preUp
        work = .apply(apply)
        return commands.isEmpty ? makeSteps(apply, now) : [.run(commands)]
    }

    private mutating func makeSteps(_ apply: ApplyWork, _ now: Moment) -> [Action] {
        take(apply.measure, now) + [.perform(apply.changes, all: false)]
    }

    mutating func proceed(
        _ given: ApplyWork, afterCommands failure: KeeperFailure?, _ now: Moment
    ) -> [Action] {
        var apply = given
        if let failure { return lookBack(apply, because: failure) }
        guard apply.stage == .preUp else { return commit(apply, now) }
        apply.stage = .performing
        work = .apply(apply)
        return makeSteps(apply, now)
    }

    mutating func proceed(
        _ given: ApplyWork, after failures: [StepFailure], _ now: Moment
    ) -> [Action] {
        var apply = given
        switch apply.stage {
        case .goingBack(let cause, let changes):
            return finishGoingBack(apply, cause, changes, failures, now)
        case .performing:
            if let first = failures.first {
                return lookBack(apply, because: failure(of: first, apply.changes))
            }
            let commands = apply.before == nil ? apply.intent.commands(.postUp) : []
            guard !commands.isEmpty else { return commit(apply, now) }
            apply.stage = .postUp
            work = .apply(apply)
            return [.run(commands)]
        case .observing, .preUp, .postUp, .lookingBack: return []
        }
    }

    private func failure(of step: StepFailure, _ changes: [Change]) -> KeeperFailure {
        KeeperFailure(
            step.failure.kind,
            "step \(step.index + 1) of \(changes.count) of \(name) failed: "
                + "\(line(changes[step.index])): \(step.failure.message)")
    }
}

// MARK: it worked

extension Reconciler {
    private mutating func commit(_ apply: ApplyWork, _ now: Moment) -> [Action] {
        work = .none
        let former = stored.confirmed
        running = Running(intent: apply.intent, desired: apply.desired)
        names.update(for: apply.intent.configuration, now: now.milliseconds)
        clock.begin(apply.ownKey, now)
        var next = Stored()
        var options = ApplyOptions()
        if case .request(_, let given) = apply.origin { options = given }
        if let seconds = options.confirmSeconds {
            next.confirmed = former
            next.pending = apply.intent
            next.phase = .unconfirmed(deadline: now.milliseconds + Int64(seconds) * 1000)
        } else {
            next.confirmed = apply.intent
        }
        bootAt = nil
        var actions = save(next) + persist(next.confirmed)
        switch apply.origin {
        case .request(let id, _):
            let result = Applied(
                plan: document(of: apply), warnings: apply.warnings,
                confirmSeconds: options.confirmSeconds)
            actions += [
                .answer(id, .applied(result)),
                .announce(KeeperEvent(.applied, "\(name): \(apply.changes.count) changes applied")),
            ]
        case .reverted:
            actions.append(
                .announce(
                    KeeperEvent(
                        .reverted,
                        "nobody confirmed the change of \(name) in time; the former state is back"))
            )
        case .resumed:
            let text = "\(name): a change was interrupted; the last good configuration is in force"
            actions.append(.announce(KeeperEvent(.rolledBack, text)))
        case .booted:
            actions.append(
                .announce(
                    KeeperEvent(.applied, "\(name) is up again, as it was before the machine began")
                )
            )
        }
        return actions + lookUpNames(now)
    }

    private mutating func persist(_ confirmed: Intent?) -> [Action] {
        guard let confirmed, confirmed.isPersistent, confirmed != boot.intent else { return [] }
        boot.intent = confirmed
        return [.persist(confirmed)]
    }

    mutating func confirm(_ id: RequestID) -> [Action] {
        guard case .none = work else { return [.answer(id, .failure(busy))] }
        guard stored.deadline != nil, let pending = stored.pending else {
            let failure = KeeperFailure(.failed, "nothing of \(name) waits for a confirmation")
            return [.answer(id, .failure(failure))]
        }
        var next = Stored()
        next.confirmed = pending
        return save(next) + persist(pending) + [
            .answer(id, .confirmed),
            .announce(KeeperEvent(.confirmed, "the change of \(name) is confirmed")),
        ]
    }

    /// The time is over.
    mutating func revert(_ now: Moment) -> [Action] {
        guard let former = stored.confirmed else {
            return beginDown(
                DownWork(id: nil, intent: running?.intent, reason: .unconfirmed))
        }
        return beginApply(ApplyWork(origin: .reverted, intent: former), now)
    }
}

// MARK: it did not

extension Reconciler {
    mutating func proceed(
        _ apply: ApplyWork, withoutObservation failure: KeeperFailure, _ now: Moment
    ) -> [Action] {
        guard case .lookingBack(let cause) = apply.stage else { return refuse(apply, failure, now) }
        return finish(
            apply, now,
            KeeperFailure(
                cause.kind,
                "\(cause.message); and the former state could not be restored: "
                    + "\(failure.message)"))
    }

    /// Before anything was touched.
    private mutating func refuse(
        _ apply: ApplyWork, _ failure: KeeperFailure, _ now: Moment
    ) -> [Action] {
        work = .none
        switch apply.origin {
        case .request(let id, _): return [.answer(id, .failure(failure))]
        case .reverted, .resumed, .booted: return retryLater(apply, failure.message, now)
        }
    }

    /// Steps were made: first see what is there now.
    private mutating func lookBack(_ given: ApplyWork, because cause: KeeperFailure) -> [Action] {
        var apply = given
        apply.stage = .lookingBack(cause)
        work = .apply(apply)
        return [.inspect]
    }

    private mutating func goBack(
        _ given: ApplyWork, from state: TunnelState?, because cause: KeeperFailure
    ) -> [Action] {
        var apply = given
        let changes = stepsBack(from: state, to: apply.before)
        apply.stage = .goingBack(cause, changes)
        work = .apply(apply)
        return [.perform(changes, all: true)]
    }

    private mutating func finishGoingBack(
        _ apply: ApplyWork, _ cause: KeeperFailure, _ changes: [Change],
        _ failures: [StepFailure], _ now: Moment
    ) -> [Action] {
        let end: String
        if let first = failures.first {
            end =
                "and the former state could not be restored: \(line(changes[first.index])): "
                + first.failure.message
        } else if apply.before == nil {
            end = "what had been made is removed"
        } else {
            end = "the former state is back"
        }
        return finish(apply, now, KeeperFailure(cause.kind, "\(cause.message); \(end)"))
    }

    private mutating func finish(
        _ apply: ApplyWork, _ now: Moment, _ failure: KeeperFailure
    ) -> [Action] {
        work = .none
        if running == nil { clock.end() }
        switch apply.origin {
        case .request(let id, _):
            var next = stored
            next.pending = nil
            next.phase = nil
            if let deadline = apply.formerDeadline {
                next.pending = running?.intent
                next.phase = .unconfirmed(deadline: deadline)
            }
            return save(next) + [
                .answer(id, .failure(failure)),
                .announce(KeeperEvent(.rolledBack, failure.message)),
            ]
        case .reverted, .resumed, .booted: return retryLater(apply, failure.message, now)
        }
    }

    /// For what must come about even if it fails at first.
    private mutating func retryLater(
        _ apply: ApplyWork, _ message: String, _ now: Moment
    ) -> [Action] {
        if apply.origin == .reverted {
            var next = stored
            next.pending = running?.intent
            next.phase = .unconfirmed(deadline: now.milliseconds + Healer.retryTime)
            return save(next) + announceFailure(message, now)
        }
        if apply.origin == .booted {
            // For ever, and with its commands: the network may come late (C90).
            bootAt = now.milliseconds + Healer.retryTime
            return save(Stored()) + announceFailure("\(message); it is tried again", now)
        }
        // Healing brings back what is missing; it is tried for ever.
        healer.markFailed(now: now.milliseconds)
        var next = stored
        next.pending = nil
        next.phase = nil
        return save(next) + announceFailure(message, now)
    }
}
