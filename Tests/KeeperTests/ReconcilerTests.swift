// SPDX-License-Identifier: Apache-2.0
import Testing
import TunnelPlan
import WireGuard

@testable import Keeper

@Suite struct ReconcilerTests {
    @Test func anAppliedConfigurationIsTheTunnelAndIsRemembered() throws {
        var simulation = Simulation()
        let applied = try #require(simulation.apply(intent(full))?.applied)
        #expect(applied.changes.first == .createLink(.userspace))
        let state = try #require(simulation.host.state)
        #expect(state.host.rules.count == 2)
        #expect(state.host.firewall?.fullTunnelMark == state.device.fwmark)
        #expect(simulation.saved.confirmed == intent(full))
        #expect(simulation.saved.phase == nil)
        // The same again is nothing.
        #expect(simulation.apply(intent(full))?.applied?.changes == [])
    }

    @Test func aPlanTouchesNothing() {
        var simulation = Simulation()
        let answer = simulation.apply(intent(small), dryRun: true)
        #expect(answer?.applied?.changes.isEmpty == false)
        #expect(simulation.host.state == nil)
        #expect(simulation.host.performed.isEmpty)
        #expect(simulation.saved == Stored())
        #expect(simulation.reconciler.isVacant)
    }

    @Test func downLeavesNothing() {
        var simulation = Simulation()
        simulation.apply(intent(full))
        #expect(simulation.down() == .down)
        #expect(simulation.host.state == nil)
        #expect(simulation.hasEnded)
        #expect(simulation.saved == Stored())
    }

    /// C62: whichever step fails, the state before comes back whole, and the step is named.
    @Test func case_C62_a_failed_step_is_undone_and_named() throws {
        var reference = Simulation()
        reference.apply(intent(small))
        let before = reference.host.state
        let steps = try #require(reference.apply(intent(full), dryRun: true)?.applied?.changes)
        #expect(steps.count > 5)
        for step in steps.indices {
            var simulation = Simulation()
            simulation.apply(intent(small))
            simulation.host.fail(steps: step)
            let failure = try #require(simulation.apply(intent(full))?.failure)
            #expect(failure.message.contains("step \(step + 1) of \(steps.count) "))
            #expect(failure.message.contains("told to fail"))
            #expect(failure.message.contains("the former state is back"))
            #expect(same(simulation.host.state, before), "after step \(step)")
            #expect(simulation.saved.confirmed == intent(small))
            #expect(simulation.saved.phase == nil)
        }
    }

    /// Whether the step was made by the old link or the new one: in the end there is one, and whole.
    @Test(arguments: [intent(full), intent(full, backend: .kernel)])
    func case_C62_a_link_that_cannot_be_replaced_stays(_ wanted: Intent) throws {
        var reference = Simulation()
        reference.apply(intent(full))
        let before = reference.host.state
        let steps = try #require(
            reference.apply(wanted, dryRun: true, renewsLink: true)?.applied?.changes)
        #expect(steps.contains(.exchangeLink))
        for step in steps.indices {
            var simulation = Simulation()
            simulation.apply(intent(full))
            simulation.host.fail(steps: step)
            let answer = simulation.apply(wanted, renewsLink: true)
            #expect(answer?.failure?.message.contains("the former state is back") == true)
            #expect(same(simulation.host.state, before), "after step \(step)")
            #expect(simulation.saved.confirmed == intent(full))
        }
        let made = try #require(reference.apply(wanted, renewsLink: true)?.applied)
        #expect(made.plan.text.contains("one new handshake with each peer"))
        #expect(reference.host.state?.backend == wanted.backend ?? .userspace)
        #expect(reference.apply(wanted)?.applied?.changes == [])
    }

    @Test func case_C62_a_failed_first_start_leaves_nothing() throws {
        var reference = Simulation()
        let steps = try #require(reference.apply(intent(full), dryRun: true)?.applied?.changes)
        for step in steps.indices {
            var simulation = Simulation()
            simulation.host.fail(steps: step)
            #expect(simulation.apply(intent(full))?.failure != nil)
            #expect(simulation.host.state == nil, "after step \(step)")
            #expect(simulation.saved == Stored())
            #expect(simulation.reconciler.isVacant)
        }
    }

    @Test func aDownThatFailsCanBeAskedForAgain() throws {
        var simulation = Simulation()
        simulation.apply(intent(full))
        simulation.host.fail(steps: 1)
        let failure = try #require(simulation.down()?.failure)
        #expect(failure.message.contains("told to fail"))
        #expect(!simulation.hasEnded)
        #expect(simulation.down() == .down)
        #expect(simulation.host.state == nil)
        #expect(simulation.hasEnded)
    }

    @Test func downAfterSomebodyRemovedTheLinkTakesTheRestAway() {
        var simulation = Simulation()
        simulation.apply(intent(full))
        simulation.host.state = nil
        #expect(simulation.down() == .down)
        #expect(simulation.hasEnded)
    }

    @Test func aConfigurationThatIsRefusedTouchesNothing() throws {
        var simulation = Simulation()
        simulation.apply(intent(small))
        simulation.host.forgetLog()
        var bad = intent(small)
        bad.configuration.interface.privateKey = nil
        bad.configuration.interface.table = .name(Identifier("nowhere")!)
        let failure = try #require(simulation.apply(bad)?.failure)
        #expect(failure.kind == .configurationInvalid)
        #expect(simulation.host.performed.isEmpty)
        #expect(simulation.saved.confirmed == intent(small))
    }
}

// MARK: hooks

@Suite struct HookTests {
    let hooked = text(
        "Address = 10.7.0.1/24", "PreUp = before %i", "PostUp = after", "PreDown = leaving",
        "PostDown = left", peers: peer(1, "AllowedIPs = 10.7.0.2/32"))

    @Test func case_C26_hooks_are_refused_unless_allowed() throws {
        var simulation = Simulation()
        let failure = try #require(simulation.apply(intent(hooked))?.failure)
        #expect(failure.kind == .configurationInvalid)
        #expect(simulation.commands.isEmpty)
        simulation.apply(intent(hooked, hooks: .ignore))
        simulation.down()
        #expect(simulation.commands.isEmpty)
    }

    @Test func allowedHooksRunAroundUpAndDownOnly() {
        var simulation = Simulation()
        simulation.apply(intent(hooked, hooks: .allow))
        #expect(simulation.commands == ["before %i", "after"])
        var changed = intent(hooked, hooks: .allow)
        changed.configuration.interface.mtu = 1300
        simulation.apply(changed)
        #expect(simulation.commands.count == 2)
        simulation.down()
        #expect(simulation.commands == ["before %i", "after", "leaving", "left"])
    }

    @Test(arguments: ["before %i", "after"])
    func aHookThatFailsIsAFailedStart(_ command: String) {
        var simulation = Simulation()
        simulation.failingCommand = command
        let failure = simulation.apply(intent(hooked, hooks: .allow))?.failure
        #expect(failure?.message.contains("ended with 1") == true)
        #expect(simulation.host.state == nil)
        #expect(simulation.saved == Stored())
    }

    @Test func theNameIsPutForPercentI() {
        #expect(Commands.substitute("a %i b%i %x %", name: wg0) == "a wg0 bwg0 %x %")
    }
}

/// Equal but for the port, the order of peers, and endpoints where `b` has none: no protocol takes an
/// endpoint from a peer.
func same(_ a: TunnelState?, _ b: TunnelState?) -> Bool {
    guard var a, var b else { return a == nil && b == nil }
    a.device.listenPort = 0
    b.device.listenPort = 0
    let without = Set(b.device.peers.filter { $0.endpoint == nil }.map(\.publicKey))
    for index in a.device.peers.indices where without.contains(a.device.peers[index].publicKey) {
        a.device.peers[index].endpoint = nil
    }
    a.device.peers.sort { $0.publicKey.base64 < $1.publicKey.base64 }
    b.device.peers.sort { $0.publicKey.base64 < $1.publicKey.base64 }
    for index in a.device.peers.indices {
        a.device.peers[index].prefixes.sort { "\($0)" < "\($1)" }
    }
    for index in b.device.peers.indices {
        b.device.peers[index].prefixes.sort { "\($0)" < "\($1)" }
    }
    return a == b
}
