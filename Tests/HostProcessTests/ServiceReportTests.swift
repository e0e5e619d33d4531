// SPDX-License-Identifier: Apache-2.0
import Glibc
import HostProcess
import Testing

@Suite(.serialized) struct ServiceReportTests {
    @Test func it_is_well_twice_in_a_period() {
        var report = ServiceReport(period: 60_000, now: 5)
        var said = 0
        for now in stride(from: Int64(5), through: 300_005, by: 500) {
            if report.message(isWell: true, status: "", now: now) == "WATCHDOG=1" { said += 1 }
        }
        #expect(said == 11)
        #expect(report.nextTime == 330_005)
    }

    @Test func who_makes_no_progress_says_nothing() {
        var report = ServiceReport(period: 60_000, now: 0)
        #expect(report.message(isWell: false, status: "", now: 0) == nil)
        #expect(report.nextTime == 30_000)
        #expect(report.message(isWell: true, status: "", now: 30_000) == "WATCHDOG=1")
    }

    @Test func a_status_is_said_when_it_has_changed() {
        var report = ServiceReport(period: nil, now: 0)
        #expect(report.nextTime == nil)
        #expect(report.message(isWell: true, status: "a", now: 0) == "STATUS=a")
        #expect(report.message(isWell: true, status: "a", now: 1) == nil)
        #expect(report.message(isWell: true, status: "b", now: 2) == "STATUS=b")
        var watched = ServiceReport(period: 10, now: 0)
        #expect(watched.message(isWell: true, status: "a", now: 0) == "STATUS=a\nWATCHDOG=1")
    }

    /// sd_watchdog_enabled(3)
    @Test(
        arguments: [
            (nil, nil, nil), ("60000000", nil, 60_000), ("60000000", "1", nil), ("0", nil, nil),
            ("x", nil, nil), ("-5", nil, nil), ("999", nil, 1),
        ] as [(String?, String?, Int64?)])
    func the_period_is_in_the_environment(
        _ microseconds: String?, _ process: String?, _ expected: Int64?
    ) {
        for (name, value) in [("WATCHDOG_USEC", microseconds), ("WATCHDOG_PID", process)] {
            if let value { unsafe setenv(name, value, 1) } else { unsafe unsetenv(name) }
        }
        defer {
            unsafe unsetenv("WATCHDOG_USEC")
            unsafe unsetenv("WATCHDOG_PID")
        }
        #expect(ServiceManager.watchdogPeriod == expected)
        if expected != nil {
            unsafe setenv("WATCHDOG_PID", "\(getpid())", 1)
            #expect(ServiceManager.watchdogPeriod == expected)
        }
    }
}
