// SPDX-License-Identifier: Apache-2.0
import CHostProcess
import Glibc
import Synchronization

/// Log lines of this process; from any thread.
public enum Log {
    public enum Target { case standardError, system }
    public enum Priority: Sendable { case error, warning, info, debug }

    /// Every line names `subject`. Opens what it needs now: nothing can be opened once confined.
    public static func open(_ target: Target, program: String, subject: String) {
        unsafe host_log_open(
            target == .system ? HOST_LOG_SYSLOG : HOST_LOG_STDERR, program, subject)
    }

    /// From now on every line names `subject`.
    public static func rename(_ subject: String) { unsafe host_log_rename(subject) }

    /// A line with the place in the program that wrote it.
    public struct Line: Sendable {
        public let priority: Priority
        public let text: String
        public let file: String
        public let number: UInt
    }

    private static let receiver = Mutex<(@Sendable (Line) -> Void)?>(nil)

    /// From now on lines go to `receiver` alone, until nil. It is called on the writer's thread.
    public static func forward(to receiver: (@Sendable (Line) -> Void)?) {
        Self.receiver.withLock { $0 = receiver }
    }

    public static func write(
        _ priority: Priority, _ line: String, file: String = #fileID, number: UInt = #line
    ) {
        if let receiver = receiver.withLock({ $0 }) {
            receiver(Line(priority: priority, text: line, file: file, number: number))
            return
        }
        let level =
            switch priority {
            case .error: LOG_ERR
            case .warning: LOG_WARNING
            case .info: LOG_INFO
            case .debug: LOG_DEBUG
            }
        unsafe host_log(level, line)
    }
}
