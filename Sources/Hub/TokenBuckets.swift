// SPDX-License-Identifier: Apache-2.0
import WireGuard

/// Limits failures by where they come from. Only failures take from a bucket and, unless `wait` is
/// asked first, only they are refused by an empty one, so nobody is locked out by others behind the
/// same address.
struct TokenBuckets: Sendable {
    /// Failures at once.
    let burst: Double
    /// Failures for each second after that.
    let rate: Double
    /// So many sources are remembered; the memory is bounded.
    let limit: Int

    private struct Bucket {
        var level: Double
        var filled: Milliseconds
    }
    private var buckets: [String: Bucket] = [:]

    init(burst: Double = 10, rate: Double = 0.2, limit: Int = 4096) {
        self.burst = burst
        self.rate = rate
        self.limit = limit
    }

    var count: Int { buckets.count }

    /// nil: the failure may be answered; else the seconds until one may again.
    mutating func fail(_ source: String, at now: Milliseconds) -> Int? {
        if buckets[source] == nil, buckets.count >= limit { makeRoom(now) }
        var bucket = buckets[source] ?? Bucket(level: burst, filled: now)
        bucket.level = min(burst, bucket.level + rate * elapsed(bucket, now))
        bucket.filled = now
        defer { buckets[source] = bucket }
        if let seconds = wait(bucket.level) { return seconds }
        bucket.level -= 1
        return nil
    }

    /// As `fail`, and nothing is taken.
    func wait(_ source: String, at now: Milliseconds) -> Int? {
        guard let bucket = buckets[source] else { return nil }
        return wait(bucket.level + rate * elapsed(bucket, now))
    }

    private func wait(_ level: Double) -> Int? {
        level >= 1 ? nil : max(1, Int((1 - level) / rate) + 1)
    }

    private func elapsed(_ bucket: Bucket, _ now: Milliseconds) -> Double {
        Double(max(0, now - bucket.filled)) / 1000
    }

    /// Full buckets say nothing. Where all say something, the fullest go: their sources failed
    /// least.
    private mutating func makeRoom(_ now: Milliseconds) {
        let levels = buckets.mapValues { min(burst, $0.level + rate * elapsed($0, now)) }
        buckets = buckets.filter { levels[$0.key]! < burst }
        guard buckets.count >= limit else { return }
        let middle = buckets.keys.map { levels[$0]! }.sorted()[limit / 2]
        var excess = buckets.count - limit / 2
        for key in buckets.keys where excess > 0 && levels[key]! >= middle {
            buckets[key] = nil
            excess -= 1
        }
    }
}

/// The key of a source: an IPv6 host has a /64 of its own, so that is what counts.
func rateLimitKey(_ address: String) -> String {
    guard let parsed = IPAddress(address), case .v6(let high, let low) = parsed else {
        return address
    }
    // An IPv4 client of a socket for both families.
    if high == 0, low >> 32 == 0xFFFF {
        return IPAddress.v4(UInt32(truncatingIfNeeded: low)).description
    }
    return "\(IPAddress.v6(high: high, low: 0))/64"
}
