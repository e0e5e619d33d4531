// SPDX-License-Identifier: Apache-2.0
import HostProcess
import TunnelEngine
import WireGuard

/// One connection to the control or the state socket: bytes in, answers out, never waiting.
final class Client {
    private enum Conversation {
        case control(UAPIConnection)
        case state(StateConnection)
    }

    /// Bytes that an answer may hold beyond its size.
    private static let slack = 64 << 10

    private let descriptor: Descriptor
    private let engine: Engine
    private var conversation: Conversation
    private var output: [UInt8] = []
    private var written = 0
    /// The client will send nothing more; it may still read.
    private var hasEnded = false
    /// Nothing more will be read or written.
    private(set) var isOver = false
    /// When a byte last moved, in monotonic milliseconds.
    private(set) var lastActivity: Int64

    init(control descriptor: consuming Descriptor, engine: Engine, now: Int64) {
        self.descriptor = descriptor
        self.engine = engine
        conversation = .control(UAPIConnection())
        lastActivity = now
    }

    init(state descriptor: consuming Descriptor, engine: Engine, now: Int64) {
        self.descriptor = descriptor
        self.engine = engine
        conversation = .state(StateConnection())
        lastActivity = now
    }

    deinit {
        erase(&output)
        if case .control(var connection) = conversation { connection.finish(device: engine) }
    }

    var number: Int32 { descriptor.number }
    /// Answers wait: nothing is read meanwhile, so that they stay bounded.
    var wantsWrite: Bool { !output.isEmpty }

    /// Bytes of answers that the client has not taken yet.
    var pending: Int { output.count - written }

    /// Between operations, with nothing left to tell.
    var isIdle: Bool {
        guard !wantsWrite else { return false }
        return switch conversation {
        case .control(let connection): !connection.isWithinOperation
        case .state(let connection): !connection.isWithinOperation
        }
    }

    /// Ends the conversation where it is; what was not read is erased.
    func cutOff() {
        erase(&output)
        output = []
        written = 0
        isOver = true
    }

    /// Reads what is there, at most one buffer, and answers as far as the socket takes it.
    func readSome(using buffer: inout [UInt8], now: Int64) {
        switch descriptor.read(into: &buffer) {
        case .empty: return
        case .ended:
            hasEnded = true
            isOver = !wantsWrite
        case .bytes(let count):
            lastActivity = now
            var input = Array(buffer[..<count])
            receive(input)
            erase(&input)
            flush(now: now)
        }
    }

    /// Writes on; once all is written, takes up input that had to wait.
    func flush(now: Int64) {
        while !isOver {
            guard writeSome(now: now) else { return }
            guard hasHeldInput else { break }
            receive([])
        }
        if !wantsWrite && (hasEnded || mustClose) { isOver = true }
    }

    /// False: the socket takes no more now, or is broken.
    private func writeSome(now: Int64) -> Bool {
        while wantsWrite {
            guard let count = descriptor.write(output, from: written) else {
                isOver = true
                return false
            }
            guard count > 0 else { return false }
            lastActivity = now
            written += count
            guard written == output.count else { continue }
            erase(&output)
            output = []
            written = 0
        }
        return true
    }

    private func receive(_ bytes: [UInt8]) {
        switch conversation {
        case .control(var connection):
            conversation = .state(StateConnection())  // keeps `connection` unshared
            connection.receive(bytes, device: engine)
            take(connection.takeOutput())
            conversation = .control(connection)
        case .state(var connection):
            connection.receive(bytes, source: engine)
            take(connection.takeOutput())
            conversation = .state(connection)
        }
    }

    /// An answer that grew line by line holds up to twice its size: nobody knows how long it waits.
    private func take(_ answer: consuming [UInt8]) {
        guard answer.capacity > answer.count + Self.slack else {
            output = answer
            return
        }
        output = Array(answer[...])
        erase(&answer)
    }

    private var hasHeldInput: Bool {
        if case .control(let connection) = conversation { connection.hasHeldInput } else { false }
    }

    private var mustClose: Bool {
        switch conversation {
        case .control(let connection): connection.mustClose
        case .state(let connection): connection.mustClose
        }
    }
}
