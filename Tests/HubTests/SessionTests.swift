// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Hub

struct SessionTests {
    private let quiet: Int64 = 90_000

    private func mark(_ session: String, boot: UInt64, _ sequence: UInt64) -> SessionMark {
        SessionMark(boot: boot, session: session, sequence: sequence)
    }

    @Test func case_C76_aHigherBootSupersedes() {
        var judge = SessionJudge()
        #expect(judge.hear(mark("a", boot: 1, 1), at: 0, quiet: quiet) == .current)
        #expect(judge.hear(mark("b", boot: 2, 1), at: 1000, quiet: quiet) == .current)
        #expect(judge.hear(mark("a", boot: 1, 2), at: 2000, quiet: quiet) == .late)
        #expect(judge.mark == mark("b", boot: 2, 1))
        #expect(judge.hear(mark("b", boot: 2, 2), at: 3000, quiet: quiet) == .current)
        #expect(!judge.isContested)
    }

    @Test func restartsAreNoContest() {
        var judge = SessionJudge()
        for boot in 1...100 {
            let session = "s\(boot)"
            let time = Int64(boot) * 5000
            let boot = UInt64(boot)
            #expect(judge.hear(mark(session, boot: boot, 1), at: time, quiet: quiet) == .current)
        }
        #expect(!judge.isContested)
    }

    @Test func aLowerBootIsBelievedWhenTheHigherIsSilent() {
        // A state directory was restored from a copy.
        var judge = SessionJudge()
        #expect(judge.hear(mark("a", boot: 9, 1), at: 0, quiet: quiet) == .current)
        #expect(judge.hear(mark("b", boot: 3, 1), at: 1000, quiet: quiet) == .late)
        #expect(judge.hear(mark("b", boot: 3, 2), at: 50_000, quiet: quiet) == .late)
        #expect(judge.hear(mark("b", boot: 3, 3), at: 100_000, quiet: quiet) == .current)
        #expect(!judge.isContested)
    }

    @Test func case_C73_twoThatTakeTurnsAreAContest() {
        var judge = SessionJudge()
        var verdicts: [SessionJudge.Verdict] = []
        for round in 0..<6 {
            let time = Int64(round) * 30_000
            let sequence = UInt64(round + 1)
            verdicts.append(judge.hear(mark("a", boot: 5, sequence), at: time, quiet: quiet))
            verdicts.append(
                judge.hear(mark("b", boot: 5, sequence), at: time + 1, quiet: quiet))
        }
        #expect(judge.isContested)
        #expect(judge.mark?.session == "a")
        #expect(verdicts.suffix(4) == [.current, .duplicate, .current, .duplicate])
    }

    @Test func aContestEndsWhenOneIsGone() {
        var judge = SessionJudge()
        for round in 0..<4 {
            let (time, sequence) = (Int64(round) * 1000, UInt64(round))
            _ = judge.hear(mark("a", boot: 1, sequence), at: time, quiet: quiet)
            _ = judge.hear(mark("b", boot: 1, sequence), at: time, quiet: quiet)
        }
        #expect(judge.isContested)
        var time: Int64 = 4000
        for sequence in UInt64(10)...60 {
            time += 30_000
            _ = judge.hear(mark("b", boot: 1, sequence), at: time, quiet: quiet)
        }
        #expect(!judge.isContested)
        #expect(judge.mark?.session == "b")
    }

    @Test func memoryIsBounded() {
        var judge = SessionJudge()
        for number in 0..<10_000 {
            _ = judge.hear(
                mark("s\(number)", boot: 1, UInt64(number)), at: Int64(number), quiet: quiet)
        }
        #expect(judge.trackCount <= 8)
        for number in 0..<10_000 {
            _ = judge.hear(
                mark("s\(number % 2)", boot: 1, UInt64(number)), at: 10_000 + Int64(number),
                quiet: quiet)
        }
        #expect(judge.isContested)
        #expect(judge.returnCount <= SessionJudge.returnLimit)
    }
}

struct BucketTests {
    @Test func failuresAreCountedBySourceAndForgotten() {
        var buckets = TokenBuckets(burst: 3, rate: 1, limit: 8)
        for _ in 0..<3 { #expect(buckets.fail("a", at: 0) == nil) }
        #expect(buckets.fail("a", at: 0) == 1 || buckets.fail("a", at: 0) == 2)
        #expect(buckets.fail("b", at: 0) == nil)
        #expect(buckets.fail("a", at: 1000) == nil)
        #expect(buckets.fail("a", at: 1000) != nil)
        // A clock that goes back gives nothing and takes nothing.
        #expect(buckets.fail("a", at: 0) != nil)
    }

    @Test func memoryIsBoundedAndTheWorstStay() {
        var buckets = TokenBuckets(burst: 3, rate: 0.001, limit: 8)
        for _ in 0..<4 { _ = buckets.fail("worst", at: 0) }
        for number in 0..<1000 { _ = buckets.fail("source \(number)", at: 0) }
        #expect(buckets.count <= 8)
        #expect(buckets.fail("worst", at: 0) != nil)
    }

    @Test func anIPv6HostIsItsNetwork() {
        #expect(rateLimitKey("2001:db8::1") == rateLimitKey("2001:db8::ffff:1"))
        #expect(rateLimitKey("2001:db8::1") != rateLimitKey("2001:db8:0:1::1"))
        #expect(rateLimitKey("::ffff:192.0.2.1") == "192.0.2.1")
        #expect(rateLimitKey("192.0.2.1") != rateLimitKey("192.0.2.2"))
        #expect(rateLimitKey("uid 0") == "uid 0")
    }
}
