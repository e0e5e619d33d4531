// SPDX-License-Identifier: Apache-2.0
// One thread waits for the clock, the workers, the network and clients, tells the state machine and
// performs what it asks for. What may block runs on workers, and comes back through the mailbox.
import ControlAPI
import HostProcess
import Keeper
import Storage
import TunnelPlan
import WireGuard

/// What workers bring back.
enum Arrival: Sendable {
    case event(AgentEvent)
    case enrolled(Result<Enrolled, ControlFault>)
    /// `epoch`: of the identity that asked.
    case heartbeat(Result<HeartbeatResult, ControlFault>, epoch: Int)
    case token(Result<SecretText, ControlFault>, epoch: Int)
    case rotation(ControlFault?, epoch: Int)
    case keyInUse(ControlFault, epoch: Int)
    case reading(Result<TunnelFacts?, KeeperFailure>)
    case hubEvent
    case eventsEnded(epoch: Int)
    case left(ControlFault?)
    /// Of `unenroll`: nil, or why the tunnel is still there.
    case removed(String?)
}

final class AgentLoop {
    /// How often the tunnel's counters are read. Milliseconds.
    static let readingInterval: Int64 = 5_000
    /// The clock of the machine ran on by so much while it slept (C87). Milliseconds.
    static let sleepLimit: Int64 = 1_000
    /// The wall clock was set by more than slewing does. Milliseconds.
    static let clockLimit: Int64 = 2_000
    static let sessionLimit = 32
    /// No heartbeat takes so long: its call has a time limit of its own. Milliseconds.
    static let heartbeatLimit: Int64 = 600_000

    let options: AgentProgram.Options
    let logger: Logger
    let tunnel: TunnelControl
    let mailbox: Mailbox<Arrival>
    let controlWorker: Worker
    let keeperWorker: Worker
    let eventsWorker: Worker

    var state: AgentState
    var store: AgentStore?
    var identity: Identity?
    /// One up with each identity, so that an answer to the one before is known as such.
    var epoch = 0
    var hub: HubConnection?
    var eventsHub: HubConnection?
    var isListening = false
    var listenBackoff = Backoff(base: 30_000)
    var listenNotBefore: Moment = .min
    var random: SplitMix
    /// Of `reprovision`; the one at the start is in `options`.
    var reprovisionToken: SecretText?
    var isProvisioning = false
    /// What the tunnel has, or had when this program started.
    var present: UsableConfiguration?
    var offers = Offers()
    var facts: TunnelFacts?
    var isReading = false
    var nextReadingAt: Moment = .min
    /// What the disk has refused.
    var debt = DiskDebt()
    var boot: UInt64 = 0
    let sessionId: String
    var sequence: UInt64 = 0
    let startedAt: Moment
    var exitCode: UInt8?

    var listener: Listener
    var sessions: [AgentSession] = []
    /// Waits for `unenroll`.
    var leaving: AgentSession?
    var isLeaveForced = false

    /// Connected before the rights are gone.
    let manager = ServiceManager()
    private var managerReport: ServiceReport
    /// Of the heartbeat that is under way.
    var heartbeatBegan: Moment?

    private let lock: FileLock
    private let signals: EndingSignals
    private let timer: BootTimer
    private let network = NetworkChanges()
    private var poller = Poller()
    var buffer = [UInt8](repeating: 0, count: 8192)
    private var sleepOffset: Int64
    private var wallOffset: Int64
    /// A change of the network is heeded again from then on.
    private var heedsAgainAt: Moment = 0

    init(
        _ options: AgentProgram.Options, lock: consuming FileLock, listener: consuming Listener,
        signals: consuming EndingSignals, sessionId: String, logger: Logger
    ) throws(HostError) {
        self.options = options
        self.lock = lock
        self.listener = listener
        self.signals = signals
        self.sessionId = sessionId
        self.logger = logger
        tunnel = TunnelControl(
            interface: options.interface, directory: options.keeperDirectory)
        mailbox = try Mailbox()
        controlWorker = try Worker()
        keeperWorker = try Worker()
        eventsWorker = try Worker()
        timer = try BootTimer()
        startedAt = Host.bootMilliseconds()
        managerReport = ServiceReport(period: ServiceManager.watchdogPeriod, now: startedAt)
        random = SplitMix(seed: Host.randomNumber())
        state = AgentState(at: startedAt, seed: random.next())
        sleepOffset = startedAt - Host.monotonicMilliseconds()
        wallOffset = Host.wallMilliseconds() - startedAt
    }

    var now: Now {
        Now(moment: Host.bootMilliseconds(), wallSeconds: Host.wallClock().seconds)
    }

    /// Returns the exit code.
    func run() -> UInt8 {
        tell(.started)
        while exitCode == nil {
            wait()
            noticeClocks()
            for arrival in mailbox.take() { receive(arrival) }
            let moment = Host.bootMilliseconds()
            if state.nextTime.map({ $0 <= moment }) ?? false { tell(.due) }
            readTunnel(moment)
            settleDebt(moment)
            tellManager(moment)
            logger.flushIfDue()
        }
        logger.close()
        eventsHub?.cancel()
        hub?.cancel()
        for session in sessions { session.flush() }
        return exitCode ?? 0
    }

    private func wait() {
        let times = [state.nextTime, readingTime, debt.nextTry, managerReport.nextTime]
        timer.set(times.compactMap { $0 }.min())
        poller.removeAll()
        let signalEntry = poller.add(signals.descriptor)
        poller.add(timer.descriptor)
        poller.add(mailbox.descriptor)
        let networkEntry = poller.add(network?.descriptor ?? -1)
        let listenerEntry = poller.add(listener.descriptor)
        let firstSession = listenerEntry + 1
        for session in sessions {
            // One that waits for its answer and hangs up would wake this thread for ever (poll(2)).
            let isHeard = session.wantsRead || session.wantsWrite
            poller.add(
                isHeard ? session.number : -1, read: session.wantsRead, write: session.wantsWrite)
        }
        poller.wait(milliseconds: sessions.isEmpty ? nil : AgentSession.patience)
        if poller.isReadable(signalEntry), signals.next() != nil { tell(.stop) }
        if poller.isReadable(networkEntry) { noticeNetwork() }
        for (offset, session) in sessions.enumerated() {
            let entry = firstSession + offset
            serve(
                session, isReadable: poller.isReadable(entry),
                isWritable: poller.isWritable(entry))
        }
        if poller.isReadable(listenerEntry) { accept() }
        let stale = Host.monotonicMilliseconds()
        sessions.removeAll { $0.isOver || $0.isStale(now: stale) }
    }

    /// This thread runs, or nothing would be said; what waits for the hub must come to its end too (C74).
    private func tellManager(_ moment: Moment) {
        let isWell = heartbeatBegan.map { moment - $0 < Self.heartbeatLimit } ?? true
        let message = managerReport.message(isWell: isWell, status: state.summary, now: moment)
        if let message { manager.notify(message) }
    }

    private var readingTime: Moment {
        isReading || !wantsReadings ? .max : nextReadingAt
    }

    private func noticeClocks() {
        let boot = Host.bootMilliseconds()
        let sleep = boot - Host.monotonicMilliseconds()
        if sleep - sleepOffset > Self.sleepLimit {
            awake("the machine woke from sleep")
        }
        sleepOffset = sleep
        let wall = Host.wallMilliseconds() - boot
        if abs(wall - wallOffset) > Self.clockLimit {
            log(.info, "the clock was set by \((wall - wallOffset) / 1000) s")
            tell(.clockSet)
        }
        wallOffset = wall
    }

    /// Only what may help is made of it: a tunnel's own routes change as well.
    private func noticeNetwork() {
        network?.drain()
        let moment = Host.bootMilliseconds()
        let isBad = state.control.fault != nil || state.tunnel.verdict == .dead
        guard isBad, moment >= heedsAgainAt else { return }
        heedsAgainAt = moment + 5_000
        awake("the network changed")
    }

    private func awake(_ reason: String) {
        hub?.forgetConnections()
        tell(.awoke(reason: reason))
    }

    // MARK: the state machine

    func tell(_ event: AgentEvent) {
        var events = [event]
        while !events.isEmpty {
            let (next, actions) = step(state, events.removeFirst(), now: now)
            state = next
            for action in actions {
                if let answer = perform(action) { events.append(answer) }
            }
        }
        offers.keep(wanted: state.sync.wanted)
    }

    func log(_ importance: AgentAction.Importance, _ text: String) {
        let level: LogLevel =
            switch importance {
            case .info: .info
            case .warning: .warn
            case .error: .error
            }
        logger.log(level, "agent", "\(text)")
    }

    /// What the tunnel has, or is to have.
    var wantsReadings: Bool {
        identity != nil && present != nil && state.phase != .ended
            && (state.sync.applied != nil || state.sync.wanted != nil)
    }

    private func readTunnel(_ moment: Moment) {
        guard wantsReadings, !isReading, nextReadingAt <= moment, let present else { return }
        isReading = true
        nextReadingAt = moment + Self.readingInterval
        let (tunnel, key, mailbox) = (tunnel, present.config.hub.publicKey, mailbox)
        keeperWorker.submit {
            mailbox.post(
                .reading(
                    Result { () throws(KeeperFailure) in
                        try tunnel.read(hub: key, at: Host.bootMilliseconds())
                    }))
        }
    }
}
