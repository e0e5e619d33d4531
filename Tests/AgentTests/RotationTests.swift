// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Agent

extension Bench {
    /// The handshake that the old key had.
    fileprivate mutating func toEndOfTrial() throws -> Int64 {
        let old = now.wallSeconds - 20
        for _ in 0..<100 {
            if toNext().contains(.readTunnel) { return old }
            if state.isHeartbeatUnderWay { tell(.refused(away)) }
        }
        throw Stuck()
    }
}

@Suite struct RotationTests {
    private func ordered() throws -> Bench {
        var bench = Bench.running()
        try bench.toHeartbeat()
        bench.tell(bench.reading(handshake: bench.now.wallSeconds - 20, received: 1, sent: 1))
        var order = news(first)
        order.command = .rotateKey
        #expect(bench.tell(.answered(order)).contains(.askRotation))
        #expect(bench.state.rotation.key == .current, "the hub does not know it yet")
        return bench
    }

    private func switched() throws -> Bench {
        var bench = try ordered()
        #expect(bench.tell(.keyAccepted) == [.apply(first, .next)])
        #expect(bench.tell(.applied(first, .next)).first == .tellKeyInUse(.next))
        return bench
    }

    @Test func case_C72_the_new_key_becomes_the_key_with_its_first_handshake() throws {
        var bench = try switched()
        let old = bench.now.wallSeconds - 20
        bench.pass(2_000)
        #expect(
            !bench.tell(bench.reading(handshake: old, received: 1, sent: 150)).contains(
                .keepNextKey), "the old session proves nothing")
        bench.pass(2_000)
        let actions = bench.tell(
            bench.reading(handshake: bench.now.wallSeconds - 1, received: 93, sent: 150))
        #expect(actions.contains(.keepNextKey))
        #expect(bench.state.rotation.key == .current)
        #expect(bench.state.rotation.deadline == nil)
    }

    @Test func case_C72_without_a_handshake_the_old_key_returns() throws {
        var bench = try switched()
        let old = try bench.toEndOfTrial()
        let actions = bench.tell(bench.reading(handshake: old, received: 1, sent: 150))
        #expect(actions.applies == [.apply(first, .current)])
        #expect(actions.contains(.dropNextKey))
        #expect(!bench.actions.contains(.keepNextKey))
        #expect(bench.tell(.applied(first, .current)).contains(.tellKeyInUse(.current)))
        #expect(bench.state.rotation.step == .none)
        #expect(bench.state.tunnel.standing == .up)
    }

    @Test func case_C72_a_handshake_just_before_the_end_counts() throws {
        var bench = try switched()
        let beforeTheEnd = bench.reading(
            handshake: bench.now.wallSeconds - 20, received: 1, sent: 150)
        _ = try bench.toEndOfTrial()
        // That look began before the end: it may have missed it.
        #expect(bench.tell(beforeTheEnd).applies.isEmpty)
        let handshake = bench.now.wallSeconds - 1
        bench.pass(50)
        #expect(
            bench.tell(bench.reading(handshake: handshake, received: 93, sent: 150))
                .contains(.keepNextKey))
        #expect(bench.state.rotation.step == .none)
    }

    @Test func case_C72_without_a_look_at_the_end_the_old_key_returns() throws {
        var bench = try switched()
        _ = try bench.toEndOfTrial()
        #expect(
            bench.tell(.readingFailed(reason: "gone")).applies == [.apply(first, .current)])
    }

    /// The hub would go on with the old one, and drop what comes under the new one.
    @Test func case_C72_a_hub_that_cannot_be_told_gets_the_old_key_at_once() throws {
        var bench = try switched()
        let actions = bench.tell(.keyInUseNotTold(away))
        #expect(actions.applies == [.apply(first, .current)])
        #expect(actions.contains(.dropNextKey))
        bench.tell(.applied(first, .current))
        #expect(bench.tell(.keyInUseNotTold(away)).isEmpty)
    }

    @Test func case_C72_after_a_start_the_hub_may_know_already() {
        var bench = Bench()
        bench.tell(.started)
        var loaded = loaded(first)
        loaded.hasNextKey = true
        bench.tell(.loaded(loaded))
        #expect(bench.tell(.applied(first, .next)).contains(.tellKeyInUse(.next)))
        #expect(bench.tell(.keyInUseNotTold(away)).isEmpty)
        #expect(bench.state.rotation.key == .next)
    }

    @Test func case_C72_a_hub_that_refuses_changes_nothing() throws {
        var bench = try ordered()
        let actions = bench.tell(.keyRefused(away))
        #expect(actions.applies.isEmpty)
        #expect(actions.contains(.dropNextKey))
        #expect(bench.state.rotation.step == .none)
    }

    @Test func a_change_during_the_trial_uses_the_key_of_the_trial() throws {
        var bench = try switched()
        bench.tell(.answered(news(second, offer: true)))
        #expect(bench.actions.applies.last == .apply(second, .next))
        bench.tell(.applied(second, .next))
        #expect(bench.state.rotation.deadline != nil)
    }

    @Test func one_rotation_at_a_time() throws {
        var bench = try switched()
        var order = news(first)
        order.command = .rotateKey
        #expect(!bench.tell(.answered(order)).contains(.askRotation))
    }

    /// Handshakes are counted in whole seconds; the hub goes by the first one.
    @Test func case_C72_a_handshake_before_the_keeper_has_answered_proves_the_key() throws {
        var bench = try ordered()
        bench.tell(.keyAccepted)
        let handshake = bench.now.wallSeconds
        bench.pass(1_500)
        bench.tell(.applied(first, .next))
        #expect(
            bench.tell(bench.reading(handshake: handshake, received: 93, sent: 150))
                .contains(.keepNextKey))
    }

    @Test func case_C72_a_clock_that_was_set_back_does_not_hide_the_handshake() throws {
        var bench = try switched()
        bench.wallOffset -= 3_600
        bench.tell(.clockSet)
        bench.pass(2_000)
        #expect(
            bench.tell(bench.reading(handshake: bench.now.wallSeconds, received: 93, sent: 150))
                .contains(.keepNextKey))
    }

    @Test func a_configuration_that_is_rejected_during_the_trial_costs_no_key() throws {
        var bench = try switched()
        bench.tell(.answered(news(second, offer: true)))
        let rejected = ApplyFault.rejected(code: "taken", reason: "taken")
        #expect(!bench.tell(.applyFailed(second, .next, rejected)).contains(.dropNextKey))
        #expect(bench.state.sync.rejection?.revision == second)
        bench.pass(2_000)
        #expect(
            bench.tell(bench.reading(handshake: bench.now.wallSeconds, received: 93, sent: 150))
                .contains(.keepNextKey))
    }

    @Test func a_key_that_the_keeper_rejects_leaves_the_configuration_to_the_old_one() throws {
        var bench = try ordered()
        bench.tell(.keyAccepted)
        bench.tell(.answered(news(second, offer: true)))
        let rejected = ApplyFault.rejected(code: "taken", reason: "taken")
        let actions = bench.tell(.applyFailed(first, .next, rejected))
        #expect(actions.contains(.dropNextKey))
        #expect(actions.applies == [.apply(second, .current)])
    }

    /// The session that proved it may be two minutes old (REKEY_AFTER_TIME).
    @Test func case_C72_a_start_waits_for_the_next_handshake_of_a_key_in_use() {
        var bench = Bench()
        bench.tell(.started)
        var loaded = loaded(first)
        loaded.hasNextKey = true
        bench.tell(.loaded(loaded))
        let before = bench.now.wallSeconds - 5
        bench.tell(.applied(first, .next))
        for _ in 0..<23 {
            bench.pass(5_000)
            bench.tell(.due)
            bench.tell(bench.reading(handshake: before, received: 92, sent: 148))
        }
        #expect(!bench.actions.contains(.dropNextKey))
        #expect(
            bench.tell(bench.reading(handshake: bench.now.wallSeconds, received: 92, sent: 148))
                .contains(.keepNextKey))
    }

    @Test func a_new_identity_begins_without_the_keys_of_the_old_one() throws {
        var bench = try ordered()
        bench.tell(.keyAccepted)
        bench.tell(.provisioned(second, intervalSeconds: nil))
        #expect(
            bench.tell(.applied(first, .next)).applies == [.apply(second, .current)])
    }

    @Test func a_start_in_the_middle_tries_the_accepted_key_again() {
        var bench = Bench()
        bench.tell(.started)
        var loaded = loaded(first)
        loaded.hasNextKey = true
        #expect(bench.tell(.loaded(loaded)).applies == [.apply(first, .next)])
        bench.tell(.applied(first, .next))
        bench.pass(1_000)
        #expect(
            bench.tell(bench.reading(handshake: bench.now.wallSeconds, received: 92, sent: 148))
                .contains(.keepNextKey))
    }
}
