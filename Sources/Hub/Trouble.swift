// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// Something that is tried again and again: the same failure is one line of the log, however often it
/// happens, and so is its end (C109).
///
/// Thread-safety: everything may be called from any thread.
final class Trouble: Sendable {
    private let latest = Mutex<String?>(nil)

    /// Why it failed last; nil: it did not.
    var reason: String? { latest.withLock { $0 } }

    /// `reason` nil: it went well. True: that is news.
    func note(_ reason: String?) -> Bool {
        latest.withLock { stored in
            defer { stored = reason }
            return stored != reason
        }
    }
}
