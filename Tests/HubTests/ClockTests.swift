// SPDX-License-Identifier: Apache-2.0
// A hub whose clock is set while it runs, or was wrong before it began.
import ControlAPI
import SQLite
import Testing
import WireGuard

@testable import Hub

struct ClockTests {
    /// Seconds since the test began, by a clock that nobody sets.
    private func tick(_ test: TestHub, _ seconds: Int64) throws {
        test.hub.compareClocks(monotonic: seconds * 1000)
        try test.hub.upkeep()
    }

    @Test(arguments: [-40 * 365 * 86400, -3600, 3600, 40 * 365 * 86400] as [Int64])
    func a_clock_that_is_set_makes_nobody_silent_and_hides_no_silence(_ step: Int64) throws {
        let test = try TestHub()
        try tick(test, 0)
        let device = try test.enrol()
        test.clock.advance(seconds: step)
        try tick(test, 1)
        #expect(try test.view(device.id).control == .reporting)
        #expect(try test.alarms() == [])
        // Four intervals without a heartbeat.
        for second in Int64(2)...121 {
            test.clock.advance(seconds: 1)
            try tick(test, second)
        }
        #expect(try test.view(device.id).control == .silent)
        #expect(try test.alarms().map(\.kind) == ["silent"])
    }

    @Test func a_contest_outlives_a_clock_that_is_set() throws {
        let test = try TestHub()
        try tick(test, 0)
        let device = try test.enrol()
        for _ in 0..<4 {
            _ = test.heartbeat(device, session: "s1")
            _ = test.heartbeat(device, session: "s2")
        }
        test.clock.advance(seconds: 86400)
        try tick(test, 1)
        #expect(test.heartbeat(device, session: "s2").code == "duplicate_identity")
        #expect(test.heartbeat(device, session: "s1").status == 200)
    }

    @Test func small_differences_are_followed_when_they_have_added_up() throws {
        let test = try TestHub()
        try tick(test, 0)
        let started = test.hub.withCore { $0.started }
        // A clock that goes half a second less for each second.
        for second in Int64(1)...10 {
            test.clock.advance(seconds: second % 2)
            try tick(test, second)
        }
        #expect(test.hub.withCore { $0.started } <= started - 3000)
        #expect(test.hub.withCore { $0.started } >= started - 5000)
    }

    @Test func what_was_heard_in_the_future_was_heard_before_the_start() throws {
        let path = try temporaryPath()
        let keys = HubKeys.generate()
        let device: TestDevice
        do {
            let test = try TestHub(database: Database(path), keys: keys)
            test.clock.advance(seconds: 40 * 365 * 86400)
            device = try test.enrol()
            try test.hub.flush(to: Database(path))
        }
        let again = try TestHub(database: Database(path), keys: keys)
        #expect(try again.view(device.id).control == .reporting)
        again.clock.advance(seconds: 121)
        #expect(try again.view(device.id).control == .silent)
    }
}
