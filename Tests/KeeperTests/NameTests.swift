// SPDX-License-Identifier: Apache-2.0
import Testing
import TunnelPlan
import WireGuard

@testable import Keeper

@Suite struct NameTests {
    let named = text(
        "Address = 10.7.0.1/24",
        peers: peer(1, "AllowedIPs = 10.7.0.2/32", "Endpoint = vpn.example.org:51820"))
    let host = HostName("vpn.example.org")!
    let first = Endpoint("192.0.2.1:51820")!
    let second = Endpoint("[2001:db8::1]:51820")!

    private var addresses: [ResolvedAddress] {
        [ResolvedAddress(first.address), ResolvedAddress(second.address)]
    }

    private func running() -> Simulation {
        var simulation = Simulation()
        simulation.apply(intent(named))
        return simulation
    }

    private func endpoint(_ simulation: Simulation) -> Endpoint? {
        simulation.host.state?.device.peers.first?.endpoint
    }

    @Test func case_C30_a_name_that_does_not_resolve_keeps_nobody_waiting() {
        var simulation = running()
        #expect(simulation.host.state?.host.isUp == true)
        #expect(simulation.host.lookups == [host])
        var waits: [Int64] = []
        for _ in 0..<40 {
            let lookups = simulation.host.lookups.count
            let start = simulation.now.milliseconds
            simulation.handle(.host(.unresolved(host, reason: "try again", isFinal: false)))
            simulation.pass(milliseconds: NameBook.longestBackoff + 1_001)
            // Asked again, in spite of all failures.
            #expect(simulation.host.lookups.count == lookups + 1)
            waits.append(simulation.now.milliseconds - start)
        }
        #expect(simulation.events.filter { $0.kind == .unresolved }.count == 1, "said once")
        simulation.handle(.host(.resolved(host, addresses)))
        simulation.pass(milliseconds: 1_000)
        #expect(endpoint(simulation) == first)
    }

    @Test func case_C66_waits_are_spread_over_the_whole_interval() {
        var waits: Set<Int64> = []
        for seed in 1...200 {
            var book = NameBook(seed: UInt64(seed))
            book.update(for: intent(named).configuration, now: 0)
            for _ in 0..<12 {
                _ = book.takeDueLookups(now: .max)
                _ = book.didFailToResolve(host, reason: "no", isFinal: false, now: 0)
            }
            let next = book.entries[key(1)]?.lookupAt ?? -1
            #expect(1_000...NameBook.longestBackoff + 1_000 ~= next)
            waits.insert(next / 30_000)
        }
        #expect(waits.count >= 9, "all tenths of five minutes are used")
    }

    @Test func case_C31_literals_skip_resolution() {
        var simulation = Simulation()
        simulation.apply(
            intent(
                text(
                    "Address = 10.7.0.1/24",
                    peers: peer(1, "AllowedIPs = 10.7.0.2/32", "Endpoint = [2001:db8::1]:51820"))))
        #expect(simulation.host.lookups.isEmpty)
        #expect(simulation.reconciler.nextTime == nil)
        #expect(endpoint(simulation) == second)
    }

    @Test func case_C29_the_next_address_is_tried_when_none_answers() {
        var simulation = running()
        simulation.handle(.host(.resolved(host, addresses)))
        simulation.pass(milliseconds: 1_000)
        #expect(endpoint(simulation) == first)
        // Initiations go out, nothing comes back.
        simulation.tamper { $0.device.peers[0].sentBytes += 148 * 4 }
        simulation.pass(milliseconds: NameBook.patience + NameBook.checkInterval)
        #expect(endpoint(simulation) == second)
        // All tried in vain: the name is asked again, and the round begins anew.
        simulation.tamper { $0.device.peers[0].sentBytes += 148 * 4 }
        simulation.pass(milliseconds: 2 * NameBook.patience + 5_000)
        #expect(simulation.host.lookups.count == 2)
        simulation.handle(.host(.resolved(host, addresses)))
        simulation.pass(milliseconds: 1_000)
        #expect(endpoint(simulation) == first)
    }

    @Test func case_C35_an_idle_peer_is_left_alone() {
        var simulation = running()
        simulation.handle(.host(.resolved(host, addresses)))
        simulation.pass(milliseconds: 3_600_000)
        #expect(endpoint(simulation) == first)
        #expect(simulation.host.lookups.count == 1)
    }

    @Test func case_C28_a_live_roamed_endpoint_is_never_replaced() {
        var simulation = running()
        simulation.handle(.host(.resolved(host, addresses)))
        simulation.pass(milliseconds: 1_000)
        let roamed = Endpoint("198.51.100.7:1000")!
        for _ in 0..<20 {
            let wall = simulation.now.wallSeconds
            simulation.tamper {
                $0.device.peers[0].endpoint = roamed
                $0.device.peers[0].lastHandshakeSeconds = wall
                $0.device.peers[0].sentBytes += 1000
            }
            simulation.handle(.host(.pathsChanged))
            simulation.handle(.host(.resolved(host, addresses)))
            simulation.pass(milliseconds: 120_000)
            #expect(endpoint(simulation) == roamed)
            // Nor by applying the same configuration again.
            simulation.apply(intent(named))
            #expect(endpoint(simulation) == roamed)
        }
        #expect(simulation.host.lookups.count == 1, "healthy: not asked (C27)")
    }

    @Test func case_C27_a_stale_session_asks_the_name_again() {
        var simulation = running()
        simulation.handle(.host(.resolved(host, [ResolvedAddress(first.address)])))
        simulation.pass(milliseconds: 1_000)
        let wall = simulation.now.wallSeconds
        simulation.tamper { $0.device.peers[0].lastHandshakeSeconds = wall }
        simulation.pass(milliseconds: NameBook.staleAfter - 10_000)
        #expect(simulation.host.lookups.count == 1)
        simulation.pass(milliseconds: 20_000)
        #expect(simulation.host.lookups.count == 2)
        simulation.handle(.host(.resolved(host, [ResolvedAddress(second.address)])))
        simulation.pass(milliseconds: 1_000)
        #expect(endpoint(simulation) == second)
    }

    /// C78: a wall clock that jumps makes no session stale and none live.
    @Test func case_C78_the_wall_clock_may_jump() {
        var simulation = running()
        simulation.handle(.host(.resolved(host, addresses)))
        simulation.pass(milliseconds: 1_000)
        let wall = simulation.now.wallSeconds
        simulation.tamper { $0.device.peers[0].lastHandshakeSeconds = wall }
        simulation.pass(milliseconds: 6_000)
        simulation.now.wallSeconds += 86_400
        simulation.handle(.tick)
        simulation.pass(milliseconds: 100_000)
        #expect(simulation.host.lookups.count == 1)
    }
}
