// SPDX-License-Identifier: Apache-2.0
import HostProcess
import SQLite
import Synchronization

/// The log of a program: every record goes to its output at once, and in batches to the history on
/// disk. Callable from any thread.
///
/// Records are kept in memory. They reach the history when one is a warning or an error, and else
/// every 30 seconds (C111); debug records only together with a warning or an error, as what went
/// before it. A place in the program that repeats itself is cut short (C109). Where the disk is full
/// the program goes on, and the history says how much it lacks.
public final class Logger: Sendable {
    public struct Clock: Sendable {
        /// Milliseconds since 1970; may jump.
        public var wall: @Sendable () -> Int64 = UniversalTime.now
        /// Milliseconds of a clock that never jumps.
        public var monotonic: @Sendable () -> Int64 = Host.monotonicMilliseconds

        public init() {}
    }

    public static let flushInterval: Int64 = 30_000
    /// Records in memory.
    static let capacity = 2000

    fileprivate struct State {
        var limit = RepeatLimit()
        /// Not yet in the history, oldest first.
        var pending: [LogRecord] = []
        var pendingSince: Int64?
        /// Records that found no room in memory while the history could not be written.
        var lost = 0
        var sequence: Int64 = 0
        /// Whether the output was told that the history cannot be written.
        var hasComplained = false
    }

    private let program: String
    private let minimum: LogLevel
    private let output: LogOutput
    private let clock: Clock
    private let follower: String?
    private let state = Mutex(State())
    /// Taken before `state` where both are; nil when there is no history.
    private let history: Mutex<LogHistory?>

    /// `minimum` holds for the output; the history gets the rest as well. `directory` is that of
    /// the history, by which a reader that follows is noticed.
    public init(
        program: String, minimum: LogLevel = .info, output: LogOutput = .automatic,
        directory: StateDirectory? = nil, historyLimit: Int64 = LogHistory.defaultLimit,
        clock: Clock = Clock()
    ) {
        self.program = program
        self.minimum = minimum
        self.output = output
        self.clock = clock
        follower = directory?.file(LogFollower.fileName)
        guard let directory else {
            history = Mutex(nil)
            return
        }
        let (opened, problem) = LogHistory.openForWriting(directory, limit: historyLimit)
        history = Mutex(opened)
        if let problem { warn("log", "\(problem)") }
        for correction in directory.corrections { warn("storage", "\(correction)") }
    }

    public func debug(
        _ tag: String, _ message: LogMessage, _ fields: [LogField] = [],
        file: String = #fileID, line: UInt = #line
    ) { log(.debug, tag, message, fields, file: file, line: line) }

    public func info(
        _ tag: String, _ message: LogMessage, _ fields: [LogField] = [],
        file: String = #fileID, line: UInt = #line
    ) { log(.info, tag, message, fields, file: file, line: line) }

    public func warn(
        _ tag: String, _ message: LogMessage, _ fields: [LogField] = [],
        file: String = #fileID, line: UInt = #line
    ) { log(.warn, tag, message, fields, file: file, line: line) }

    public func error(
        _ tag: String, _ message: LogMessage, _ fields: [LogField] = [],
        file: String = #fileID, line: UInt = #line
    ) { log(.error, tag, message, fields, file: file, line: line) }

    /// `file` and `line` name the place whose repetitions are counted.
    public func log(
        _ level: LogLevel, _ tag: String, _ message: LogMessage, _ fields: [LogField] = [],
        file: String = #fileID, line: UInt = #line
    ) {
        let now = clock.monotonic()
        let place = RepeatLimit.Place(file: file, line: line)
        let decision = state.withLock {
            $0.limit.decide(place, level, tag, message.text, now: now)
        }
        guard case .write(let repetition) = decision else { return }
        if let repetition { add(repetition, now: now) }
        add(level, tag, message.text, fields, now: now)
        if level >= .warn || isFollowed { flush() } else { flushIfDue() }
    }
}

extension Logger {
    /// Takes over the lines that this process writes by `Log`, for the program's whole life.
    public func receiveLines(tag: String) {
        Log.forward { [self] line in
            let level: LogLevel =
                switch line.priority {
                case .error: .error
                case .warning: .warn
                case .info: .info
                case .debug: .debug
                }
            log(level, tag, "\(line.text)", file: line.file, line: line.number)
        }
    }
}

// MARK: from memory to the history

extension Logger {
    private func add(_ repetition: RepeatLimit.Repetition, now: Int64) {
        let count = LogField("repeated", LogValue(repetition.count))
        add(repetition.level, repetition.tag, repetition.text, [count], now: now)
    }

    private func add(
        _ level: LogLevel, _ tag: String, _ message: String, _ fields: [LogField], now: Int64
    ) {
        let milliseconds = clock.wall()
        let record = state.withLock { state in
            state.sequence += 1
            let record = LogRecord(
                sequence: state.sequence, milliseconds: milliseconds, level: level, tag: tag,
                message: shortened(message, to: 4000), fields: fields.map(\.shortened))
            state.add(record, now: now)
            return record
        }
        if level >= minimum { output.write(record, program: program) }
    }

    /// For a loop that wakes anyway: says what was repeated, and writes the history when records
    /// have waited for 30 seconds.
    public func flushIfDue() {
        let now = clock.monotonic()
        for repetition in state.withLock({ $0.limit.takeRepetitions(now: now) }) {
            add(repetition, now: now)
        }
        let isDue = state.withLock { state in
            state.pendingSince.map { now - $0 >= Self.flushInterval } ?? false
        }
        if isDue { flush() }
    }

    /// At the end of the program: everything, also what was repeated until now.
    public func close() {
        let now = clock.monotonic()
        for repetition in state.withLock({ $0.limit.takeRepetitions(now: now, all: true) }) {
            add(repetition, now: now)
        }
        flush()
    }

    /// Writes to the history what is in memory. A failure is said once, and tried again with the
    /// next flush.
    public func flush() {
        let failure: String? = history.withLock { (history) -> String? in
            guard let history else { return nil }
            let (records, lost) = state.withLock { $0.take() }
            guard !records.isEmpty || lost > 0 else { return nil }
            do throws(SQLiteError) {
                let leftOut = try history.append(Self.note(lost, before: records) + records)
                state.withLock { state in
                    state.hasComplained = false
                    state.lost += leftOut
                }
                return nil
            } catch {
                state.withLock { $0.putBack(records, lost: lost) }
                return error.description
            }
        }
        guard let failure else { return }
        let isNew = state.withLock { state in
            defer { state.hasComplained = true }
            return !state.hasComplained
        }
        guard isNew else { return }
        // Only memory and the output: the history is what failed.
        add(.warn, "log", "cannot write the history: \(failure)", [], now: clock.monotonic())
    }

    private static func note(_ lost: Int, before records: [LogRecord]) -> [LogRecord] {
        guard lost > 0 else { return [] }
        return [
            LogRecord(
                sequence: 0, milliseconds: records.first?.milliseconds ?? UniversalTime.now(),
                level: .warn, tag: "log",
                message: "\(lost) records are missing here: the history could not be written",
                fields: [LogField("lost", LogValue(lost))])
        ]
    }

    /// Somebody reads along: a new record goes to the history at once.
    private var isFollowed: Bool {
        guard let follower else { return false }
        return LogFollower.isPresent(follower, now: clock.wall())
    }
}

extension Logger.State {
    mutating func add(_ record: LogRecord, now: Int64) {
        pending.append(record)
        if record.level > .debug, pendingSince == nil { pendingSince = now }
        trim()
    }

    /// Debug records go first, then the oldest; only the latter are missed.
    private mutating func trim() {
        guard pending.count > Logger.capacity else { return }
        if let index = pending.firstIndex(where: { $0.level == .debug }) {
            pending.remove(at: index)
        } else {
            pending.removeFirst()
            lost += 1
        }
    }

    /// What a flush writes: without debug records where nothing is wrong.
    mutating func take() -> (records: [LogRecord], lost: Int) {
        defer {
            pendingSince = nil
            lost = 0
        }
        guard pending.contains(where: { $0.level >= .warn }) else {
            let records = pending.filter { $0.level > .debug }
            pending.removeAll { $0.level > .debug }
            return (records, lost)
        }
        defer { pending.removeAll() }
        return (pending, lost)
    }

    mutating func putBack(_ records: [LogRecord], lost before: Int) {
        pending = (records + pending).sorted { $0.sequence < $1.sequence }
        lost += before
        pendingSince = pendingSince ?? Host.monotonicMilliseconds()
        while pending.count > Logger.capacity { trim() }
    }
}
