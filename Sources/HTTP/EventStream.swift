// SPDX-License-Identifier: Apache-2.0
import CMicroHTTPD
import Synchronization

/// The library's view of a connection.
///
/// `@unchecked Sendable`: the library takes `resume` from any thread; all else is called on the
/// connection's own.
@safe struct LibraryConnection: @unchecked Sendable {
    let pointer: OpaquePointer

    init(_ pointer: OpaquePointer) { unsafe self.pointer = unsafe pointer }

    /// From the callback that asks for bytes only.
    func suspend() { unsafe MHD_suspend_connection(pointer) }
    /// While it is suspended only.
    func resume() { unsafe MHD_resume_connection(pointer) }
}

/// Server-sent events to one client (HTML standard, section 9.2). Made by a handler, which keeps it
/// and answers with `HTTPResponse.events`; what is sent before the answer is on its way waits.
///
/// Thread-safety: everything may be called from any thread.
public final class EventStream: Sendable {
    /// Bytes that may wait for the client. A client that is that far behind is cut: it connects
    /// anew and asks for the state.
    public static let queueLimit = 256 << 10

    private struct State {
        /// What waits, from `start` on.
        var queue: [UInt8] = []
        var start = 0
        var isClosed = false
        /// Set while the library has been told not to ask for more; valid then, since a suspended
        /// connection is never closed.
        var suspended: LibraryConnection?
        var connection: ServerConnection?
        var connections: ServerConnections?
        /// For keep-alives, in milliseconds of CLOCK_MONOTONIC.
        var lastSent: Int64 = 0

        var waiting: Int { queue.count - start }

        mutating func resume() {
            guard let connection = suspended else { return }
            suspended = nil
            connection.resume()
        }
    }

    private let state = Mutex(State())

    public init() {}

    /// The client is gone or was cut, the server stops, or `close` was called.
    public var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Lines of `data` arrive as lines, whatever ended them. A line break in `event` becomes a
    /// space. False: the stream is closed, or was cut because its client does not read.
    @discardableResult
    public func send(event: String, data: String) -> Bool {
        var text = "event: "
        text += String(event.map { $0.isNewline ? " " : $0 }) + "\n"
        for line in data.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
            text += "data: \(line)\n"
        }
        return append(text + "\n")
    }

    /// Ends the answer after what was sent.
    public func close() {
        state.withLock { state in
            state.isClosed = true
            state.resume()
        }
    }

    private func append(_ text: String) -> Bool {
        state.withLock { state in
            guard !state.isClosed else { return false }
            guard state.waiting + text.utf8.count <= Self.queueLimit else {
                state.isClosed = true
                state.queue = []
                state.start = 0
                if let connection = state.connection { state.connections?.cut(connection) }
                state.resume()
                return false
            }
            state.queue += Array(text.utf8)
            state.lastSent = .now
            state.resume()
            return true
        }
    }

    // ---- the server's side

    func attach(to connection: ServerConnection, of connections: ServerConnections) {
        state.withLock { state in
            state.connection = connection
            state.connections = connections
            state.lastSent = .now
        }
    }

    /// No one will read any more.
    func detach() {
        state.withLock { state in
            state.isClosed = true
            state.connection = nil
            state.connections = nil
            state.queue = []
            state.start = 0
        }
    }

    /// A comment, if nothing was sent for `milliseconds`; the end, if the client has gone.
    func keepAlive(afterMilliseconds milliseconds: Int64) {
        let (connection, connections, isQuiet) = state.withLock { state in
            (state.connection, state.connections, Int64.now - state.lastSent >= milliseconds)
        }
        guard let connection, let connections else { return }
        if connections.isHungUp(connection) {
            close()
        } else if isQuiet {
            _ = append(":\n\n")
        }
    }

    /// The library's question for the next bytes of `connection`, on its thread.
    func read(
        into buffer: UnsafeMutableRawBufferPointer, of connection: LibraryConnection
    ) -> Int {
        state.withLock { state in
            guard state.waiting > 0 else {
                guard !state.isClosed else { return Int(MHD_CONTENT_READER_END_OF_STREAM) }
                // 0 alone would make it ask again and again.
                connection.suspend()
                state.suspended = connection
                return 0
            }
            let count = min(buffer.count, state.waiting)
            unsafe buffer.copyBytes(from: state.queue[state.start..<state.start + count])
            state.start += count
            if state.waiting == 0 {
                state.queue.removeAll(keepingCapacity: state.queue.count <= 4096)
                state.start = 0
            } else if state.start > state.queue.count / 2 {
                state.queue.removeFirst(state.start)
                state.start = 0
            }
            return count
        }
    }
}
