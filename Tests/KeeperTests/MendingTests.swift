// SPDX-License-Identifier: Apache-2.0
import Testing
import TunnelPlan
import WireGuard

@testable import Keeper

@Suite struct MendingTests {
    private func running(_ file: String = full) -> Simulation {
        var simulation = Simulation()
        simulation.apply(intent(file))
        simulation.events = []
        simulation.host.forgetLog()
        return simulation
    }

    /// What others can take, one after the other: back within two seconds, one warning each.
    static let thefts: [@Sendable (inout TunnelState) -> Void] = [
        { $0.host.rules = [] },
        { $0.host.routes = [] },
        { $0.host.addresses = [] },
        { $0.host.firewall = nil },
        { $0.host.dns = nil },
        { $0.host.settings = [:] },
        { $0.host.mtu = 1500 },
        { $0.device.fwmark = 0 },
        { $0.host.rules.remove($0.host.rules.first!) },
    ]

    @Test(arguments: thefts.indices)
    func case_C43_what_others_remove_comes_back(_ index: Int) {
        var simulation = running()
        let before = simulation.host.state
        simulation.tamper(Self.thefts[index])
        #expect(simulation.host.state != before)
        simulation.pass(milliseconds: 2_000)
        #expect(same(simulation.host.state, before))
        // One warning, and the link stayed.
        #expect(simulation.events.map(\.kind) == [.healed])
        #expect(
            !simulation.host.performed.contains {
                $0 == .createLink(.userspace) || $0 == .removeLink
            })
        // Nothing is left to do.
        let count = simulation.host.performed.count
        simulation.handle(.host(.tunnelChanged))
        simulation.pass(milliseconds: 60_000)
        #expect(simulation.host.performed.count == count)
    }

    @Test func aRemovedLinkIsMadeAgain() {
        var simulation = running()
        let before = simulation.host.state
        simulation.host.state = nil
        simulation.handle(.host(.overflow))
        simulation.pass(milliseconds: 2_000)
        #expect(same(simulation.host.state, before))
        #expect(simulation.events.map(\.kind) == [.healed])
    }

    /// Mending is not applying: what others added is theirs (C42, C46), and `wg set` is obeyed.
    @Test func whatOthersAddedStays() throws {
        var simulation = running()
        let bytes = [UInt8]("10.99.0.1/24".utf8)
        let extra = InterfaceAddress(bytes.span)!
        simulation.tamper {
            $0.host.addresses.insert(extra)
            $0.device.peers[0].keepalive = 25
            $0.device.peers.append(PeerSnapshot(publicKey: key(9)))
            $0.host.rules = []
        }
        simulation.pass(milliseconds: 2_000)
        let state = try #require(simulation.host.state)
        #expect(state.host.rules.count == 2)
        #expect(state.host.addresses.contains(extra))
        #expect(state.device.peers.count == 2)
        #expect(state.device.peers[0].keepalive == 25)
    }

    @Test func ownEchoesAndSilenceDoNothing() {
        var simulation = running()
        simulation.handle(.host(.ownEcho))
        #expect(simulation.reconciler.nextTime == nil)
        simulation.pass(milliseconds: 600_000)
        #expect(simulation.host.performed.isEmpty)
        #expect(simulation.events.isEmpty)
    }

    /// Two programs that undo each other do not spin: a burst, then six times a minute.
    @Test func aFighterIsMetAtALimitedRate() {
        var simulation = running()
        for _ in 0..<3000 {
            simulation.tamper { $0.host.rules = [] }
            simulation.pass(milliseconds: 200)
        }
        let mendings = simulation.host.performed.count / 2
        let minutes = 10
        #expect(mendings >= 6 * minutes)
        #expect(mendings <= Int(Healer.burst) + 6 * minutes + 1)
        let lines = simulation.events.count
        #expect(lines <= 3 * (minutes + 1), "each line at most once a minute")
        #expect(simulation.events.contains { $0.kind == .contested })
        // Peace: it is whole, and what happens next is mended at once again.
        simulation.pass(milliseconds: 200_000)
        #expect(simulation.host.state?.host.rules.count == 2)
        simulation.tamper { $0.host.rules = [] }
        simulation.pass(milliseconds: 2_000)
        #expect(simulation.host.state?.host.rules.count == 2)
    }

    @Test func case_C49_the_path_is_followed() {
        let automatic = text(
            "Address = 10.7.0.1/24", peers: peer(1, "AllowedIPs = 10.7.0.2/32"))
        var simulation = running(automatic)
        #expect(simulation.host.state?.host.mtu == 1420)
        simulation.host.defaultRouteMTU = 1400
        simulation.handle(.host(.pathsChanged))
        simulation.pass(milliseconds: 2_000)
        #expect(simulation.host.state?.host.mtu == 1320)
        #expect(simulation.events.map(\.kind) == [.followed])
    }

    @Test func aMendingThatFailsIsTriedAgain() {
        var simulation = running()
        let before = simulation.host.state
        simulation.host.fail(steps: 0, 1)
        simulation.tamper { $0.host.rules = [] }
        simulation.pass(milliseconds: 2_000)
        #expect(simulation.host.state?.host.rules.isEmpty == true)
        #expect(simulation.events.contains { $0.kind == .failed })
        simulation.pass(milliseconds: 60_000)
        #expect(same(simulation.host.state, before))
    }

    @Test func aHostThatCannotBeReadIsReadAgain() {
        var simulation = running()
        let before = simulation.host.state
        simulation.tamper { $0.host.rules = [] }
        simulation.host.snapshotFailure = KeeperFailure(.failed, "the kernel is silent")
        simulation.pass(milliseconds: 30_000)
        #expect(simulation.events.count == 1, "said once (C109)")
        simulation.host.snapshotFailure = nil
        simulation.pass(milliseconds: 30_000)
        #expect(same(simulation.host.state, before))
    }
}

// MARK: commit-confirm, interruptions

@Suite struct ConfirmTests {
    @Test func withoutConfirmationTheFormerStateComesBack() throws {
        var simulation = Simulation()
        simulation.apply(intent(small))
        let before = simulation.host.state
        let applied = try #require(simulation.apply(intent(full), confirmSeconds: 60)?.applied)
        #expect(applied.confirmSeconds == 60)
        simulation.pass(milliseconds: 59_999)
        #expect(!same(simulation.host.state, before))
        simulation.pass(milliseconds: 2)
        #expect(same(simulation.host.state, before))
        #expect(simulation.saved.confirmed == intent(small))
        #expect(simulation.saved.phase == nil)
        #expect(simulation.events.last?.kind == .reverted)
    }

    @Test func confirmedInTimeItStays() {
        var simulation = Simulation()
        simulation.apply(intent(small))
        simulation.apply(intent(other), confirmSeconds: 60)
        let after = simulation.host.state
        #expect(simulation.confirm() == .confirmed)
        simulation.pass(milliseconds: 120_000)
        #expect(same(simulation.host.state, after))
        #expect(simulation.saved.confirmed == intent(other))
        #expect(simulation.confirm()?.failure != nil, "nothing waits any more")
    }

    @Test func anUnconfirmedFirstConfigurationGoesDown() {
        var simulation = Simulation()
        simulation.apply(intent(small), confirmSeconds: 10)
        simulation.pass(milliseconds: 10_001)
        #expect(simulation.host.state == nil)
        #expect(simulation.hasEnded)
        #expect(simulation.saved == Stored())
    }

    @Test func aWayDownThatFailsIsTriedAgainAndNotMended() {
        var simulation = Simulation()
        simulation.apply(intent(full), confirmSeconds: 10)
        simulation.host.fail(steps: 1, 8)
        simulation.pass(milliseconds: 10_001)
        #expect(simulation.host.state != nil)
        simulation.tamper { $0.host.routes = [] }
        simulation.pass(milliseconds: 4_000)
        #expect(simulation.host.state?.host.routes.isEmpty == true)
        simulation.pass(milliseconds: 20_000)
        #expect(simulation.host.state == nil)
        #expect(simulation.hasEnded)
    }

    /// The timer outlives the keeper.
    @Test func aNewKeeperKeepsTheDeadline() {
        var simulation = Simulation()
        simulation.apply(intent(small))
        let before = simulation.host.state
        simulation.apply(intent(other), confirmSeconds: 60)
        let after = simulation.host.state
        simulation.pass(milliseconds: 30_000)
        simulation.restart()
        simulation.pass(milliseconds: 29_000)
        #expect(same(simulation.host.state, after))
        simulation.pass(milliseconds: 2_000)
        #expect(same(simulation.host.state, before))
    }

    @Test func aFailedApplyKeepsTheFormerDeadline() {
        var simulation = Simulation()
        simulation.apply(intent(small))
        let before = simulation.host.state
        simulation.apply(intent(other), confirmSeconds: 60)
        simulation.host.fail(steps: 0)
        #expect(simulation.apply(intent(full))?.failure != nil)
        simulation.pass(milliseconds: 59_000)
        #expect(!same(simulation.host.state, before))
        simulation.pass(milliseconds: 2_000)
        #expect(same(simulation.host.state, before))
    }

    @Test func aReturnThatFailsIsTriedUntilItWorks() {
        var simulation = Simulation()
        simulation.apply(intent(small))
        let before = simulation.host.state
        simulation.apply(intent(other), confirmSeconds: 1)
        simulation.host.fail(steps: 0, 1, 2)
        simulation.pass(milliseconds: 1_001)
        #expect(simulation.saved.phase != nil)
        simulation.pass(milliseconds: 60_000)
        #expect(same(simulation.host.state, before))
        #expect(simulation.saved.phase == nil)
    }

    @Test func adoptingWhatIsWholeChangesNothing() {
        var simulation = Simulation()
        simulation.apply(intent(full))
        simulation.host.forgetLog()
        simulation.restart()
        simulation.pass(milliseconds: 10_000)
        #expect(simulation.host.performed.isEmpty)
        #expect(simulation.reconciler.phase == .up)
    }

    /// kill -9 after every single action of an apply and of a down; the next keeper makes it whole.
    @Test(arguments: [nil, small])
    func aDeathAnywhereIsMended(_ former: String?) throws {
        let before = former.flatMap { fresh(intent($0)) }
        for life in 0..<200 {
            var simulation = Simulation()
            if let former { simulation.apply(intent(former)) }
            simulation.actionsToLive = life
            simulation.apply(intent(full))
            let wasCut = simulation.actionsToLive == 0
            simulation.restart()
            simulation.pass(milliseconds: 10_000)
            let isNew = simulation.saved.confirmed == intent(full)
            #expect(simulation.saved.phase == nil)
            #expect(
                same(simulation.host.state, isNew ? fresh(intent(full)) : before),
                "killed after \(life) actions")
            // And it can be used: up, down, nothing is left.
            #expect(simulation.apply(intent(full))?.applied != nil)
            #expect(simulation.down() == .down)
            #expect(simulation.host.state == nil)
            if !wasCut { return #expect(life > 10) }
        }
        Issue.record("never ran to its end")
    }

    /// Whichever link is there in the end, it is whole, and its peers hear of it.
    @Test func aDeathWithinAnExchangeLeavesOneLinkAndNobodyWaiting() throws {
        var exchanged = 0
        for life in 0..<200 {
            var simulation = Simulation()
            simulation.apply(intent(full))
            let before = simulation.host.state
            simulation.host.state?.device.peers[0].lastHandshakeSeconds =
                simulation.now.wallSeconds
            simulation.host.forgetLog()
            simulation.actionsToLive = life
            simulation.apply(intent(full), renewsLink: true)
            let wasCut = simulation.actionsToLive == 0
            let hasNew = simulation.host.performed.contains(.exchangeLink)
            simulation.restart()
            let after = simulation.host.state
            #expect(after?.host == before?.host, "killed after \(life) actions")
            #expect(after?.device.peers.map(\.prefixes) == before?.device.peers.map(\.prefixes))
            if hasNew {
                exchanged += 1
                #expect(simulation.host.performed.contains(.greetPeers([key(1)])))
            }
            if !wasCut { return #expect(exchanged > 3) }
        }
        Issue.record("never ran to its end")
    }

    @Test func aDeathWithinDownIsFinishedByTheNext() {
        for life in 0..<200 {
            var simulation = Simulation()
            simulation.apply(intent(full))
            simulation.actionsToLive = life
            simulation.down()
            let wasCut = simulation.actionsToLive == 0
            let hadBegun = simulation.saved.phase == .ending
            simulation.restart()
            simulation.pass(milliseconds: 10_000)
            if hadBegun {
                #expect(simulation.host.state == nil, "killed after \(life) actions")
                #expect(simulation.saved == Stored())
            }
            if !wasCut { return }
        }
        Issue.record("never ran to its end")
    }
}
