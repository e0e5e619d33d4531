// SPDX-License-Identifier: Apache-2.0
import HostProcess
import WireGuard

/// One client of the keeper's socket: lines in, lines out, never waiting.
final class Session {
    /// Bytes of events a client may leave unread before it is cut off.
    static let streamLimit = 1 << 20

    enum Input {
        case none
        /// Without its newline. The caller erases it.
        case line([UInt8])
        case tooLong
    }

    private let descriptor: Descriptor
    let peer: LocalPeer
    /// Of the request whose answer it waits for.
    var request: RequestID?
    var hearsEvents = false
    /// When a byte last moved, in monotonic milliseconds.
    private(set) var lastActivity: Int64
    private(set) var isOver = false

    /// A request that is not complete. Pieces, because growing one buffer would leave copies of keys
    /// behind.
    private var pieces: [[UInt8]] = []
    private var inputLength = 0
    private var output: [UInt8] = []
    private var written = 0
    private var hasEnded = false

    init(_ descriptor: consuming Descriptor, peer: LocalPeer, now: Int64) {
        self.descriptor = descriptor
        self.peer = peer
        lastActivity = now
    }

    deinit { eraseInput() }

    var number: Int32 { descriptor.number }
    var wantsWrite: Bool { written < output.count }
    /// One request at a time: the next one waits in the socket.
    var wantsRead: Bool { request == nil && !wantsWrite && !hasEnded }

    /// Neither a request nor an answer is on its way.
    var isIdle: Bool { inputLength == 0 && !wantsWrite && request == nil }

    // MARK: input

    /// Reads at most one buffer. A client sends its next request after the answer; what follows a
    /// newline at once is refused as a part of a line that is too long would be.
    func read(using buffer: inout [UInt8], now: Int64) -> Input {
        switch descriptor.read(into: &buffer) {
        case .empty: return .none
        case .ended:
            hasEnded = true
            // Who asked and closed its side may still read the answer.
            isOver = isIdle || request == nil
            return .none
        case .bytes(let count):
            lastActivity = now
            defer { buffer.withEach(count) { $0 = 0 } }
            return take(buffer[..<count])
        }
    }

    private func take(_ bytes: ArraySlice<UInt8>) -> Input {
        let newline = bytes.firstIndex(of: 0x0A)
        let line = bytes[..<(newline ?? bytes.endIndex)]
        inputLength += line.count
        guard inputLength < requestLimit, newline == nil || newline == bytes.endIndex - 1 else {
            eraseInput()
            return .tooLong
        }
        pieces.append(Array(line))
        guard newline != nil else { return .none }
        var whole: [UInt8] = []
        whole.reserveCapacity(inputLength)
        for piece in pieces { whole += piece }
        eraseInput()
        return .line(whole)
    }

    private func eraseInput() {
        for index in pieces.indices { erase(&pieces[index]) }
        pieces = []
        inputLength = 0
    }

    // MARK: output

    func send(_ bytes: [UInt8], now: Int64) {
        guard !isOver else { return }
        if !wantsWrite {
            output.removeAll(keepingCapacity: true)
            written = 0
        }
        if hearsEvents, output.count - written + bytes.count > Self.streamLimit {
            isOver = true  // it would miss some without knowing
            return
        }
        output += bytes
        flush(now: now)
    }

    func flush(now: Int64) {
        while wantsWrite, !isOver {
            guard let count = descriptor.write(output, from: written) else {
                isOver = true
                return
            }
            guard count > 0 else { return }
            lastActivity = now
            written += count
        }
        if hasEnded, request == nil { isOver = true }
    }

    /// After an answer that cannot be followed by another request.
    func close() {
        hasEnded = true
        if !wantsWrite { isOver = true }
    }
}

extension [UInt8] {
    fileprivate mutating func withEach(_ count: Int, _ body: (inout UInt8) -> Void) {
        for index in 0..<count { body(&self[index]) }
    }
}
