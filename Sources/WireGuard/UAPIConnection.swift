// SPDX-License-Identifier: Apache-2.0
// One client of the cross-platform configuration protocol
// (https://www.wireguard.com/xplatform/#configuration-protocol). Behaviour that the description
// leaves open follows the reference, device/uapi.go of wireguard-go.

/// The state of one client connection as a function of its bytes; sockets are the caller's.
///
/// A change takes effect as it is read: a device line at once, a peer when its last line was read.
/// After a bad line nothing further is applied, but what came before it, also within its peer, is;
/// a replacement of all peers is aborted, so nobody is removed.
///
/// Differences from the reference: an answer is given also to an unknown operation; after an error
/// the rest of the operation is read and dropped before the connection closes, because a client
/// that is still writing would lose the answer to SIGPIPE; of an operation that ends without its
/// blank line the last peer is not applied and nobody is removed (C23).
public struct UAPIConnection: Sendable {
    /// Most prefixes in one peer of one operation: bounds memory at about 40 MB.
    public static let prefixLimit = 1 << 20
    /// No further operation starts while this many bytes of answers wait.
    public static let outputLimit = 1 << 20
    /// A client that sends this much without reading the answers is cut off.
    public static let heldInputLimit = 1 << 20

    private enum State {
        case idle
        /// `get=1` was read, its blank line is due.
        case get
        case set
        /// The operation failed and was answered; its blank line is due.
        case failed
    }

    private var state = State.idle
    private var lines = LineAssembler()
    private var operation = UAPISetOperation()
    private var output: [UInt8] = []
    private var held: [UInt8] = []

    /// After the output is written, the caller closes.
    public private(set) var mustClose = false

    public init() {}

    /// Input waits until the output was taken: then call `receive([], device:)`; until then do not
    /// read from the client.
    public var hasHeldInput: Bool { !held.isEmpty }

    /// Whether an operation has begun but not ended: for the caller's time limit (C101).
    public var isWithinOperation: Bool { state != .idle }

    /// Consumes `bytes`, however the stream was cut.
    public mutating func receive(_ bytes: [UInt8], device: some UAPIDevice) {
        guard !mustClose else { return }
        if held.isEmpty { return consume(bytes, device) }
        var input: [UInt8] = []
        swap(&input, &held)
        input.append(contentsOf: bytes)
        consume(input, device)
        erase(&input)
    }

    /// The answers so far. They may hold keys: erase them once written.
    public mutating func takeOutput() -> [UInt8] {
        var taken: [UInt8] = []
        swap(&taken, &output)
        return taken
    }

    /// The client is gone or cut off: call it exactly once, last. An operation that has not ended
    /// is dropped.
    public mutating func finish(device: some UAPIDevice) { close(device) }

    // MARK: lines

    private mutating func consume(_ input: [UInt8], _ device: some UAPIDevice) {
        var position = 0
        while !mustClose {
            guard output.count < Self.outputLimit else {
                held = Array(input[position...])
                if held.count > Self.heldInputLimit { close(device) }
                return
            }
            guard step(input.span, &position, device) else { return }
        }
    }

    /// Handles one line; false when there is no whole one.
    private mutating func step(
        _ input: Span<UInt8>, _ position: inout Int, _ device: some UAPIDevice
    )
        -> Bool
    {
        switch lines.next(in: input, at: &position) {
        case .incomplete: return false
        case .within(let range): handle(input.extracting(range), device)
        case .assembled(let line):
            handle(line.span, device)
            lines.recycle(line)
        case .tooLong: handleLongLine(device)
        }
        return true
    }

    private mutating func handle(_ line: Span<UInt8>, _ device: some UAPIDevice) {
        switch state {
        case .idle: begin(line, device)
        case .get: line.isEmpty ? get(device) : failGet(.invalid, isOver: false)
        case .set: set(line, device)
        case .failed:
            if contentLength(line) == 0 { close(device) }
        }
    }

    private mutating func handleLongLine(_ device: some UAPIDevice) {
        switch state {
        case .idle: failSet(.protocolViolation, isOver: false, device)
        case .get: failGet(.invalid, isOver: false)
        case .set: failSet(.lineTooLong, isOver: false, device)
        case .failed: break
        }
    }

    private mutating func begin(_ line: Span<UInt8>, _ device: some UAPIDevice) {
        if line.elementsEqual(UAPIKey.getOperation) {
            state = .get
        } else if line.elementsEqual(UAPIKey.setOperation) {
            operation = UAPISetOperation()
            state = .set
        } else {
            failSet(.protocolViolation, isOver: false, device)
            if line.isEmpty { close(device) }
        }
    }

    // MARK: operations

    private mutating func get(_ device: some UAPIDevice) {
        do throws(UAPIError) {
            appendUAPI(try device.snapshot(), to: &output)
            answer(0)
            state = .idle
        } catch {
            failGet(error, isOver: true)
        }
    }

    private mutating func set(_ line: Span<UInt8>, _ device: some UAPIDevice) {
        // The reference reads lines with a scanner that drops a carriage return before the newline.
        let line = line.extracting(..<contentLength(line))
        let isOver = line.isEmpty
        do throws(UAPIError) {
            guard isOver else { return try operation.apply(line, to: device) }
            try operation.end(device)
            answer(0)
            state = .idle
        } catch {
            failSet(error, isOver: isOver, device)
        }
    }

    // MARK: answers

    /// `wg` wants a positive number for get (C100).
    private mutating func failGet(_ error: UAPIError, isOver: Bool) {
        answer(error.errno)
        state = isOver ? .idle : .failed
    }

    /// `wg` wants a negative number for set (C100). When the blank line was read already, the
    /// stream is in step and the connection stays usable.
    private mutating func failSet(_ error: UAPIError, isOver: Bool, _ device: some UAPIDevice) {
        operation.abort(device)
        answer(-error.errno)
        state = isOver ? .idle : .failed
    }

    private mutating func answer(_ errno: Int32) {
        output.append("errno=")
        if errno < 0 { output.append(UInt8(ascii: "-")) }
        output.append(decimal: UInt64(errno.magnitude))
        output.append("\n\n")
    }

    private mutating func close(_ device: some UAPIDevice) {
        operation.drop(device)
        lines.reset()
        dropHeld()
        state = .idle
        mustClose = true
    }

    private mutating func dropHeld() {
        erase(&held)
        held = []
    }
}

/// Length of `line` without a carriage return at its end.
private func contentLength(_ line: Span<UInt8>) -> Int {
    guard let last = line.indices.last, line[last] == UInt8(ascii: "\r") else { return line.count }
    return last
}
