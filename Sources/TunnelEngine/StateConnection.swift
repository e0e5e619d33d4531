// SPDX-License-Identifier: Apache-2.0
import WireGuard

/// What the state socket shows and takes.
public protocol StateSource: AnyObject {
    func stateDocument() -> [UInt8]
    func raiseTimestampFloor(to floor: TimestampFloor)
}

extension Engine: StateSource {}

extension TimestampFloor: CustomStringConvertible {
    /// `SECONDS.NANOSECONDS` with exactly nine digits after the point, so that reading them as a
    /// fraction and as a count is the same.
    public init?(_ text: Span<UInt8>) {
        let digits = 9
        guard text.count > digits + 1, text[text.count - digits - 1] == UInt8(ascii: "."),
            let seconds = parseDecimal(
                text.extracting(..<(text.count - digits - 1)), maximum: UInt64.max),
            let nanoseconds = parseDecimal(
                text.extracting((text.count - digits)...), maximum: 999_999_999)
        else { return nil }
        self.init(seconds: seconds, nanoseconds: UInt32(nanoseconds))
    }

    public var description: String {
        let digits = String(nanoseconds)
        return "\(seconds)." + String(repeating: "0", count: max(0, 9 - digits.count)) + digits
    }
}

/// One client of the state socket, as a function of its bytes. Requests are those of the
/// configuration protocol, one key: `get=1`, answered by the document and a newline;
/// `set=1`, `timestamp_floor=SECONDS.NANOSECONDS`, answered by `errno=N` and a blank line. Each
/// ends with a blank line. A bad request is answered by `errno=-N` and the connection closes.
public struct StateConnection: Sendable {
    private enum State {
        case idle
        case get
        /// With the floor, once its line was read.
        case set(TimestampFloor?)
    }

    /// No further request is served while this many bytes of answers wait.
    public static let outputLimit = 1 << 20

    private var state = State.idle
    private var lines = LineAssembler()
    private var output: [UInt8] = []

    /// After the output is written, the caller closes.
    public private(set) var mustClose = false

    private static let getRequest = [UInt8]("get=1".utf8)
    private static let setRequest = [UInt8]("set=1".utf8)
    private static let floorKey = [UInt8]("timestamp_floor=".utf8)

    public init() {}

    public var isWithinOperation: Bool {
        if case .idle = state { false } else { true }
    }

    /// Consumes `bytes`, however the stream was cut.
    public mutating func receive(_ bytes: [UInt8], source: some StateSource) {
        var position = 0
        while !mustClose {
            switch lines.next(in: bytes.span, at: &position) {
            case .incomplete: return
            case .within(let range): handle(bytes.span.extracting(range), source)
            case .assembled(let line):
                handle(line.span, source)
                lines.recycle(line)
            case .tooLong: fail(.lineTooLong)
            }
        }
    }

    public mutating func takeOutput() -> [UInt8] {
        var taken: [UInt8] = []
        swap(&taken, &output)
        return taken
    }

    private mutating func handle(_ line: Span<UInt8>, _ source: some StateSource) {
        switch state {
        case .idle: begin(line)
        case .get:
            guard line.isEmpty else { return fail(.invalid) }
            output.append(contentsOf: source.stateDocument())
            output.append(UInt8(ascii: "\n"))
            finishRequest()
        case .set(let floor):
            if line.isEmpty {
                if let floor { source.raiseTimestampFloor(to: floor) }
                answer(0)
                finishRequest()
            } else {
                set(line)
            }
        }
    }

    private mutating func begin(_ line: Span<UInt8>) {
        if line.elementsEqual(Self.getRequest) {
            state = .get
        } else if line.elementsEqual(Self.setRequest) {
            state = .set(nil)
        } else {
            fail(.protocolViolation)
        }
    }

    private mutating func set(_ line: Span<UInt8>) {
        let length = Self.floorKey.count
        guard line.count > length, line.extracting(..<length).elementsEqual(Self.floorKey),
            let floor = TimestampFloor(line.extracting(length...))
        else { return fail(.invalid) }
        state = .set(floor)
    }

    /// A client that asks on without reading is cut off after the answers so far.
    private mutating func finishRequest() {
        state = .idle
        if output.count >= Self.outputLimit { mustClose = true }
    }

    private mutating func fail(_ error: UAPIError) {
        answer(-error.errno)
        state = .idle
        mustClose = true
    }

    private mutating func answer(_ errno: Int32) {
        output.append(errno < 0 ? "errno=-" : "errno=")
        output.append(decimal: UInt64(errno.magnitude))
        output.append("\n\n")
    }
}
