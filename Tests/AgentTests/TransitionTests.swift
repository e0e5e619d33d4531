// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Agent

@Suite struct TransitionTests {
    @Test func a_start_goes_from_the_disk_to_the_tunnel_to_the_hub() throws {
        var bench = Bench()
        #expect(bench.state.phase == .boot)
        #expect(bench.tell(.started) == [.load])
        #expect(bench.state.phase == .appInit)
        #expect(bench.tell(.loaded(loaded(first))) == [.listen, .apply(first, .current)])
        #expect(bench.state.phase == .tunnelUp)
        #expect(bench.tell(.applied(first, .current)).contains(.commit(first)))
        #expect(bench.state.phase == .heartbeat)
        try bench.toHeartbeat()
        #expect(bench.moment - 1_000_000 <= 31_000)
    }

    @Test func case_C64_c65_the_last_good_configuration_needs_no_hub() throws {
        var bench = Bench()
        bench.tell(.started)
        bench.tell(.loaded(loaded(first)))
        bench.tell(.applied(first, .current))
        // A month without the hub.
        let month = bench.moment + 30 * 86_400_000
        while bench.moment < month {
            try bench.toHeartbeat()
            bench.tell(.refused(away))
        }
        #expect(bench.state.tunnel.standing == .up)
        #expect(bench.state.phase == .heartbeat)
        #expect(bench.state.control.standing == .failed)
        #expect(!bench.actions.contains(.takeDown))
        #expect(bench.actions.applies.count == 1, "nothing was applied again")
        #expect(bench.actions.lines < 20, "and hardly a line was logged")
    }

    @Test func case_C65_a_hub_that_comes_back_changes_nothing_in_the_tunnel() throws {
        var bench = Bench.running()
        for _ in 0..<5 {
            try bench.toHeartbeat()
            bench.tell(.refused(away))
        }
        try bench.toHeartbeat()
        bench.tell(.answered(news(first)))
        #expect(bench.actions.applies.isEmpty)
        #expect(bench.state.control.standing == .connected)
        #expect(bench.state.control.fault == nil)
    }

    @Test func a_change_is_applied_committed_and_reported() throws {
        var bench = Bench.running()
        try bench.toHeartbeat()
        #expect(
            bench.tell(.answered(news(second, offer: true))).applies == [
                .apply(second, .current)
            ])
        #expect(bench.state.phase == .tunnelRebuild)
        #expect(bench.state.tunnel.standing == .up, "it runs while it is changed")
        #expect(bench.tell(.applied(second, .current)) == [.commit(second)])
        #expect(bench.state.phase == .heartbeat)
        let told = bench.moment
        try bench.toHeartbeat()
        #expect(bench.moment - told <= 1000)
    }

    @Test func another_name_for_the_same_configuration_touches_no_tunnel() throws {
        var bench = Bench.running()
        try bench.toHeartbeat()
        let actions = bench.tell(.answered(news(second, offer: true, same: true)))
        #expect(actions.applies.isEmpty)
        #expect(actions.contains(.commit(second)))
        #expect(bench.state.sync.applied == second)
    }

    @Test func what_cannot_be_applied_is_reported_once_and_not_tried_again() throws {
        var bench = Bench.running()
        try bench.toHeartbeat()
        bench.tell(.answered(news(second, offer: true)))
        bench.tell(
            .applyFailed(second, .current, .rejected(code: "prefix_taken", reason: "taken")))
        #expect(bench.state.sync.rejectedHash == "c2")
        #expect(bench.state.sync.applied == first)
        #expect(bench.state.tunnel.standing == .up)
        #expect(bench.state.phase == .heartbeat)
        bench.actions = []
        for _ in 0..<10 {
            try bench.toHeartbeat()
            bench.tell(.answered(news(second, offer: true)))
        }
        #expect(bench.actions.applies.isEmpty)
        try bench.toHeartbeat()
        #expect(bench.tell(.answered(news(third, offer: true))).applies.count == 1)
        bench.tell(.applied(third, .current))
        #expect(bench.state.sync.rejectedHash == nil)
    }

    @Test func what_comes_while_another_is_applied_follows_it() throws {
        var bench = Bench.running()
        try bench.toHeartbeat()
        bench.tell(.answered(news(second, offer: true)))
        try bench.toHeartbeat()
        #expect(bench.tell(.answered(news(third, offer: true))).applies.isEmpty)
        #expect(
            bench.tell(.applied(second, .current))
                == [.commit(second), .apply(third, .current)])
        bench.tell(.applied(third, .current))
        #expect(bench.state.sync.applied == third)
        #expect(bench.state.phase == .heartbeat)
    }

    /// It is made of the configuration that was committed: before that, of the one before.
    @Test func a_new_handshake_waits_for_the_configuration_that_came_with_it() throws {
        var bench = Bench.running()
        try bench.toHeartbeat()
        var both = news(second, offer: true)
        both.command = .reset
        #expect(!bench.tell(.answered(both)).contains(.resetHandshake))
        #expect(
            bench.tell(.applied(second, .current)) == [.commit(second), .resetHandshake])
        try bench.toHeartbeat()
        var alone = news(second)
        alone.command = .reset
        #expect(bench.tell(.answered(alone)).contains(.resetHandshake))
    }

    @Test func a_keeper_that_is_away_is_asked_until_it_answers() {
        var bench = Bench()
        bench.tell(.started)
        bench.tell(.loaded(loaded(first)))
        for _ in 0..<8 {
            bench.tell(.applyFailed(first, .current, .postponed(reason: "no keeper answers")))
            while bench.toNext().applies.isEmpty {
                if bench.state.isHeartbeatUnderWay { bench.tell(.refused(away)) }
            }
        }
        #expect(bench.state.tunnel.standing == .failed || bench.state.tunnel.standing == .applying)
        bench.tell(.applied(first, .current))
        #expect(bench.state.tunnel.standing == .up)
        #expect(bench.state.tunnel.reason == nil)
        #expect(bench.actions.lines < 10)
    }

    @Test func heartbeats_go_on_without_a_keeper() throws {
        var bench = Bench()
        bench.tell(.started)
        bench.tell(.loaded(loaded(first)))
        bench.tell(.applyFailed(first, .current, .postponed(reason: "no keeper answers")))
        try bench.toHeartbeat()
        #expect(bench.state.connection == .failed)
        #expect(bench.state.problems == ["tunnel_failed"])
    }

    @Test func case_C91_what_cannot_be_read_is_left_alone() {
        var bench = Bench()
        bench.tell(.started)
        for _ in 0..<10 {
            let actions = bench.tell(.loadFailed(code: "sealed", reason: "cannot unseal"))
            #expect(!actions.contains(.provision))
            #expect(bench.state.phase == .appRetry)
            #expect(bench.toNext() == [.load])
        }
        #expect(bench.actions.lines == 1)
    }

    @Test func without_an_identity_it_waits_to_be_enrolled() {
        var bench = Bench()
        bench.tell(.started)
        bench.tell(.notEnrolled)
        #expect(bench.state.phase == .appRetry)
        #expect(bench.state.connection == .disconnected)
        #expect(bench.tell(.reload) == [.load])
        bench.tell(.loaded(loaded(first)))
        #expect(bench.state.phase == .tunnelUp)
        #expect(bench.state.reason == nil)
    }

    @Test func awakening_asks_soon_and_reads_anew() throws {
        var bench = Bench.running()
        for _ in 0..<12 {
            try bench.toHeartbeat()
            bench.tell(.refused(away))
        }
        bench.tell(.awoke(reason: "the machine woke"))
        let woken = bench.moment
        try bench.toHeartbeat()
        #expect(bench.moment - woken <= 5_000)
        #expect(bench.state.tunnel.verdict == .unknown)
    }
}
