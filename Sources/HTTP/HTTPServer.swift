// SPDX-License-Identifier: Apache-2.0

/// An HTTP/1.1 server on one socket. It reads whole requests within limits of size and time, asks
/// the handler, and sends the answer.
///
/// Thread-safety: everything may be called from any thread. The handler runs on the server's
/// threads, several at once.
public final class HTTPServer: Sendable {
    public enum Listen: Sendable {
        /// TLS 1.2 or newer. `address` is numeric, "*" all of the host's; port 0: any free one.
        case tls(address: String, port: UInt16, certificatePEM: [UInt8], key: ConnectionSecret)
        /// Plain HTTP, for this host only: an address that is not loopback is refused.
        case plainLoopback(address: String = "127.0.0.1", port: UInt16)
        /// Plain HTTP with known users at the other end. `mode` as in chmod(2); `group` gets the
        /// socket, if there is one. A socket nobody answers on is replaced.
        case unix(path: String, mode: UInt32 = 0o600, group: UInt32? = nil)
    }

    public struct Options: Sendable {
        public var listen: Listen
        /// Bytes of one request's body; more is answered with 413.
        public var bodyLimit = 1 << 20
        /// Bytes of all bodies being received; more is answered with 503, but for bodies of at most
        /// 4 KiB.
        public var bodiesLimit = 64 << 20
        /// Bytes of the head of a request, as far as its fields go; more is answered with 431.
        public var headLimit = 32 << 10
        /// From the first moment of a connection to the end of the head of its first request,
        /// TLS handshake included.
        public var headDeadline = Duration.seconds(10)
        /// From the end of the head to the end of the body.
        public var bodyDeadline = Duration.seconds(30)
        /// From the handler's answer to its last byte taken. Event streams have none.
        public var answerDeadline = Duration.seconds(60)
        /// From the end of an answer to the end of the next request's head.
        public var idleDeadline = Duration.seconds(75)
        /// What an event stream sends when it has nothing to send, so that both ends know.
        public var streamKeepAlive = Duration.seconds(15)
        /// At least `threads`.
        public var connectionLimit = 2000
        /// Connections of one IPv4 address or one IPv6 /64; more are closed at once. Counts for TLS
        /// only: on loopback all clients share one.
        public var addressLimit = 64
        public var threads = 2

        public init(_ listen: Listen) { self.listen = listen }
    }

    public typealias Handler = @Sendable (HTTPRequest) -> HTTPResponse

    private let core: ServerCore

    /// Listens from here on. `handler` must be quick: it holds up the other connections of its
    /// thread.
    public init(_ options: Options, handler: @escaping Handler) throws(HTTPError) {
        core = try ServerCore.start(options, handler)
    }

    deinit { core.stop() }

    /// The port that it listens on; 0 for a unix socket.
    public var port: UInt16 { core.port }

    /// Ends all connections and streams, and returns when no handler runs any more. Not to be
    /// called by a handler. May be repeated.
    public func stop() { core.stop() }

    /// Connections there are now.
    public var connectionCount: Int { core.connections.count }
    /// How many were cut: a deadline had passed, a stream was not read, an address had too many.
    public var cutCount: Int { core.connections.cutCount }
    /// Bytes of bodies that are being received.
    var bytesOfBodies: Int { core.bodyBytes.load(ordering: .relaxed) }
}
