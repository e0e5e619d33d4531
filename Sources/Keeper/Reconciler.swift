// SPDX-License-Identifier: Apache-2.0
// What to do next for one tunnel: an event in, actions out. No clock, no socket, no host: the caller
// performs the actions in their order, and gives back the answer of those that have one as the next
// event. One piece of work is done at a time.
import TunnelPlan
import WireGuard

/// A point in time on two clocks.
public struct Moment: Equatable, Sendable {
    /// CLOCK_BOOTTIME: goes on while the machine sleeps, never jumps. Milliseconds.
    public var milliseconds: Int64
    /// Since 1970.
    public var wallSeconds: Int64

    public init(milliseconds: Int64, wallSeconds: Int64) {
        self.milliseconds = milliseconds
        self.wallSeconds = wallSeconds
    }
}

/// Tells requests apart; the caller's.
public typealias RequestID = UInt64

public struct Reconciler: Sendable {
    public enum Event: Sendable {
        /// Once, at the beginning: what the keeper before this one left.
        case start(Stored, Boot)
        case apply(RequestID, Intent, ApplyOptions)
        case confirm(RequestID)
        case down(RequestID, DownOptions)
        case host(HostEvent)
        /// Not before `nextTime`; earlier ones do no harm.
        case tick
        // Answers to actions.
        case observed(Observation)
        case observationFailed(KeeperFailure)
        /// Empty: every step was made.
        case performed([StepFailure])
        /// nil: all ended with 0.
        case commandsRun(KeeperFailure?)
        /// See `TunnelHost.latestLabel`.
        case label(Int64?, isLast: Bool)
        /// The keeper is about to end, the tunnel stays.
        case leaving
    }

    public enum Action: Equatable, Sendable {
        /// Look at the host: state and facts for this configuration. Answered by `.observed` or
        /// `.observationFailed`.
        case observe(ConfigurationFile, backend: BackendKind?)
        /// Look at the tunnel only. Answered as `observe`.
        case inspect
        /// Answered by `.performed`. `all`: a step that fails does not keep the rest from being
        /// made.
        case perform([Change], all: Bool)
        /// Answered by `.commandsRun`.
        case run([ConfigurationText])
        case resolve(HostName)
        case save(Stored)
        /// What is to come back with the machine; nil: nothing.
        case persist(Intent?)
        /// Of the engine that is made next; see `TunnelHost`. Seconds since 1970.
        case raiseFloor(Int64)
        /// Answered by `.label`.
        case readLabel(isLast: Bool)
        case record(ClockRecord)
        case answer(RequestID, Answer)
        case announce(KeeperEvent)
        /// The tunnel is gone, nothing is left to keep.
        case end
    }

    let name: InterfaceName
    /// What should be there; nil: nobody has said yet, or it is being taken down.
    var running: Running?
    var stored = Stored()
    var names: NameBook
    var healer = Healer()
    var clock = ClockGuard()
    var work = Work.none
    /// When a way down that nobody asked for is tried again.
    var retryDownAt: Int64?
    var boot = Boot()
    /// When bringing up what comes back with the machine is tried again.
    var bootAt: Int64?

    /// `seed`: for the jitter of lookups.
    public init(name: InterfaceName, seed: UInt64) {
        self.name = name
        names = NameBook(seed: seed)
    }

    /// Milliseconds of the moments' first clock: when a tick is due. nil: only events count.
    public var nextTime: Int64? {
        guard stored.phase != .ending else { return retryDownAt }
        guard running != nil || stored.deadline != nil else { return bootAt }
        return
            [names.nextTime, healer.dueAt, stored.deadline, clock.nextTime].compactMap { $0 }.min()
    }

    /// Nothing is kept and nothing is under way.
    public var isVacant: Bool {
        if case .none = work {
            running == nil && stored == Stored() && bootAt == nil
        } else {
            false
        }
    }

    public mutating func handle(_ event: Event, at now: Moment) -> [Action] {
        switch event {
        case .start(let stored, let boot): start(stored, boot, now)
        case .apply(let id, let intent, let options): apply(id, intent, options, now)
        case .confirm(let id): confirm(id)
        case .down(let id, let options): down(id, options)
        case .host(let event): hear(event, now)
        case .tick: tick(now)
        case .observed(let observation): proceed(with: observation, now)
        case .observationFailed(let failure): giveUpObserving(failure, now)
        case .performed(let failures): proceed(after: failures, now)
        case .commandsRun(let failure): proceed(afterCommands: failure, now)
        case .label(let seconds, let isLast):
            clock.saw(seconds, isLast: isLast).map { [.record($0)] } ?? []
        case .leaving: running == nil ? [] : [.readLabel(isLast: true)]
        }
    }
}

// MARK: what it knows

struct Running: Equatable, Sendable {
    var intent: Intent
    /// As it was decided last; nil: not yet.
    var desired: DesiredTunnel?
}

public struct ApplyOptions: Equatable, Sendable {
    /// Say what would be done.
    public var isDryRun = false
    /// Seconds, 1 or more: the former state comes back without a confirmation in that time.
    public var confirmSeconds: UInt32?
    /// A new link takes the place of the one there is, also where nothing asks for it.
    public var renewsLink = false
    public init() {}
}

public struct DownOptions: Equatable, Sendable {
    /// What comes back with the machine still does.
    public var staysPersistent = false
    public init() {}
}

/// What was found when the host was asked.
public struct Observation: Equatable, Sendable {
    public var state: TunnelState?
    /// Empty after `inspect`.
    public var facts: HostFacts
    public var backend: BackendChoice?

    public init(state: TunnelState?, facts: HostFacts = HostFacts(), backend: BackendChoice? = nil)
    {
        self.state = state
        self.facts = facts
        self.backend = backend
    }
}

public struct StepFailure: Equatable, Sendable {
    /// In the list that was to be performed.
    public var index: Int
    public var failure: KeeperFailure

    public init(index: Int, _ failure: KeeperFailure) {
        self.index = index
        self.failure = failure
    }
}

/// What outlives the keeper.
public struct Stored: Equatable, Sendable {
    public enum Phase: Equatable, Sendable {
        /// Its steps are being made. Who finds this makes what is there whole again.
        case applying
        /// In force; without a confirmation by this time (CLOCK_BOOTTIME, milliseconds) `confirmed`
        /// comes back.
        case unconfirmed(deadline: Int64)
        /// Being taken down.
        case ending
    }

    /// The last good configuration.
    public var confirmed: Intent?
    /// The one after it.
    public var pending: Intent?
    public var phase: Phase?

    public init() {}

    var deadline: Int64? {
        if case .unconfirmed(let deadline) = phase { deadline } else { nil }
    }
}

public enum Answer: Equatable, Sendable {
    /// `planned`: nothing was done.
    case applied(Applied)
    case planned(Applied)
    case confirmed
    case down
    case failure(KeeperFailure)
}

public struct Applied: Equatable, Sendable {
    public var plan: PlanDocument
    public var warnings: [String]
    /// Seconds until the former state comes back.
    public var confirmSeconds: UInt32?

    public init(plan: PlanDocument, warnings: [String] = [], confirmSeconds: UInt32? = nil) {
        self.plan = plan
        self.warnings = warnings
        self.confirmSeconds = confirmSeconds
    }

    public var changes: [Change] { plan.changes }
}

enum Work: Equatable, Sendable {
    case none
    case apply(ApplyWork)
    case heal(HealWork)
    case endpoints([String])
    case down(DownWork)
}

// MARK: beginning, clock, host

extension Reconciler {
    private mutating func start(_ found: Stored, _ boot: Boot, _ now: Moment) -> [Action] {
        stored = found
        self.boot = boot
        clock.start(boot.clock)
        if found == Stored() { return bringUpAtBoot(now) }
        let current = found.phase == .applying ? found.confirmed : found.pending ?? found.confirmed
        switch found.phase {
        case .ending:
            // Who started this keeper may be about to ask for another tunnel.
            return beginDown(
                DownWork(id: nil, intent: found.confirmed, reason: .resumed, endsKeeper: false))
        case .applying:
            // Died half way: nobody knows which steps were made, so all of them count.
            guard let current else {
                return beginDown(DownWork(id: nil, intent: nil, endsKeeper: false))
            }
            running = Running(intent: current)
            names.update(for: current.configuration, now: now.milliseconds)
            return beginApply(ApplyWork(origin: .resumed, intent: current), now)
        case .unconfirmed, nil:
            guard let current else { return [] }
            running = Running(intent: current)
            names.update(for: current.configuration, now: now.milliseconds)
            return lookUpNames(now) + beginHeal(isFirst: true)
        }
    }

    /// From what was kept, without anybody to ask (C64).
    mutating func bringUpAtBoot(_ now: Moment) -> [Action] {
        guard boot.isDue, let intent = boot.intent else { return [] }
        bootAt = nil
        return beginApply(ApplyWork(origin: .booted, intent: intent), now)
    }

    private mutating func hear(_ event: HostEvent, _ now: Moment) -> [Action] {
        switch event {
        case .ownEcho: break
        case .tunnelChanged, .pathsChanged, .overflow:
            if running != nil { healer.mark(now: now.milliseconds) }
            // What was missing may have come.
            bootAt = bootAt.map { min($0, now.milliseconds + Healer.settlingTime) }
        case .resolved(let host, let addresses):
            if names.didResolve(host, addresses, now: now.milliseconds) {
                healer.mark(now: now.milliseconds)
            }
        case .unresolved(let host, let reason, let isFinal):
            let event = names.didFailToResolve(
                host, reason: reason, isFinal: isFinal, now: now.milliseconds)
            return event.map { [.announce($0)] } ?? []
        }
        return []
    }

    private mutating func tick(_ now: Moment) -> [Action] {
        guard case .none = work else { return [] }
        // What is being taken down is not mended.
        if stored.phase == .ending {
            guard let retryDownAt, retryDownAt <= now.milliseconds else { return [] }
            return beginDown(DownWork(id: nil, intent: running?.intent))
        }
        if let deadline = stored.deadline, deadline <= now.milliseconds { return revert(now) }
        guard running != nil else {
            guard let bootAt, bootAt <= now.milliseconds else { return [] }
            return bringUpAtBoot(now)
        }
        let lookups = lookUpNames(now) + (clock.takeLook(now) ? [.readLabel(isLast: false)] : [])
        if let due = healer.dueAt, due <= now.milliseconds { return lookups + beginHeal() }
        if isCheckOfEndpointsDue(now) {
            work = .endpoints([])
            return lookups + [.inspect]
        }
        return lookups
    }

    mutating func lookUpNames(_ now: Moment) -> [Action] {
        names.takeDueLookups(now: now.milliseconds).map { .resolve($0) }
    }

    /// Saves what is different from what was saved.
    mutating func save(_ new: Stored) -> [Action] {
        guard new != stored else { return [] }
        stored = new
        return [.save(new)]
    }
}

// MARK: answers go to the work that asked

extension Reconciler {
    private mutating func proceed(with observation: Observation, _ now: Moment) -> [Action] {
        switch work {
        case .none: []
        case .apply(let work): proceed(work, with: observation, now)
        case .heal(let work): proceed(work, with: observation, now)
        case .endpoints: giveEndpoints(observation, now)
        case .down(let work): proceed(work, with: observation, now)
        }
    }

    private mutating func giveUpObserving(_ failure: KeeperFailure, _ now: Moment) -> [Action] {
        switch work {
        case .none: return []
        case .apply(let work): return proceed(work, withoutObservation: failure, now)
        case .down(let work):
            return finish(
                work, failures: [failure.message], kind: failure.kind, now)
        case .heal, .endpoints:
            work = .none
            names.postpone(now: now.milliseconds)
            healer.markFailed(now: now.milliseconds)
            return announceFailure(failure.message, now)
        }
    }

    private mutating func proceed(after failures: [StepFailure], _ now: Moment) -> [Action] {
        switch work {
        case .none: []
        case .apply(let work): proceed(work, after: failures, now)
        case .heal(let work): proceed(work, after: failures, now)
        case .endpoints(let lines): finishEndpoints(lines, failures, now)
        case .down(let work): proceed(work, after: failures, now)
        }
    }

    private mutating func proceed(
        afterCommands failure: KeeperFailure?, _ now: Moment
    ) -> [Action] {
        switch work {
        case .apply(let work): proceed(work, afterCommands: failure, now)
        case .down(let work): proceed(work, afterCommands: failure, now)
        case .none, .heal, .endpoints: []
        }
    }

    /// The same failure again and again is one line (C109).
    mutating func announceFailure(_ message: String, _ now: Moment) -> [Action] {
        guard healer.isNews(message, now: now.milliseconds) else { return [] }
        return [.announce(KeeperEvent(.failed, message))]
    }
}

// MARK: status

extension Reconciler {
    var phase: KeeperStatus.Phase {
        if stored.phase == .ending { return .ending }
        if running == nil { return .waiting }
        return stored.deadline == nil ? .up : .unconfirmed
    }

    var deadline: Int64? { stored.deadline }
    var unresolved: [HostName] { names.unresolved }
}
