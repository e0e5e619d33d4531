// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Agent

/// The table "Answers that are not 200" of docs/control-api.md.
@Suite struct ControlTests {
    @Test func case_C68_only_a_revocation_takes_the_tunnel_down() throws {
        let others: [ControlFault.Kind] = [
            .transient, .authExpired, .tokenRefused, .unknownDevice, .duplicateIdentity,
            .upgradeRequired, .badRequest,
        ]
        for kind in others {
            var bench = Bench.running()
            for _ in 0..<50 {
                try bench.toHeartbeat()
                bench.tell(.refused(fault(kind)))
            }
            #expect(!bench.actions.contains(.takeDown))
            #expect(bench.state.tunnel.standing == .up)
            #expect(bench.state.phase == .heartbeat)
            #expect(bench.actions.lines <= 3, "\(kind): \(bench.actions)")
        }
    }

    @Test func case_C68_a_revoked_device_ends_with_7_and_stays_down() throws {
        var bench = Bench.running()
        try bench.toHeartbeat()
        let actions = bench.tell(.refused(fault(.revoked)))
        #expect(actions.contains(.markRevoked))
        #expect(actions.last == .takeDown)
        #expect(bench.tell(.takenDown) == [.end(code: 7)])
        #expect(bench.state.connection == .disconnected)

        var again = Bench()
        again.tell(.started)
        var loaded = loaded(first)
        loaded.isRevoked = true
        #expect(again.tell(.loaded(loaded)).applies.isEmpty)
        #expect(again.tell(.takenDown) == [.end(code: 7)])
    }

    @Test func a_revoked_tunnel_is_taken_down_as_soon_as_the_keeper_can() throws {
        var bench = Bench.running()
        try bench.toHeartbeat()
        bench.tell(.refused(fault(.revoked)))
        for _ in 0..<5 {
            bench.tell(.takeDownFailed(reason: "the keeper is busy"))
            #expect(bench.toNext() == [.takeDown])
        }
        #expect(bench.tell(.takenDown) == [.end(code: 7)])
    }

    @Test func case_C68_an_unknown_device_is_believed_after_three_times_and_ten_minutes() throws {
        var bench = Bench.running()
        let start = bench.moment
        var saidAt: Moment?
        var count = 0
        while saidAt == nil, count < 1000 {
            try bench.toHeartbeat()
            bench.tell(.refused(fault(.unknownDevice)))
            count += 1
            if bench.state.control.standing == .unknownDevice { saidAt = bench.moment }
        }
        #expect(count >= 3)
        #expect(saidAt! - start >= 600_000)
        try bench.toHeartbeat()
        bench.tell(.answered(news(first)))
        #expect(bench.state.control.standing == .connected)
    }

    @Test func case_C68_another_failure_between_begins_the_count_anew() {
        var control = ControlPlane(at: 0)
        control.failed(fault(.unknownDevice), failures: 1, at: 0)
        control.failed(fault(.unknownDevice), failures: 2, at: 300_000)
        control.failed(away, failures: 3, at: 400_000)
        control.failed(fault(.unknownDevice), failures: 4, at: 700_000)
        #expect(control.standing != .unknownDevice)
    }

    @Test func case_C77_an_expired_token_is_renewed_and_needs_no_new_enrolment() throws {
        var bench = Bench.running()
        try bench.toHeartbeat()
        #expect(bench.tell(.refused(fault(.authExpired))).contains(.renewToken))
        #expect(bench.state.control.standing == .authExpired)
        bench.tell(.tokenRenewed)
        let renewed = bench.moment
        try bench.toHeartbeat()
        #expect(bench.moment - renewed <= 5_000)
        bench.tell(.answered(news(first)))
        #expect(bench.state.control.standing == .connected)
    }

    @Test func case_C74_an_expired_token_makes_no_storm() throws {
        var bench = Bench.running()
        let start = bench.moment
        var count = 0
        while bench.moment < start + 3_600_000 {
            try bench.toHeartbeat()
            bench.tell(.refused(fault(.authExpired)))
            bench.tell(.tokenRenewalFailed(fault(.authExpired)))
            count += 1
        }
        #expect(count <= 15, "in an hour")
        #expect(bench.actions.lines <= 3)
    }

    @Test func a_token_is_renewed_long_before_it_is_old() throws {
        var bench = Bench.running()
        let start = bench.moment
        var order = news(first)
        order.intervalSeconds = 3600
        while !bench.toNext().contains(.renewToken), bench.moment < start + 40 * 86_400_000 {
            if bench.state.isHeartbeatUnderWay { bench.tell(.answered(order)) }
        }
        #expect(bench.moment - start <= AgentState.tokenLife)
    }

    @Test func three_failures_say_failed_and_the_first_answer_says_connected() throws {
        var bench = Bench.running()
        var standings: [ControlPlane.Standing] = []
        for _ in 0..<4 {
            try bench.toHeartbeat()
            bench.tell(.refused(away))
            standings.append(bench.state.control.standing)
        }
        #expect(standings == [.retrying, .retrying, .failed, .failed])
        #expect(bench.state.connection != .disconnected)
    }

    @Test func case_C71_c72_a_failed_provision_is_repeated_and_burns_nothing() {
        var bench = Bench()
        bench.tell(.started)
        #expect(bench.tell(.tokenAtHand) == [.provision])
        #expect(bench.state.phase == .provision)
        for _ in 0..<10 {
            bench.tell(.provisionFailed(away))
            #expect(bench.state.phase == .appRetry)
            #expect(bench.toNext() == [.load])
            #expect(bench.state.phase == .appInit)
            #expect(bench.tell(.tokenAtHand) == [.provision])
        }
        let actions = bench.tell(.provisioned(first, intervalSeconds: 60))
        #expect(actions.applies == [.apply(first, .current)])
        #expect(bench.state.phase == .tunnelUp)
        #expect(bench.state.schedule.interval == 60_000)
        #expect(bench.actions.lines < 5)
    }

    @Test func case_C68_a_refused_token_ends_with_6() {
        var bench = Bench()
        bench.tell(.started)
        bench.tell(.tokenAtHand)
        #expect(bench.tell(.provisionFailed(fault(.tokenRefused))).last == .end(code: 6))
        #expect(bench.state.phase == .ended)
    }

    @Test func case_C72_a_refused_reprovision_keeps_the_identity() throws {
        var bench = Bench.running()
        try bench.toHeartbeat()
        var order = news(first)
        order.command = .reprovision
        #expect(bench.tell(.answered(order)).contains(.provision))
        bench.tell(.provisionFailed(fault(.tokenRefused)))
        #expect(bench.state.phase == .heartbeat)
        #expect(bench.state.isEnrolled)
        #expect(bench.state.tunnel.standing == .up)
        try bench.toHeartbeat()
    }

    private func reset(_ id: String?) -> AgentEvent {
        var order = news(first)
        order.command = .reset
        order.commandId = id
        return .answered(order)
    }

    @Test func a_reset_that_comes_again_is_done_once_and_told() throws {
        var bench = Bench.running()
        try bench.toHeartbeat()
        #expect(bench.tell(reset("a")).contains(.resetHandshake))
        #expect(!bench.tell(reset("a")).contains(.resetHandshake), "it is under way")
        #expect(bench.state.doneCommand == "")
        bench.tell(.handshakeReset)
        #expect(bench.state.doneCommand == "a")
        #expect(!bench.tell(reset("a")).contains(.resetHandshake), "the hub has not heard of it")
        #expect(bench.tell(reset("b")).contains(.resetHandshake))
    }

    @Test func a_reset_that_failed_is_done_when_it_comes_again() throws {
        var bench = Bench.running()
        try bench.toHeartbeat()
        bench.tell(reset("a"))
        bench.tell(.handshakeNotReset(reason: "the keeper is busy"))
        #expect(bench.state.doneCommand == "")
        bench.tell(.applied(first, .current))
        #expect(bench.tell(reset("a")).contains(.resetHandshake))
    }

    @Test func a_reset_of_a_hub_that_gives_no_ids_is_done_each_time() throws {
        var bench = Bench.running()
        try bench.toHeartbeat()
        for _ in 0..<2 {
            #expect(bench.tell(reset(nil)).contains(.resetHandshake))
            bench.tell(.handshakeReset)
        }
        #expect(bench.state.doneCommand == "")
    }

    @Test func leaving_forgets_everything_but_goes_on() {
        var bench = Bench.running()
        bench.tell(.unenrolled)
        #expect(bench.state.phase == .appRetry)
        #expect(!bench.state.isEnrolled)
        #expect(bench.state.sync.applied == nil)
        #expect(bench.state.schedule.nextAt == nil)
    }
}
