// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Agent

@Suite struct HeartbeatScheduleTests {
    /// 1,000 agents, each with its own state machine; the hub is gone for `absence` milliseconds and
    /// comes back. Counts what reaches the hub in each second of the first minute after its return.
    private func returnOfTheHub(seed: UInt64, after absence: Int64) -> [Int] {
        let goneAt: Moment = 300_000
        let backAt = goneAt + absence
        var seconds = [Int](repeating: 0, count: 60)
        var random = SplitMix(seed: seed)
        for _ in 0..<1000 {
            var schedule = HeartbeatSchedule(seed: random.next())
            schedule.start(at: 0)
            while let now = schedule.nextAt, now < backAt + 60_000 {
                schedule.began()
                if now >= backAt { seconds[Int((now - backAt) / 1000)] += 1 }
                if goneAt..<backAt ~= now {
                    schedule.failed(at: now)
                } else {
                    schedule.succeeded(at: now)
                }
            }
        }
        return seconds
    }

    /// Seconds of absence: what the contract names, and up to half an hour.
    @Test(arguments: [20, 45, 60, 90, 150, 300, 1800] as [Int64])
    func case_C66_a_hub_that_returns_meets_no_herd(_ absence: Int64) {
        for seed in 1...20 as ClosedRange<UInt64> {
            let seconds = returnOfTheHub(seed: seed, after: absence * 1000)
            let total = seconds.reduce(0, +)
            #expect(total > 1200, "every agent has come back, some of them twice")
            #expect(seconds.max()! * 60 <= 2 * total, "\(seconds)")
        }
    }

    @Test func case_C66_the_first_heartbeats_of_a_fleet_spread_over_one_interval() {
        var tenths = [Int](repeating: 0, count: 10)
        for seed in 1...1000 {
            var schedule = HeartbeatSchedule(seed: UInt64(seed))
            schedule.start(at: 5)
            tenths[Int((schedule.nextAt! - 5) / 3000)] += 1
        }
        #expect(tenths.allSatisfy { 60...140 ~= $0 }, "\(tenths)")
    }

    @Test func each_next_one_is_within_a_tenth() {
        var schedule = HeartbeatSchedule(seed: 3)
        var waits: Set<Int64> = []
        for _ in 0..<500 {
            schedule.succeeded(at: 7)
            let wait = schedule.nextAt! - 7
            #expect(27_000...33_000 ~= wait)
            waits.insert(wait)
        }
        #expect(waits.count > 400)
    }

    @Test func who_fails_again_and_again_leaves_out_beats_and_never_hurries() {
        let cases: [(Int, Int64)] = [(30, 66_000), (140, 308_000), (900, 990_000)]
        for (interval, most) in cases {
            var sum: Int64 = 0
            for seed in 1...400 {
                var late = HeartbeatSchedule(seed: UInt64(seed), intervalSeconds: interval)
                for _ in 1...30 {
                    late.failed(at: 0)
                    #expect(Int64(interval) * 900...most ~= late.nextAt!)
                }
                sum += late.nextAt!
            }
            guard interval == 30 else { continue }
            #expect(37_000...43_000 ~= sum / 400, "one and a third on average")
        }
    }

    @Test func case_C67_the_clock_of_failures_starts_at_the_first_one() {
        var schedule = HeartbeatSchedule(seed: 5)
        schedule.start(at: 0)
        for time in stride(from: Int64(0), to: 90 * 86_400_000, by: 86_400_000) {
            schedule.succeeded(at: time)
        }
        let now: Moment = 90 * 86_400_000
        schedule.failed(at: now)
        #expect(schedule.firstFailureAt == now)
        #expect(schedule.failures == 1)
        #expect(schedule.nextAt! - now <= 60_000, "months of success make the first wait no longer")
        schedule.failed(at: now + 40_000)
        #expect(schedule.firstFailureAt == now)
        schedule.succeeded(at: now + 50_000)
        #expect(schedule.firstFailureAt == nil)
        #expect(schedule.failures == 0)
    }

    @Test func a_pause_that_the_hub_asks_for_is_kept() {
        for seed in 1...50 {
            var schedule = HeartbeatSchedule(seed: UInt64(seed))
            schedule.failed(at: 1000, retryAfter: 120_000)
            #expect(schedule.nextAt! > 121_000)
            schedule.retrySoon(at: 2000)
            #expect(schedule.nextAt! >= 121_000, "even when the network comes back meanwhile")
            schedule.failed(at: 0, retryAfter: 99_999_999_999)
            #expect(schedule.nextAt! < 2 * Backoff.longestRetryAfter)
        }
    }

    @Test func news_make_it_come_sooner_only_while_all_is_well() {
        var schedule = HeartbeatSchedule(seed: 6)
        schedule.succeeded(at: 0)
        schedule.hurry(at: 10)
        #expect(10...1010 ~= schedule.nextAt!)
        schedule.failed(at: 20)
        let planned = schedule.nextAt
        schedule.hurry(at: 30)
        #expect(schedule.nextAt == planned)
        schedule.began()
        schedule.hurry(at: 40)
        #expect(schedule.nextAt == nil, "one is under way")
    }

    @Test func news_that_come_while_one_is_under_way_lead_to_another() {
        var schedule = HeartbeatSchedule(seed: 6)
        schedule.succeeded(at: 0)
        schedule.began()
        schedule.hurry(at: 10)
        #expect(schedule.nextAt == nil)
        schedule.succeeded(at: 20)
        #expect(schedule.nextAt == 20)
        schedule.began()
        schedule.succeeded(at: 30)
        #expect(schedule.nextAt! > 20_000, "once")
    }

    @Test func an_operator_who_asks_does_not_wait_for_the_backoff() {
        var schedule = HeartbeatSchedule(seed: 7)
        schedule.succeeded(at: 0)
        for _ in 0..<9 { schedule.failed(at: 10) }
        schedule.askNow(at: 20)
        #expect(schedule.nextAt == 20)
        schedule.failed(at: 30, retryAfter: 60_000)
        schedule.askNow(at: 40)
        #expect(schedule.nextAt == 60_030, "a pause that the hub asked for is kept")
    }

    @Test func an_interval_outside_of_what_may_be_asked_for_is_moved_inside() {
        for (asked, meant) in [(0, 5_000), (-3, 5_000), (5, 5_000), (9_999, 3_600_000)] {
            #expect(HeartbeatSchedule(seed: 1, intervalSeconds: asked).interval == Int64(meant))
        }
        #expect(HeartbeatSchedule(seed: 1, intervalSeconds: .max).interval == 3_600_000)
    }
}

@Suite struct BackoffTests {
    @Test func case_C66_each_try_waits_for_any_part_of_its_window() {
        var random = SplitMix(seed: 1)
        for (failures, window) in [
            (0, 1_000), (1, 2_000), (5, 32_000), (9, 300_000), (60, 300_000),
        ] {
            var quarters = [Int](repeating: 0, count: 4)
            for _ in 0..<400 {
                var backoff = Backoff()
                for _ in 0..<failures { _ = backoff.failed(at: 0, random: &random) }
                let wait = backoff.failed(at: 0, random: &random)
                #expect(1...Int64(window) ~= wait)
                quarters[Int((wait - 1) * 4 / Int64(window))] += 1
            }
            #expect(quarters.allSatisfy { 60...140 ~= $0 }, "\(quarters)")
        }
    }

    @Test func success_begins_anew() {
        var random = SplitMix(seed: 2)
        var backoff = Backoff()
        for _ in 0..<20 { _ = backoff.failed(at: 100, random: &random) }
        #expect(backoff.firstFailureAt == 100)
        backoff.succeeded()
        #expect(backoff.failed(at: 900, random: &random) <= 1900)
        #expect(backoff.firstFailureAt == 900)
    }
}
