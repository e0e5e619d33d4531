// SPDX-License-Identifier: Apache-2.0
import TunnelPlan
import WireGuard

@testable import Keeper

/// A host in memory, over TunnelPlan's strict model: a step that does not fit fails.
struct MemoryHost: TunnelHost {
    private(set) var model = TunnelModel()
    var events: [HostEvent] = []
    /// The next steps that fail, counted from the next one: [0] is the next.
    var failingSteps: Set<Int> = []
    var snapshotFailure: KeeperFailure?
    var defaultRouteMTU: UInt32?
    var ownPublicKey: PublicKey?
    /// Whom "the best there is" stands for.
    var best = BackendKind.userspace
    /// Of the handshakes that were sent, in seconds since 1970.
    var label: Int64?
    /// What the engine was made with.
    private(set) var floor: Int64?
    private(set) var performed: [Change] = []
    private(set) var lookups: [HostName] = []
    private var step = 0

    var state: TunnelState? {
        get { model.state }
        set { model = TunnelModel(newValue) }
    }

    mutating func fail(steps: Int...) {
        failingSteps = Set(steps)
        step = 0
    }

    mutating func forgetLog() { performed = [] }

    // MARK: TunnelHost

    mutating func snapshot() throws(KeeperFailure) -> TunnelState? {
        if let snapshotFailure { throw snapshotFailure }
        model.dropReplacement()
        return state
    }

    mutating func facts(for configuration: ConfigurationFile) throws(KeeperFailure) -> HostFacts {
        var facts = HostFacts()
        facts.current = state
        facts.defaultRouteMTU = defaultRouteMTU
        facts.ownPublicKey = ownPublicKey
        return facts
    }

    mutating func chooseBackend(
        _ preference: BackendKind?
    ) throws(KeeperFailure) -> BackendChoice {
        BackendChoice(preference ?? best, note: preference == nil ? "no kernel here" : nil)
    }

    mutating func perform(_ change: Change) throws(KeeperFailure) {
        defer { step += 1 }
        if failingSteps.remove(step) != nil { throw KeeperFailure(.failed, "told to fail") }
        // What others have taken away need not be taken away.
        if state == nil, change.isWithdrawal { return }
        do throws(ModelError) {
            try model.apply(change)
        } catch {
            throw KeeperFailure(.failed, error.description)
        }
        performed.append(change)
    }

    var descriptors: [Int32] { [] }

    mutating func drainEvents() -> [HostEvent] {
        defer { events = [] }
        return events
    }

    mutating func resolve(_ name: HostName) { lookups.append(name) }

    mutating func raiseFloor(to seconds: Int64) {
        precondition(state == nil, "the floor comes before the device")
        floor = seconds
    }

    mutating func latestLabel() -> Int64? { label }
}

extension Change {
    var isWithdrawal: Bool {
        switch self {
        case .removeRule, .setDNS(nil), .setFirewall(nil), .setSetting(_, nil): true
        default: false
        }
    }
}

/// A reconciler with everything around it in memory: performs its actions, keeps what it says.
struct Simulation {
    var host = MemoryHost()
    var reconciler: Reconciler
    var now = Moment(milliseconds: 1_000_000, wallSeconds: 1_700_000_000)
    /// What the wall clock showed when `now.milliseconds` was 1,000,000.
    private var wallStart: Int64 = 1_700_000_000
    private(set) var saved = Stored()
    var persisted: Intent?
    var recorded: [ClockRecord] = []
    private(set) var answers: [RequestID: Answer] = [:]
    var events: [KeeperEvent] = []
    private(set) var commands: [String] = []
    var failingCommand: String?
    private(set) var hasEnded = false
    private var requests: RequestID = 0
    /// After so many actions the process is killed; nil: it lives.
    var actionsToLive: Int?

    init(seed: UInt64 = 1) { reconciler = Reconciler(name: wg0, seed: seed) }

    mutating func handle(_ event: Reconciler.Event) {
        var queue = [event]
        while !queue.isEmpty {
            for action in reconciler.handle(queue.removeFirst(), at: now) {
                if let left = actionsToLive {
                    if left == 0 { return }
                    actionsToLive = left - 1
                }
                if let answer = perform(action) { queue.append(answer) }
            }
        }
    }

    private mutating func perform(_ action: Reconciler.Action) -> Reconciler.Event? {
        switch action {
        case .observe(let configuration, let backend): return observe(configuration, backend)
        case .inspect:
            do throws(KeeperFailure) {
                return .observed(Observation(state: try host.snapshot()))
            } catch {
                return .observationFailed(error)
            }
        case .perform(let changes, let all): return .performed(perform(changes, all))
        case .run(let list):
            commands += list.map(\.description)
            let fails = list.contains { $0.description == failingCommand }
            return .commandsRun(fails ? KeeperFailure(.failed, "a command ended with 1") : nil)
        case .resolve(let name): host.resolve(name)
        case .save(let stored): saved = stored
        case .persist(let intent): persisted = intent
        case .raiseFloor(let seconds): host.raiseFloor(to: seconds)
        case .readLabel(let isLast): return .label(host.latestLabel(), isLast: isLast)
        case .record(let record): recorded.append(record)
        case .answer(let id, let answer): answers[id] = answer
        case .announce(let event): events.append(event)
        case .end: hasEnded = true
        }
        return nil
    }

    private mutating func observe(
        _ configuration: ConfigurationFile, _ backend: BackendKind?
    ) -> Reconciler.Event {
        do throws(KeeperFailure) {
            let state = try host.snapshot()
            let facts = try host.facts(for: configuration)
            let choice = try host.chooseBackend(backend)
            return .observed(Observation(state: state, facts: facts, backend: choice))
        } catch {
            return .observationFailed(error)
        }
    }

    private mutating func perform(_ changes: [Change], _ all: Bool) -> [StepFailure] {
        var failures: [StepFailure] = []
        for (index, change) in changes.enumerated() {
            if let left = actionsToLive {
                if left == 0 { return failures }
                actionsToLive = left - 1
            }
            do throws(KeeperFailure) {
                try host.perform(change)
            } catch {
                failures.append(StepFailure(index: index, error))
                if !all { break }
            }
        }
        return failures
    }
}

// MARK: what tests do

extension Simulation {
    @discardableResult
    mutating func apply(
        _ intent: Intent, confirmSeconds: UInt32? = nil, dryRun: Bool = false,
        renewsLink: Bool = false
    ) -> Answer? {
        requests += 1
        var options = ApplyOptions()
        options.confirmSeconds = confirmSeconds
        options.isDryRun = dryRun
        options.renewsLink = renewsLink
        handle(.apply(requests, intent, options))
        return answers[requests]
    }

    @discardableResult
    mutating func confirm() -> Answer? {
        requests += 1
        handle(.confirm(requests))
        return answers[requests]
    }

    @discardableResult
    mutating func down(staysPersistent: Bool = false) -> Answer? {
        requests += 1
        var options = DownOptions()
        options.staysPersistent = staysPersistent
        handle(.down(requests, options))
        return answers[requests]
    }

    mutating func advance(to milliseconds: Int64) {
        now.milliseconds += max(0, milliseconds - now.milliseconds)
        now.wallSeconds = wallStart + (now.milliseconds - 1_000_000) / 1000
    }

    /// Somebody sets the wall clock, or the machine begins with another.
    mutating func setClock(_ wallSeconds: Int64) {
        wallStart = wallSeconds - (now.milliseconds - 1_000_000) / 1000
        now.wallSeconds = wallSeconds
    }

    /// Lets time pass, with a tick whenever one is due.
    mutating func pass(milliseconds: Int64) {
        let end = now.milliseconds + milliseconds
        while let next = reconciler.nextTime, next <= end {
            advance(to: max(next, now.milliseconds))
            let before = reconciler.nextTime
            handle(.tick)
            // A tick that changes nothing must not be due again at once.
            if reconciler.nextTime == before { advance(to: now.milliseconds + 1) }
        }
        advance(to: end)
    }

    /// Others change the tunnel.
    mutating func tamper(_ change: (inout TunnelState) -> Void) {
        if var state = host.state {
            change(&state)
            host.state = state
        }
        handle(.host(.tunnelChanged))
    }

    /// kill -9, and the next keeper.
    mutating func restart(seed: UInt64 = 2) {
        reconciler = Reconciler(name: wg0, seed: seed)
        actionsToLive = nil
        hasEnded = false
        var boot = Boot()
        boot.intent = persisted
        boot.clock = recorded.last
        handle(.start(saved, boot))
    }

    /// The machine begins anew: what is below /run is gone, and so is the tunnel.
    mutating func reboot(_ meanwhile: (inout Simulation) -> Void = { _ in }) {
        reconciler = Reconciler(name: wg0, seed: 3)
        saved = Stored()
        host = MemoryHost()
        events = []
        (actionsToLive, hasEnded) = (nil, false)
        meanwhile(&self)
        var boot = Boot()
        boot.intent = persisted
        boot.clock = recorded.last
        boot.isDue = true
        handle(.start(saved, boot))
    }
}

extension Answer {
    var applied: Applied? {
        switch self {
        case .applied(let applied), .planned(let applied): applied
        default: nil
        }
    }

    var failure: KeeperFailure? {
        if case .failure(let failure) = self { failure } else { nil }
    }
}

/// What a host looks like after `intent` was applied to an empty one.
func fresh(_ intent: Intent) -> TunnelState? {
    var simulation = Simulation()
    simulation.apply(intent)
    return simulation.host.state
}
