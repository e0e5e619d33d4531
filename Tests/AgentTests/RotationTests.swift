// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Agent

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
        bench.tell(.applied(first, .next))
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
        var actions: [AgentAction] = []
        while actions.applies.isEmpty {
            actions = bench.toNext()
            if bench.state.isHeartbeatUnderWay { bench.tell(.refused(away)) }
        }
        #expect(actions.applies == [.apply(first, .current)])
        #expect(actions.contains(.dropNextKey))
        #expect(!bench.actions.contains(.keepNextKey))
        bench.tell(.applied(first, .current))
        #expect(bench.state.rotation.step == .none)
        #expect(bench.state.tunnel.standing == .up)
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
