// SPDX-License-Identifier: Apache-2.0
import HostProcess
import Synchronization

/// Asks HTTP servers, over one kept connection where the server allows it. Verifies whom it talks
/// to, always; follows no redirects, keeps no cookies, sends no credentials of its own. Proxies are
/// those of the environment (`https_proxy`, `no_proxy` …, see curl(1)).
///
/// Thread-safety: everything may be called from any thread. `perform` is one at a time: a second
/// call waits for the first. `events` runs beside it, on a connection of its own.
public final class HTTPClient: Sendable {
    public struct Options: Sendable {
        /// `sha256//` and the base64 of the SHA-256 of the server's public key, any of them. With a
        /// pin, the pin alone decides: the certificate may be self-made, expired or for another
        /// name.
        public var pins: [String] = []
        /// Certificates (PEM) that are trusted in addition to the system's.
        public var extraCAFile: String?
        /// Where to connect to, whatever host the URL names.
        public var unixSocket: String?
        public var connectTimeout = Duration.seconds(10)
        /// Of one request, connecting included.
        public var totalTimeout = Duration.seconds(30)
        /// An event stream on which nothing comes for that long is over. Whole seconds.
        public var streamTimeout = Duration.seconds(45)
        /// Bytes of an answer's body.
        public var bodyLimit = 1 << 20
        public var userAgent = "nexusguard"
        /// For tests: instead of the trust of the system.
        var systemBundle: String?

        public init() {}
    }

    private let options: Options
    /// PEM of all that is trusted; nil: libcurl's own choice, which is the system's.
    private let trust: [UInt8]?
    private let handle: Mutex<CurlHandle>
    private let isCancelled = Atomic<Bool>(false)
    private let startsAnew = Atomic<Bool>(false)

    /// Throws when a pin is malformed or the CA file cannot be used.
    public init(_ options: Options = Options()) throws(HTTPError) {
        for pin in options.pins { try Pin.check(pin) }
        self.options = options
        trust = try TrustBundle.read(options)
        handle = Mutex(try CurlHandle())
    }

    /// Blocks until the whole answer is there. Any status is an answer, not an error.
    public func perform(
        _ request: HTTPClientRequest
    ) throws(HTTPClientError) -> HTTPClientResponse {
        let transfer = Transfer(bodyLimit: options.bodyLimit, isCancelled: { [self] in isOver })
        let result = handle.withLock { handle in
            attempt(request, &handle, transfer, timeout: request.timeout ?? options.totalTimeout)
        }
        return try result.get()
    }

    /// Reads server-sent events (HTML standard, section 9.2) until `onEvent`, which gets name
    /// ("message" if the server gave none) and data, returns false, or the stream ends. Blocks; runs
    /// `onEvent` on this thread. An answer that is no event stream is returned with its body.
    @discardableResult
    public func events(
        _ request: HTTPClientRequest, onEvent: @escaping (String, String) -> Bool
    ) throws(HTTPClientError) -> HTTPClientResponse {
        let transfer = Transfer(bodyLimit: options.bodyLimit, isCancelled: { [self] in isOver })
        transfer.onEvent = onEvent
        guard var own = try? CurlHandle() else {
            throw HTTPClientError(.other, "cannot open \(request.url): no memory")
        }
        return try attempt(request, &own, transfer, timeout: nil).get()
    }

    /// Ends what runs, within about a second, and lets all later calls fail with `.cancelled`.
    public func cancel() { isCancelled.store(true, ordering: .relaxed) }

    /// The next request makes a new connection: for use when the network has changed.
    public func forgetConnections() { startsAnew.store(true, ordering: .relaxed) }

    private var isOver: Bool { isCancelled.load(ordering: .relaxed) }

    /// `timeout` nil: it lasts as long as something comes.
    private func attempt(
        _ request: HTTPClientRequest, _ handle: inout CurlHandle, _ transfer: Transfer,
        timeout: Duration?
    ) -> Result<HTTPClientResponse, HTTPClientError> {
        do throws(HTTPClientError) {
            guard !isOver else { throw HTTPClientError(.cancelled, "the request was cancelled") }
            let target = try RequestTarget(request.url, isLocalSocket: options.unixSocket != nil)
            handle.reset()
            try handle.configure(options, trust)
            try handle.configure(
                target, connectTimeout: options.connectTimeout, total: timeout,
                silence: options.streamTimeout,
                isFresh: startsAnew.exchange(false, ordering: .relaxed))
            return .success(try handle.perform(request, target, transfer))
        } catch {
            return .failure(error)
        }
    }
}
