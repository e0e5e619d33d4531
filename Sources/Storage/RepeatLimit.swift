// SPDX-License-Identifier: Apache-2.0

/// Lets a place in the program write so many records in so much time and counts the rest: a fault
/// that comes back ten times a second must not fill a disk (C109). Pure; times are of a clock that
/// never jumps.
struct RepeatLimit {
    /// Records of one place in one window.
    static let allowed = 20
    /// Milliseconds.
    static let window: Int64 = 60_000

    /// Where in the program's text a record is written.
    struct Place: Hashable, Sendable {
        let file: String
        let line: UInt
    }

    /// What is said about records that were left out.
    struct Repetition: Equatable, Sendable {
        let level: LogLevel
        let tag: String
        /// Of the last one.
        let message: String
        let count: Int

        var text: String { "repeated \(count) times, lastly: \(message)" }
    }

    private struct Window {
        var start: Int64
        var written = 0
        var leftOut: Repetition?
    }

    /// One for each place in the program: there are as many as its text has.
    private var windows: [Place: Window] = [:]

    enum Decision: Equatable {
        /// Write it, and before it what was left out until now.
        case write(after: Repetition?)
        case leaveOut
    }

    mutating func decide(
        _ place: Place, _ level: LogLevel, _ tag: String, _ message: String, now: Int64
    ) -> Decision {
        var window = windows[place] ?? Window(start: now)
        defer { windows[place] = window }
        var repetition: Repetition?
        if now - window.start >= Self.window {
            repetition = window.leftOut
            window = Window(start: now)
        }
        guard window.written < Self.allowed else {
            window.leftOut = Repetition(
                level: max(level, window.leftOut?.level ?? level), tag: tag, message: message,
                count: (window.leftOut?.count ?? 0) + 1)
            return .leaveOut
        }
        window.written += 1
        return .write(after: repetition)
    }

    /// What was left out in windows that are over; of all windows with `all`.
    mutating func takeRepetitions(now: Int64, all: Bool = false) -> [Repetition] {
        var repetitions: [Repetition] = []
        for (place, window) in windows where all || now - window.start >= Self.window {
            if let repetition = window.leftOut { repetitions.append(repetition) }
            windows[place] = nil
        }
        return repetitions.sorted { ($0.tag, $0.message) < ($1.tag, $1.message) }
    }
}
