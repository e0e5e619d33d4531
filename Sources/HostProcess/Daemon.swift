// SPDX-License-Identifier: Apache-2.0
import CHostProcess
import Glibc

/// How this process tells its starter that it is ready, or why it is not: to a waiting parent or to
/// standard error. Exactly one of `ready` and `fail` ends it.
public struct StartReport: ~Copyable {
    private let parent: Int32?
    private let program: String

    /// Stays in the foreground.
    public static func foreground(program: String) -> StartReport {
        host_set_umask()
        return StartReport(parent: nil, program: program)
    }

    /// Forks; only the background process returns. Before any thread exists.
    public static func daemonise(program: String) throws(HostError) -> StartReport {
        let report = unsafe host_daemonise(program)
        guard report >= 0 else {
            throw HostError(
                errno: -report, "cannot go to the background: \(textOfErrno(-report))")
        }
        return StartReport(parent: report, program: program)
    }

    /// False: nobody waits any more, the start was aborted.
    public consuming func ready() -> Bool {
        guard let parent else { return true }
        return host_report_ready(parent) == 0
    }

    public consuming func fail(code: UInt8, _ message: String) {
        guard let parent else { return StandardStream.error.write("\(program): \(message)\n") }
        unsafe host_report_failure(parent, code, "\(program): \(message)\n")
    }
}

/// sd_notify(3), where $NOTIFY_SOCKET is set. Connected early: a confined process cannot.
public struct ServiceManager: Sendable {
    private let descriptor: Int32

    public init() { descriptor = host_notify_open() }

    public func notify(_ state: String) { unsafe host_notify(descriptor, state) }

    /// sd_watchdog_enabled(3): how often this process has to say that it is well, in milliseconds; nil:
    /// nobody asks it to.
    public static var watchdogPeriod: Int64? {
        guard Host.environment("WATCHDOG_PID").map({ $0 == "\(getpid())" }) ?? true,
            let period = Host.environment("WATCHDOG_USEC").flatMap({ Int64($0) }), period > 0
        else { return nil }
        return max(1, period / 1000)
    }
}

/// What a service manager is told while a program runs: that it is well, twice in each period that it
/// asks for, and how it is, when that has changed. Times are milliseconds of one clock.
public struct ServiceReport: Sendable {
    private let interval: Int64?
    private var dueAt: Int64
    private var status = ""

    /// `period`: see `ServiceManager.watchdogPeriod`.
    public init(period: Int64?, now: Int64) {
        interval = period.map { max(1, $0 / 2) }
        dueAt = now
    }

    /// When to call `message` at the latest; nil: only when something has changed.
    public var nextTime: Int64? { interval == nil ? nil : dueAt }

    /// For `ServiceManager.notify`; nil: there is nothing to say. `isWell`: it makes progress. `status`:
    /// one line.
    public mutating func message(isWell: Bool, status: String, now: Int64) -> String? {
        var lines: [String] = []
        if status != self.status {
            self.status = status
            lines.append("STATUS=\(status)")
        }
        if let interval, now >= dueAt {
            dueAt = now + interval
            if isWell { lines.append("WATCHDOG=1") }
        }
        return lines.isEmpty ? nil : lines.joined(separator: "\n")
    }
}

/// SIGTERM and SIGINT as a descriptor; in the foreground SIGHUP as well. SIGPIPE is ignored.
public struct EndingSignals: ~Copyable {
    private let source: Descriptor

    /// Before any thread exists: threads inherit what is blocked.
    public init(hangupEnds: Bool) throws(HostError) {
        let number = host_signals_open(hangupEnds)
        guard number >= 0 else {
            throw HostError(errno: -number, "cannot receive signals: \(textOfErrno(-number))")
        }
        source = Descriptor(owning: number)
    }

    public var descriptor: Int32 { source.number }

    /// Number of the next one.
    public func next() -> Int32? {
        let signal = host_signals_next(source.number)
        return signal == 0 ? nil : signal
    }
}
