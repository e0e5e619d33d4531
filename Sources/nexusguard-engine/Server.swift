// SPDX-License-Identifier: Apache-2.0
import HostProcess
import TunnelEngine

/// Waits for clients, signals and the end of the engine, all on one thread; sleeps while nothing
/// happens.
struct Server: ~Copyable {
    /// Clients beyond this push out the one that has been idle longest.
    static let clientLimit = 64
    /// A connection without a byte for this long is closed (C101).
    static let idleLimit: Int64 = 30_000
    /// Answers that wait to be read, all clients together, in bytes: beyond it no request is taken.
    /// A single answer may be larger.
    static let pendingLimit = 8 << 20
    /// Who has taken no byte for this long while others wait for that is cut off.
    static let stallLimit: Int64 = 2_000
    /// How long not to accept when the process has no descriptor to spare and no client to close.
    static let exhaustionPause: Int64 = 1_000

    enum End {
        case signal(Int32)
        case deviceGone
        case socketRemoved
    }

    /// nil once ended.
    private var engine: Engine?
    private var control: Listener
    private var state: Listener
    private let signals: EndingSignals
    /// The control socket's name as it was last seen.
    private var name: String
    /// Called with its new name, without the suffix.
    private let renamed: (String) -> Void
    private var clients: [Client] = []
    private var poller = Poller()
    private var buffer = [UInt8](repeating: 0, count: 65536)
    private var acceptAgainAt: Int64 = 0

    init(
        engine: Engine, control: consuming Listener, state: consuming Listener,
        signals: consuming EndingSignals, renamed: @escaping (String) -> Void
    ) {
        self.engine = engine
        name = control.name
        self.renamed = renamed
        self.control = control
        self.state = state
        self.signals = signals
    }

    /// Returns when the process shall end.
    mutating func run() -> End {
        guard let engine else { return .deviceGone }
        while true {
            poller.removeAll()
            let endEntry = poller.add(engine.endDescriptor)
            let signalEntry = poller.add(signals.descriptor)
            let watchEntry = control.watch.map { poller.add($0) }
            let accepting = acceptAgainAt <= Host.monotonicMilliseconds()
            let controlEntry = poller.add(control.descriptor, read: accepting)
            let stateEntry = poller.add(state.descriptor, read: accepting)
            let stateWatchEntry = state.watch.map { poller.add($0) }
            let firstClient = (stateWatchEntry ?? stateEntry) + 1
            let isFull = isFull
            for client in clients {
                poller.add(
                    client.number, read: !client.wantsWrite && !isFull, write: client.wantsWrite)
            }

            poller.wait(milliseconds: timeout(accepting: accepting, isFull: isFull))

            if poller.isReadable(signalEntry), let signal = signals.next() {
                return .signal(signal)
            }
            if poller.isReadable(endEntry) { return .deviceGone }
            if let watchEntry, poller.isReadable(watchEntry) {
                if control.isNameRemoved() { return .socketRemoved }
                followName()
            }
            // Its name may go; a new one is followed.
            if let stateWatchEntry, poller.isReadable(stateWatchEntry) { _ = state.isNameRemoved() }
            let now = Host.monotonicMilliseconds()
            serveClients(firstEntry: firstClient, now: now)
            if accepting && poller.isReadable(controlEntry) { acceptControl(engine, now: now) }
            if accepting && poller.isReadable(stateEntry) { acceptState(engine, now: now) }
        }
    }

    /// A tunnel whose link takes another's place gets that one's name, and its sockets with it.
    private mutating func followName() {
        guard control.name != name else { return }
        name = control.name
        if name.hasSuffix(".sock") { renamed(String(name.dropLast(5))) }
    }

    /// Stops the threads and closes the device. The sockets' names go after it, with `self`: who
    /// sees no socket may start anew.
    mutating func end() {
        clients.removeAll()
        engine?.stop()
        engine = nil
    }

    private var isFull: Bool { clients.reduce(0) { $0 + $1.pending } >= Self.pendingLimit }

    /// Until the next client's time is over; nil without clients.
    private func timeout(accepting: Bool, isFull: Bool) -> Int64? {
        let now = Host.monotonicMilliseconds()
        let ends = clients.map {
            $0.lastActivity + (isFull && $0.wantsWrite ? Self.stallLimit : Self.idleLimit) - now
        }
        guard !accepting else { return ends.min() }
        return min(ends.min() ?? Int64.max, acceptAgainAt - now)
    }

    private mutating func serveClients(firstEntry: Int, now: Int64) {
        for (offset, client) in clients.enumerated() where !client.isOver {
            let entry = firstEntry + offset
            if client.wantsWrite {
                if poller.isWritable(entry) { client.flush(now: now) }
            } else if poller.isReadable(entry) && !isFull {
                client.readSome(using: &buffer, now: now)
            }
        }
        if isFull { cutOffStalled(now: now) }
        clients.removeAll { $0.isOver || now - $0.lastActivity >= Self.idleLimit }
    }

    private func cutOffStalled(now: Int64) {
        for client in clients
        where client.wantsWrite && now - client.lastActivity >= Self.stallLimit {
            client.cutOff()
        }
    }

    private mutating func acceptControl(_ engine: Engine, now: Int64) {
        while true {
            switch control.accept() {
            case .client(let descriptor):
                admit(Client(control: descriptor, engine: engine, now: now))
            case .none: return
            case .exhausted: return makeRoom(now: now)
            }
        }
    }

    private mutating func acceptState(_ engine: Engine, now: Int64) {
        while true {
            switch state.accept() {
            case .client(let descriptor):
                admit(Client(state: descriptor, engine: engine, now: now))
            case .none: return
            case .exhausted: return makeRoom(now: now)
            }
        }
    }

    private mutating func admit(_ client: Client) {
        if clients.count >= Self.clientLimit { closeLongestIdle() }
        clients.append(client)
    }

    /// One between operations if there is one, else the quietest of all.
    private mutating func closeLongestIdle() {
        let idle = clients.indices.filter { clients[$0].isIdle }
        let candidates = idle.isEmpty ? Array(clients.indices) : idle
        guard
            let victim = candidates.min(by: { clients[$0].lastActivity < clients[$1].lastActivity })
        else { return }
        clients.remove(at: victim)
    }

    private mutating func makeRoom(now: Int64) {
        if clients.isEmpty {
            acceptAgainAt = now + Self.exhaustionPause
        } else {
            closeLongestIdle()
        }
    }
}
