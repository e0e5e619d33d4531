// SPDX-License-Identifier: Apache-2.0
import Glibc
import Synchronization
import WireGuard

/// Host names looked up by getaddrinfo(3) on threads of their own; the caller polls a descriptor
/// and is never blocked. The first request starts the first thread.
@safe public struct NameLookup: ~Copyable {
    public struct Request: Hashable, Sendable {
        public var id: UInt64
        public var host: HostName
        public var port: UInt16
    }

    public enum Outcome: Equatable, Sendable {
        /// All addresses of both families in the order of getaddrinfo (RFC 6724), each once. Never
        /// empty.
        case found([Endpoint])
        /// Nobody answered: asking again may help. One line.
        case temporary(String)
        /// The answer was that there is no such name or that it has no address. One line.
        case final(String)
    }

    public struct Answer: Equatable, Sendable {
        public var request: Request
        public var outcome: Outcome
    }

    /// More names wait for their turn: one that does not answer holds a thread for half a minute.
    public static let threadLimit = 4

    private let desk: Desk

    /// `resolve` is for tests.
    public init(
        resolve: @escaping @Sendable (Request) -> Outcome = NameLookup.ask
    ) throws(NetworkError) {
        var ends: [Int32] = [-1, -1]
        // A pair of sockets takes its flags at birth; pipe2 is not in the importer's view.
        let type = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
        guard unsafe socketpair(AF_UNIX, Int32(type), 0, &ends) == 0 else {
            throw NetworkError(
                .other, errno: errno,
                "cannot look names up: no pair of sockets: \(textOfErrno(errno))")
        }
        desk = Desk(readEnd: ends[0], writeEnd: ends[1], resolve: resolve)
    }

    /// Returns at once. A lookup that runs ends by itself; nobody hears of it.
    deinit { desk.close() }

    /// Readable when there is an answer. Not to be closed.
    public var descriptor: Int32 { desk.readEnd }

    /// Asks for a name. One that is asked already is not asked twice: there is one answer, with the
    /// `id` of the first. Throws `.other` when no thread can be started.
    public func request(_ host: HostName, port: UInt16, id: UInt64) throws(NetworkError) {
        try desk.add(Request(id: id, host: host, port: port))
    }

    /// The next answer; nil when there is none now.
    public func next() -> Answer? { desk.takeAnswer() }

    /// Requests without an answer.
    public var pendingCount: Int { desk.pendingCount }
}

/// Shared with the threads, which keep it alive; the sockets end with the last of them.
private final class Desk: Sendable {
    private struct State {
        var isClosed = false
        var threads = 0
        /// Not yet begun.
        var queue: [NameLookup.Request] = []
        var running: [NameLookup.Request] = []
        var answers: [NameLookup.Answer] = []
    }

    /// The pair holds one byte while there are answers.
    let readEnd: Int32
    private let writeEnd: Int32
    private let resolve: @Sendable (NameLookup.Request) -> NameLookup.Outcome
    private let state = Mutex(State())

    init(
        readEnd: Int32, writeEnd: Int32,
        resolve: @escaping @Sendable (NameLookup.Request) -> NameLookup.Outcome
    ) {
        self.readEnd = readEnd
        self.writeEnd = writeEnd
        self.resolve = resolve
    }

    deinit {
        Glibc.close(readEnd)
        Glibc.close(writeEnd)
    }

    var pendingCount: Int { state.withLock { $0.queue.count + $0.running.count } }

    func add(_ request: NameLookup.Request) throws(NetworkError) {
        let needsThread = state.withLock { state in
            let isAsked = (state.queue + state.running).contains {
                $0.host == request.host && $0.port == request.port
            }
            guard !isAsked else { return false }
            state.queue.append(request)
            guard state.threads < NameLookup.threadLimit else { return false }
            state.threads += 1
            return true
        }
        guard needsThread, let failure = startThread() else { return }
        let isLost = state.withLock { state in
            state.threads -= 1
            guard state.threads == 0 else { return false }  // another thread takes it
            state.queue.removeAll { $0 == request }
            return true
        }
        guard !isLost else {
            throw NetworkError(
                .other, errno: failure,
                "cannot look up \(request.host): no thread: \(textOfErrno(failure)); try again")
        }
    }

    func close() {
        state.withLock { state in
            state.isClosed = true
            state.queue.removeAll()
        }
    }

    func takeAnswer() -> NameLookup.Answer? {
        state.withLock { state -> NameLookup.Answer? in
            guard !state.answers.isEmpty else { return nil }
            let answer = state.answers.removeFirst()
            if state.answers.isEmpty {
                // Under the lock: no answer comes between the two.
                var byte: UInt8 = 0
                _ = unsafe read(readEnd, &byte, 1)
            }
            return answer
        }
    }

    /// What a thread does until nothing is left.
    fileprivate func work() {
        while let request = takeRequest() {
            let outcome = resolve(request)
            state.withLock { state in
                state.running.removeAll { $0 == request }
                guard !state.isClosed else { return }
                state.answers.append(.init(request: request, outcome: outcome))
                guard state.answers.count == 1 else { return }
                var byte: UInt8 = 1
                _ = unsafe write(writeEnd, &byte, 1)
            }
        }
    }

    private func takeRequest() -> NameLookup.Request? {
        state.withLock { state in
            guard !state.queue.isEmpty else {
                state.threads -= 1
                return nil
            }
            let request = state.queue.removeFirst()
            state.running.append(request)
            return request
        }
    }

    /// Detached, deaf to signals: those are the main thread's. An errno, nil: it runs.
    private func startThread() -> Int32? {
        var attributes = pthread_attr_t()
        unsafe pthread_attr_init(&attributes)
        defer { unsafe pthread_attr_destroy(&attributes) }
        unsafe pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        var all = sigset_t()
        var before = sigset_t()
        unsafe sigfillset(&all)
        unsafe pthread_sigmask(SIG_SETMASK, &all, &before)
        defer { unsafe pthread_sigmask(SIG_SETMASK, &before, nil) }
        let desk = unsafe Unmanaged.passRetained(self)
        var thread = pthread_t()
        let status = unsafe pthread_create(
            &thread, &attributes,
            { argument in
                unsafe Unmanaged<Desk>.fromOpaque(argument!).takeRetainedValue().work()
                return nil
            }, desk.toOpaque())
        guard status != 0 else { return nil }
        unsafe desk.release()
        return status
    }
}
