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
