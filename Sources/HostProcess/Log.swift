// SPDX-License-Identifier: Apache-2.0
import CHostProcess
import Glibc

/// Log lines of this process; from any thread.
public enum Log {
    public enum Target { case standardError, system }
    public enum Priority: Sendable { case error, warning, info, debug }

    /// Every line names `subject`. Opens what it needs now: nothing can be opened once confined.
    public static func open(_ target: Target, program: String, subject: String) {
        unsafe host_log_open(
            target == .system ? HOST_LOG_SYSLOG : HOST_LOG_STDERR, program, subject)
    }

    public static func write(_ priority: Priority, _ line: String) {
        let number =
            switch priority {
            case .error: LOG_ERR
            case .warning: LOG_WARNING
            case .info: LOG_INFO
            case .debug: LOG_DEBUG
            }
        unsafe host_log(number, line)
    }
}
