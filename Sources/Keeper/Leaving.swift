// SPDX-License-Identifier: Apache-2.0
// Down: everything that was made is taken back, then nothing is left to keep.
import TunnelPlan
import WireGuard

struct DownWork: Equatable, Sendable {
    enum Reason: Equatable, Sendable {
        case requested
        /// Of the first configuration, in time.
        case unconfirmed
        /// The keeper before this one was about to.
        case resumed
    }

    enum Stage: Equatable, Sendable {
        case preDown, looking
        case undoing([Change])
        case postDown
    }

    /// nil: nobody waits for an answer.
    let id: RequestID?
    let intent: Intent?
    var reason = Reason.requested
    /// False: what an interrupted start left is removed, and the keeper waits for a request.
    var endsKeeper = true
    var stage = Stage.preDown
    /// What could not be done.
    var failures: [String] = []
    var kind = KeeperFailure.Kind.failed
}

extension Reconciler {
    mutating func down(_ id: RequestID, _ options: DownOptions) -> [Action] {
        guard case .none = work else { return [.answer(id, .failure(busy))] }
        let begin = beginDown(DownWork(id: id, intent: running?.intent))
        bootAt = nil
        guard boot.intent != nil, !options.staysPersistent else { return begin }
        boot.intent = nil
        return [.persist(nil)] + begin
    }

    mutating func beginDown(_ given: DownWork) -> [Action] {
        retryDownAt = nil
        var next = stored
        next.pending = nil
        next.phase = .ending
        let commands = given.intent?.commands(.preDown) ?? []
        let saving = save(next)
        var down = given
        down.stage = commands.isEmpty ? .looking : .preDown
        work = .down(down)
        return saving + [commands.isEmpty ? .inspect : .run(commands)]
    }

    mutating func proceed(
        _ given: DownWork, with observation: Observation, _ now: Moment
    ) -> [Action] {
        var down = given
        let changes = observation.state.map { undo(of: $0) } ?? leftovers
        guard !changes.isEmpty else { return runPostDown(down, now) }
        down.stage = .undoing(changes)
        work = .down(down)
        let label: [Action] = observation.state == nil ? [] : [.readLabel(isLast: true)]
        // One thing that cannot be removed is no reason to leave the others.
        return label + [.perform(changes, all: true)]
    }

    /// Who removed the link left what does not go with it.
    private var leftovers: [Change] {
        guard let desired = running?.desired else { return [] }
        let state = TunnelState(
            backend: .userspace, device: DeviceSnapshot(), host: desired.host)
        return undo(of: state).filter { $0 != .removeLink }
    }

    mutating func proceed(
        _ given: DownWork, after failures: [StepFailure], _ now: Moment
    ) -> [Action] {
        guard case .undoing(let changes) = given.stage else { return [] }
        guard let first = failures.first else { return runPostDown(given, now) }
        return finish(
            given, failures: failures.map { "\(line(changes[$0.index])): \($0.failure.message)" },
            kind: first.failure.kind, now)
    }

    private mutating func runPostDown(_ given: DownWork, _ now: Moment) -> [Action] {
        let commands = given.intent?.commands(.postDown) ?? []
        guard !commands.isEmpty else { return finish(given, failures: [], kind: .failed, now) }
        var down = given
        down.stage = .postDown
        work = .down(down)
        return [.run(commands)]
    }

    mutating func proceed(
        _ given: DownWork, afterCommands failure: KeeperFailure?, _ now: Moment
    ) -> [Action] {
        var down = given
        // A command that fails keeps nobody from leaving; it is told.
        if let failure { down.failures.append(failure.message) }
        guard down.stage == .preDown else {
            return finish(down, failures: [], kind: .failed, now)
        }
        down.stage = .looking
        work = .down(down)
        return [.inspect]
    }

    /// `failures` keep the keeper here: `down` can be asked for again.
    mutating func finish(
        _ down: DownWork, failures: [String], kind: KeeperFailure.Kind, _ now: Moment
    ) -> [Action] {
        work = .none
        guard failures.isEmpty else {
            let what = "cannot take \(name) down: \(failures.joined(separator: "; "))"
            guard let id = down.id else {
                retryDownAt = now.milliseconds + Healer.retryTime
                return announceFailure("\(what); it is tried again", now)
            }
            let message = "\(what); run down again"
            return [
                .announce(KeeperEvent(.failed, message)),
                .answer(id, .failure(KeeperFailure(kind, message))),
            ]
        }
        retryDownAt = nil
        running = nil
        names = names.emptied()
        clock.end()
        var actions = save(Stored())
        if let id = down.id {
            let told = down.failures.joined(separator: "; ")
            actions.append(
                .answer(id, down.failures.isEmpty ? .down : .failure(KeeperFailure(.failed, told))))
        }
        if down.endsKeeper {
            let why =
                down.reason == .unconfirmed ? ": nobody confirmed its first configuration" : ""
            actions.append(.announce(KeeperEvent(.ended, "\(name) is down\(why)")))
            actions.append(.end)
        } else if down.reason != .resumed {
            // What an interrupted start had made is gone.
            actions += bringUpAtBoot(now)
        }
        return actions
    }
}
