// SPDX-License-Identifier: Apache-2.0
// When heartbeats are due. A fleet shares one hub: nothing that happens to all of them at once may
// make them come at once (C66).

public struct HeartbeatSchedule: Equatable, Sendable {
    /// Milliseconds. What a hub may ask for is 5 s to an hour.
    public static let intervals: ClosedRange<Int64> = 5_000...3_600_000
    /// From this many failures in a row on, the state is `failed`; the tunnel goes on.
    public static let failuresUntilFailed = 3

    public private(set) var interval: Int64
    /// nil: nothing is due until `start`.
    public private(set) var nextAt: Moment?
    /// In a row, with the time of the first one.
    public private(set) var failures = 0
    public private(set) var firstFailureAt: Moment?
    /// The hub asked to stay away until then.
    private var notBefore: Moment = .min
    /// Another one is wanted as soon as the one that is under way has ended.
    private var isWanted = false
    private var random: SplitMix

    public init(seed: UInt64, intervalSeconds: Int = 30) {
        random = SplitMix(seed: seed)
        interval = 0
        setInterval(seconds: intervalSeconds)
    }

    private mutating func setInterval(seconds: Int) {
        let wanted = Int64(clamping: seconds).multipliedReportingOverflow(by: 1000)
        let milliseconds = wanted.overflow ? Self.intervals.upperBound : wanted.partialValue
        interval = min(max(milliseconds, Self.intervals.lowerBound), Self.intervals.upperBound)
    }

    /// The first one: anywhere in one interval.
    public mutating func start(at now: Moment) {
        nextAt = now + Int64.random(in: 0..<interval, using: &random)
    }

    public mutating func stop() {
        nextAt = nil
        isWanted = false
    }

    /// It is under way: nothing is due until its end is told.
    public mutating func began() { nextAt = nil }

    /// The next one: ± 10 %.
    public mutating func succeeded(at now: Moment, intervalSeconds: Int? = nil) {
        failures = 0
        firstFailureAt = nil
        notBefore = .min
        if let intervalSeconds { setInterval(seconds: intervalSeconds) }
        nextAt = now + around(interval)
        takeWanted(now)
    }

    /// `retryAfter`: milliseconds that the hub asked for.
    public mutating func failed(at now: Moment, retryAfter: Int64? = nil) {
        if firstFailureAt == nil { firstFailureAt = now }
        failures += 1
        let pause = min(max(retryAfter ?? 0, 0), Backoff.longestRetryAfter)
        notBefore = now + pause
        nextAt = notBefore + delay(after: failures)
        takeWanted(now)
    }

    /// An answer that repeating does not change soon: at the end of the longest window.
    public mutating func slowDown(at now: Moment) {
        if firstFailureAt == nil { firstFailureAt = now }
        failures += 1
        nextAt = now + around(max(interval, Backoff.cap))
        takeWanted(now)
    }

    /// Something happened that the hub should hear of, or has news of. Not while the hub fails: the
    /// windows of the backoff are what protects it.
    public mutating func hurry(at now: Moment) {
        guard failures == 0 else { return }
        guard let nextAt else {
            isWanted = true
            return
        }
        let soon = max(now, notBefore) + Int64.random(in: 0..<1000, using: &random)
        self.nextAt = min(nextAt, soon)
    }

    /// The network came back or the machine woke: what failed before says nothing about now. The
    /// count stays, and so does a pause that the hub asked for.
    public mutating func retrySoon(at now: Moment) {
        guard let nextAt else { return }
        let soon = max(now, notBefore) + Int64.random(in: 0..<min(interval, 5_000), using: &random)
        self.nextAt = min(nextAt, soon)
    }

    /// An operator asks for one, whatever failed before; a pause that the hub asked for stays.
    public mutating func askNow(at now: Moment) {
        guard let nextAt else {
            isWanted = true
            return
        }
        self.nextAt = min(nextAt, max(now, notBefore))
    }

    private mutating func takeWanted(_ now: Moment) {
        guard isWanted else { return }
        isWanted = false
        askNow(at: now)
    }

    private mutating func around(_ value: Int64) -> Int64 {
        Int64.random(in: value - value / 10...value + value / 10, using: &random)
    }

    /// Milliseconds after the `count`-th failure in a row. The cadence is spread already: who leaves
    /// it in order to hurry comes back together with all the others, and a thousand agents with the
    /// usual windows from 1 s on meet a hub that was away for 20 s with five times their mean rate.
    /// So a failure keeps the cadence; from the second one on, one beat of three is left out, by
    /// chance. Windows that grow would not spare the hub more when it returns, for it is never asked
    /// more often than when all is well: they let its first minute begin with nobody, and those who
    /// come first come again together with those who come last, twice the mean and more.
    private mutating func delay(after count: Int) -> Int64 {
        let pause = around(interval)
        let leavesOut = Int64.random(in: 0..<3, using: &random) == 0
        guard count > 1, leavesOut, 2 * interval < Backoff.cap else { return pause }
        return pause + around(interval)
    }
}
