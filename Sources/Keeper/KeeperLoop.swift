// SPDX-License-Identifier: Apache-2.0
// One thread waits for clients, signals, the host and the clock; performs what the reconciler
// decides; sleeps while nothing happens.
import HostProcess
import TunnelPlan
import WireGuard

struct KeeperLoop<Target: TunnelHost & ~Copyable>: ~Copyable {
    /// Clients beyond this push out the one that has been idle longest.
    static var sessionLimit: Int { 32 }
    /// A request or an answer that does not move for so long ends its connection. Milliseconds.
    static var stallLimit: Int64 { 30_000 }
    /// A keeper with nothing to keep and no client ends after this long. Milliseconds.
    static var vacancyLimit: Int64 { 5_000 }
    /// How long not to accept when no descriptor is to be had. Milliseconds.
    static var exhaustionPause: Int64 { 1_000 }
    /// The clock of the machine ran on by so much while it slept: look at everything (C87).
    static var sleepLimit: Int64 { 1_000 }

    enum End: Equatable {
        /// Everything stays in place.
        case signal(Int32)
        case socketRemoved
        /// The tunnel is down, or never was.
        case done
    }

    let name: InterfaceName
    let files: StateFiles
    let group: UInt32?
    /// It began with the machine, or waits for whoever will ask; otherwise somebody is about to.
    let waits: Bool
    var target: Target
    var listener: Listener
    private let signals: EndingSignals
    private let timer: BootTimer
    var reconciler: Reconciler
    var written: Stored
    /// What the disk has refused.
    var unwritten = Unwritten()
    /// Why the record of the clock could not be written.
    private var clockComplaint: String?

    var sessions: [Session] = []
    /// Of a configuration, under way.
    private var commands: Commands?
    var nextRequest: RequestID = 1
    var poller = Poller()
    var buffer = [UInt8](repeating: 0, count: 65536)
    var mended: UInt64 = 0
    var lastWarning: String?
    private var isDone = false
    /// Of the latest `down`: who asked cannot start a keeper, and will ask this one again.
    var staysForAsker = false
    var acceptAgainAt: Int64 = 0
    /// The latest `dueAt` of the host that was obeyed.
    private var performedDue: Int64?
    private var sleepOffset: Int64
    private var vacantSince: Int64

    init(
        name: InterfaceName, files: StateFiles, group: UInt32?, waits: Bool = false,
        target: consuming Target, listener: consuming Listener, signals: consuming EndingSignals
    ) throws(KeeperFailure) {
        self.name = name
        self.files = files
        self.group = group
        self.waits = waits
        self.target = target
        self.listener = listener
        self.signals = signals
        do throws(HostError) {
            timer = try BootTimer()
        } catch {
            throw KeeperFailure(error)
        }
        reconciler = Reconciler(name: name, seed: Host.randomNumber())
        written = Stored()
        vacantSince = Host.monotonicMilliseconds()
        sleepOffset = Host.bootMilliseconds() - vacantSince
    }

    /// Takes over what the keeper before this one left.
    mutating func start() throws(KeeperFailure) {
        written = try files.load()
        var boot = Boot()
        boot.isDue = waits
        boot.clock = files.loadClock()
        do throws(KeeperFailure) {
            boot.intent = try files.loadPersistent()
        } catch {
            // Never applied (C23); whoever asks for something else is served.
            announce(KeeperEvent(.failed, error.message))
        }
        handle(.start(written, boot))
    }

    mutating func run() -> End {
        while !isDone {
            timer.set(
                [reconciler.nextTime, hostDue, unwritten.nextTry].compactMap { $0 }.min())
            poller.removeAll()
            let signalEntry = poller.add(signals.descriptor)
            let timerEntry = poller.add(timer.descriptor)
            let accepting = acceptAgainAt <= Host.monotonicMilliseconds()
            let listenerEntry = poller.add(listener.descriptor, read: accepting)
            let watchEntry = listener.watch.map { poller.add($0) }
            let commandEntry = commandDescriptor.map { poller.add($0) }
            let hostEntries = target.descriptors.map { poller.add($0) }
            let firstSession =
                (hostEntries.last ?? commandEntry ?? watchEntry ?? listenerEntry) + 1
            for session in sessions {
                // One that waits for commands and hangs up would wake this thread for ever (poll(2)).
                let isHeard = session.wantsRead || session.wantsWrite
                poller.add(
                    isHeard ? session.number : -1, read: session.wantsRead,
                    write: session.wantsWrite)
            }

            poller.wait(milliseconds: timeout())

            if poller.isReadable(signalEntry), let signal = signals.next() {
                handle(.leaving)
                return .signal(signal)
            }
            if let watchEntry, poller.isReadable(watchEntry), listener.isNameRemoved() {
                return .socketRemoved
            }
            noticeSleep()
            if hostEntries.contains(where: { poller.isReadable($0) }) {
                for event in target.drainEvents() { handle(.host(event)) }
            }
            advanceCommands()
            if poller.isReadable(timerEntry) { tick() }
            serve(firstEntry: firstSession)
            if accepting, poller.isReadable(listenerEntry) { accept() }
            noticeVacancy()
        }
        finishSessions()
        return .done
    }

    /// When the host has something to do; nil: it has not, or it was told and nothing became of it yet.
    private var hostDue: Int64? { target.dueAt == performedDue ? nil : target.dueAt }

    private mutating func tick() {
        if let due = hostDue, due <= Host.bootMilliseconds() {
            performedDue = due
            target.performDue()
        }
        writeAgain()
        handle(.tick)
    }

    private var commandDescriptor: Int32? {
        switch commands {
        case .some(let commands): commands.descriptor
        case nil: nil
        }
    }

    private var commandTimeout: Int64 {
        switch commands {
        case .some(let commands): commands.timeout(now: Host.monotonicMilliseconds())
        case nil: Int64.max
        }
    }

    private mutating func advanceCommands() {
        guard case .ended(let failure) = commands?.advance(now: Host.monotonicMilliseconds())
        else { return }
        commands = nil
        handle(.commandsRun(failure))
    }

    private mutating func noticeSleep() {
        let offset = Host.bootMilliseconds() - Host.monotonicMilliseconds()
        if offset - sleepOffset > Self.sleepLimit { handle(.host(.overflow)) }
        sleepOffset = offset
    }

    private mutating func noticeVacancy() {
        let now = Host.monotonicMilliseconds()
        if waits || !reconciler.isVacant || !sessions.isEmpty { vacantSince = now }
        if now - vacantSince >= Self.vacancyLimit { isDone = true }
    }

    /// Until a client stalls or nobody is left to wait for; nil: the timer and events suffice.
    private func timeout() -> Int64? {
        let now = Host.monotonicMilliseconds()
        let stall = sessions.filter { !$0.isIdle }.map { $0.lastActivity + Self.stallLimit - now }
        let vacancy =
            reconciler.isVacant && !waits ? vacantSince + Self.vacancyLimit - now : Int64.max
        let pause = acceptAgainAt > now ? acceptAgainAt - now : Int64.max
        let next = min(stall.min() ?? Int64.max, vacancy, pause, commandTimeout)
        return next == Int64.max ? nil : next
    }

    /// The last answer has a moment to leave.
    private mutating func finishSessions() {
        let deadline = Host.monotonicMilliseconds() + 1_000
        while true {
            let now = Host.monotonicMilliseconds()
            for session in sessions { session.flush(now: now) }
            sessions.removeAll { $0.isOver || !$0.wantsWrite }
            guard !sessions.isEmpty, now < deadline else { return }
            poller.removeAll()
            for session in sessions { poller.add(session.number, read: false, write: true) }
            poller.wait(milliseconds: deadline - now)
        }
    }
}

// MARK: actions

extension KeeperLoop where Target: ~Copyable {
    var now: Moment {
        Moment(
            milliseconds: Host.bootMilliseconds(), wallSeconds: Host.wallClock().seconds)
    }

    mutating func handle(_ event: Reconciler.Event) {
        var events = [event]
        while !events.isEmpty {
            let actions = reconciler.handle(events.removeFirst(), at: now)
            for action in actions {
                if let answer = perform(action) { events.append(answer) }
            }
        }
    }

    /// The event that answers it, if it has one.
    private mutating func perform(_ action: Reconciler.Action) -> Reconciler.Event? {
        switch action {
        case .observe(let configuration, let backend):
            return observe(configuration, backend: backend)
        case .inspect:
            do throws(KeeperFailure) {
                return .observed(Observation(state: try target.snapshot()))
            } catch {
                return .observationFailed(error)
            }
        case .perform(let changes, let all): return .performed(perform(changes, all: all))
        case .run(let list):
            // Their end comes by `advanceCommands`: meanwhile others are served.
            commands = Commands(list, name: name)
        case .resolve(let host): target.resolve(host)
        case .save(let stored): save(stored)
        case .persist(let intent): persist(intent)
        case .raiseFloor(let seconds): target.raiseFloor(to: seconds)
        case .readLabel(let isLast): return .label(target.latestLabel(), isLast: isLast)
        case .record(let record): save(record)
        case .answer(let id, let answer): deliver(answer, to: id)
        case .announce(let event): announce(event)
        case .end: isDone = !staysForAsker
        }
        return nil
    }

    private mutating func observe(
        _ configuration: ConfigurationFile, backend: BackendKind?
    ) -> Reconciler.Event {
        do throws(KeeperFailure) {
            let facts = try target.facts(for: configuration)
            let state = facts.current
            var choice: BackendChoice?
            if state == nil || (backend != nil && backend != state?.backend) {
                choice = try target.chooseBackend(backend)
            }
            return .observed(Observation(state: state, facts: facts, backend: choice))
        } catch {
            return .observationFailed(error)
        }
    }

    private mutating func perform(_ changes: [Change], all: Bool) -> [StepFailure] {
        var failures: [StepFailure] = []
        var index = 0
        while index < changes.count {
            let part = changes[index].part
            let group = changes[index...].prefix { part != nil && $0.part == part }
            if group.count > 1, target.performTogether(group) {
                index = group.endIndex
                continue
            }
            for index in index..<max(group.endIndex, index + 1) {
                do throws(KeeperFailure) {
                    try target.perform(changes[index])
                } catch {
                    failures.append(StepFailure(index: index, error))
                    if !all { return failures }
                }
            }
            index = max(group.endIndex, index + 1)
        }
        return failures
    }

    private mutating func save(_ record: ClockRecord) {
        do throws(HostError) {
            try files.saveClock(record)
            clockComplaint = nil
        } catch {
            // Each look would say it anew (C109).
            guard clockComplaint != error.description else { return }
            clockComplaint = error.description
            announce(
                KeeperEvent(
                    .failed,
                    "\(error.description); the tunnel works, but after a reboot with an early clock "
                        + "its handshakes may be refused"))
        }
    }

    mutating func announce(_ event: KeeperEvent) {
        Log.write(event.isWarning ? .warning : .info, event.message)
        if event.isWarning { lastWarning = event.message }
        if event.kind == .healed { mended += 1 }
        let line = Reply.line(event, wallSeconds: Host.wallClock().seconds)
        let now = Host.monotonicMilliseconds()
        for session in sessions where session.hearsEvents { session.send(line, now: now) }
    }

    private mutating func deliver(_ answer: Answer, to id: RequestID) {
        guard let session = sessions.first(where: { $0.request == id }) else { return }
        session.request = nil
        session.send(Reply.line(answer, name: name), now: Host.monotonicMilliseconds())
    }
}

extension Change {
    fileprivate enum Part { case device, routes, barriers }

    /// Consecutive ones of one part may be made together; nil: each by itself.
    fileprivate var part: Part? {
        switch self {
        case .setDevice, .addPeer, .changePeer, .removePeer: .device
        case .addRoute: .routes
        case .addBarrier: .barriers
        default: nil
        }
    }
}
