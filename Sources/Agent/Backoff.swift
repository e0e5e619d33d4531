// SPDX-License-Identifier: Apache-2.0

/// When to try again: exponential with full jitter, from 1 s to 5 minutes. Each try waits for a
/// random part of a window that doubles, so that those who failed together do not come back together
/// (C66). The count begins at the first failure, however long all went well before (C67).
public struct Backoff: Equatable, Sendable {
    /// Milliseconds.
    public static let cap: Int64 = 300_000
    /// A server may ask for a pause; what is longer than this is taken for a mistake. Milliseconds.
    public static let longestRetryAfter: Int64 = 3_600_000

    /// The first window, in milliseconds.
    public let base: Int64
    /// In a row.
    public private(set) var failures = 0
    public private(set) var firstFailureAt: Moment?

    public init(base: Int64 = 1000) { self.base = base }

    public mutating func succeeded() {
        failures = 0
        firstFailureAt = nil
    }

    /// When to try again. `retryAfter`: milliseconds that the server asked for; they are waited in
    /// full, and the jitter comes on top.
    public mutating func failed(
        at now: Moment, retryAfter: Int64? = nil, random: inout SplitMix
    ) -> Moment {
        if firstFailureAt == nil { firstFailureAt = now }
        let window = window(after: failures)
        failures += 1
        let pause = min(max(retryAfter ?? 0, 0), Self.longestRetryAfter)
        return now + pause + Int64.random(in: 1...window, using: &random)
    }

    /// Milliseconds; `count` failures came before this one.
    private func window(after count: Int) -> Int64 {
        guard count < 20 else { return max(base, Self.cap) }
        return min(base << Int64(count), max(base, Self.cap))
    }
}
