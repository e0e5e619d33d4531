// SPDX-License-Identifier: Apache-2.0
import CMicroHTTPD
import Glibc
import HostProcess
import Synchronization

/// The library's view of a server.
///
/// `@unchecked Sendable`: what is called with it may be called from any thread.
@safe private struct LibraryDaemon: @unchecked Sendable {
    let pointer: OpaquePointer

    init(_ pointer: OpaquePointer) { unsafe self.pointer = unsafe pointer }
}

/// What the library's callbacks lead to: one per server, alive until the library has stopped.
@safe final class ServerCore: Sendable {
    /// `@unchecked Sendable`: a listener holds numbers only, and is used under the lock.
    private struct State: ~Copyable, @unchecked Sendable {
        var daemon: LibraryDaemon?
        var watchdog: Watchdog?
        /// Owns the name of a unix socket.
        var listener: Listener?
        var isStopping = false
        /// Those whose answers are under way.
        var streams: [ObjectIdentifier: EventStream] = [:]
    }

    let options: HTTPServer.Options
    let handler: HTTPServer.Handler
    let isSecure: Bool
    let port: UInt16
    let connections: ServerConnections
    /// Bytes of bodies that are being received.
    let bodyBytes = Atomic<Int>(0)
    private let state: Mutex<State>
    /// One `stop` at a time; the second waits for the first.
    private let stopping = Mutex(())

    private init(
        _ options: HTTPServer.Options, _ handler: @escaping HTTPServer.Handler,
        isSecure: Bool, port: UInt16, listener: consuming Listener?
    ) {
        self.options = options
        self.handler = handler
        self.isSecure = isSecure
        self.port = port
        connections = ServerConnections(
            networkLimit: options.listen.isTLS ? options.addressLimit : nil)
        state = Mutex(State(listener: listener))
    }

    static func start(
        _ options: HTTPServer.Options, _ handler: @escaping HTTPServer.Handler
    ) throws(HTTPError) -> ServerCore {
        var socket = try ListeningSocket.open(options.listen)
        let core = ServerCore(
            options, handler, isSecure: socket.isSecure, port: socket.port,
            listener: socket.takeListener())
        switch options.listen {
        case .tls(_, _, let certificate, let key):
            try Certificate.check(certificate, key)
            let text = certificate + [0]
            let daemon = unsafe text.withUnsafeBufferPointer { text in
                unsafe text.withMemoryRebound(to: CChar.self) { text in
                    unsafe key.withCString { key in
                        unsafe core.startDaemon(socket.number, text.baseAddress, key)
                    }
                }
            }
            try unsafe core.adopt(daemon, &socket)
        case .plainLoopback, .unix:
            try unsafe core.adopt(core.startDaemon(socket.number, nil, nil), &socket)
        }
        return core
    }

    /// nil: the library does not say why.
    private func startDaemon(
        _ socket: Int32, _ certificate: UnsafePointer<CChar>?, _ key: UnsafePointer<CChar>?
    ) -> OpaquePointer? {
        // gnutls_priority_init(3).
        unsafe "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2".withCString { priorities in
            var settings = unsafe http_daemon_settings()
            unsafe settings.listening_socket = socket
            unsafe settings.threads = UInt32(max(options.threads, 1))
            let connectionLimit = max(options.connectionLimit, options.threads)
            unsafe settings.connection_limit = UInt32(connectionLimit)
            // Only for streams whose client does not read: all else has deadlines of its own.
            unsafe settings.idle_seconds = 120
            unsafe settings.memory_limit = options.headLimit
            unsafe settings.certificate = certificate
            unsafe settings.key = key
            unsafe settings.priorities = priorities
            unsafe settings.context = Unmanaged.passUnretained(self).toOpaque()
            unsafe installCallbacks(&settings)
            return unsafe withSignalsBlocked { unsafe http_daemon_start(&settings) }
        }
    }

    private func adopt(
        _ started: OpaquePointer?, _ socket: inout ListeningSocket
    ) throws(HTTPError) {
        guard let started = unsafe started else {
            throw HTTPError(
                "cannot serve HTTP on \(options.listen.place): libmicrohttpd does not start; "
                    + "check the limits of memory, threads and open files (ulimit -a)")
        }
        let daemon = unsafe LibraryDaemon(started)
        socket.giveAway()
        // The first tick comes later than this.
        let watchdog = try Watchdog.start(everyMilliseconds: tick) { [weak self] in
            self?.watch()
        } orElse: {
            unsafe MHD_stop_daemon(daemon.pointer)
        }
        state.withLock { state in
            state.daemon = daemon
            state.watchdog = watchdog
        }
    }

    /// Often enough that a deadline is missed by a tenth at most.
    private var tick: Int64 {
        let deadlines = [
            options.headDeadline, options.bodyDeadline, options.answerDeadline,
            options.idleDeadline, options.streamKeepAlive,
        ]
        let shortest = deadlines.map(\.milliseconds).min() ?? 1000
        return min(max(shortest / 10, 10), 1000)
    }

    private func watch() {
        connections.cutOverdue()
        let streams = state.withLock { Array($0.streams.values) }
        let interval = options.streamKeepAlive.milliseconds
        for stream in streams { stream.keepAlive(afterMilliseconds: interval) }
    }

    func add(_ stream: EventStream) {
        let isStopping = state.withLock { state in
            state.streams[ObjectIdentifier(stream)] = stream
            return state.isStopping
        }
        if isStopping { stream.close() }
    }

    func remove(_ stream: EventStream) {
        state.withLock { _ = $0.streams.removeValue(forKey: ObjectIdentifier(stream)) }
        stream.detach()
    }

    func stop() {
        stopping.withLock { _ in
            let (daemon, streams) = state.withLock { state in
                state.isStopping = true
                return (state.daemon, Array(state.streams.values))
            }
            guard let daemon else { return }
            // Nobody new from here on; the listening socket is ours again.
            let socket = unsafe MHD_quiesce_daemon(daemon.pointer)
            // The library may not be stopped while connections are suspended.
            for stream in streams { stream.close() }
            unsafe MHD_stop_daemon(daemon.pointer)
            if socket >= 0 { close(socket) }
            let watchdog = state.withLock { state in
                state.daemon = nil
                state.listener = nil
                return state.watchdog.take()
            }
            watchdog?.stop()
        }
    }
}

/// Runs `body` with all signals blocked: threads it starts are deaf to them, and a write(2) to a
/// connection that was closed there raises no SIGPIPE.
func withSignalsBlocked<R>(_ body: () -> R) -> R {
    var all = sigset_t()
    var before = sigset_t()
    unsafe sigfillset(&all)
    unsafe pthread_sigmask(SIG_SETMASK, &all, &before)
    defer { unsafe pthread_sigmask(SIG_SETMASK, &before, nil) }
    return body()
}

extension Int64 {
    /// Milliseconds of CLOCK_MONOTONIC.
    static var now: Int64 { Host.monotonicMilliseconds() }
}
