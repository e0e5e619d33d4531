// SPDX-License-Identifier: Apache-2.0
import CHostProcess

/// Moments as RFC 3339 writes them, in UTC with milliseconds.
public enum UniversalTime {
    /// Milliseconds since 1970, of the wall clock.
    public static func now() -> Int64 {
        let (seconds, nanoseconds) = Host.wallClock()
        return seconds * 1000 + Int64(nanoseconds / 1_000_000)
    }

    /// `2026-01-31T23:59:59.123Z`.
    public static func text(_ milliseconds: Int64) -> String {
        var text = [CChar](repeating: 0, count: Int(HOST_TIME_CAPACITY))
        unsafe host_time_text(milliseconds, &text)
        return string(fromC: text)
    }

    /// Milliseconds since 1970 of a date, a date with a time, or that with a fraction and `Z` or an
    /// offset (RFC 3339 section 5.6; a blank may stand for `T`). Without an offset it is UTC.
    public static func parse(_ text: String) -> Int64? {
        var milliseconds: Int64 = 0
        return unsafe host_time_parse(text, &milliseconds) ? milliseconds : nil
    }
}
