// SPDX-License-Identifier: Apache-2.0
import Testing
import WireGuard

@testable import TunnelPlan

/// What stands behind the routes of a tunnel while its link is exchanged.
@Suite struct BarrierTests {
    private func tunnel(
        _ allowed: [String], change: (inout ConfigurationFile.Interface) -> Void = { _ in }
    ) -> DesiredTunnel {
        decide(
            file(addresses: ["10.0.0.2/24", "fd00::2/64"], peer(1, allowed), change: change)
        ).tunnel!
    }

    /// Where a packet went that the tunnel had, at the route it took: into the tunnel or nowhere, at
    /// every moment of an exchange.
    private func expectNoGap(from old: DesiredTunnel, to wanted: DesiredTunnel) throws {
        let state = try made(old)
        let ways =
            state.host.routes.map { ($0, Barrier(behind: $0)) }
            + state.host.addresses.compactMap(\.connectedRoute).map {
                (Route($0), Barrier(behindConnected: $0))
            }
        var model = TunnelModel(state)
        var isWithoutRoute = 0
        let changes = plan(from: state, to: wanted, renews: true)
        let end = try #require(changes.firstIndex(of: .exchangeLink))
        for (index, change) in changes.enumerated() {
            try model.apply(change)
            let host = try #require(model.state?.host)
            // Routes that are not wanted any more may go once all that are wanted are there.
            guard index <= end || !wanted.host.routes.isSubset(of: host.routes) else { continue }
            for (route, barrier) in ways {
                let isRouted =
                    host.routes.contains(route)
                    || host.isUp
                        && host.addresses.contains { $0.connectedRoute == route.destination }
                isWithoutRoute += isRouted ? 0 : 1
                #expect(isRouted || host.barriers.contains(barrier), "\(route) after \(change)")
            }
        }
        #expect(isWithoutRoute > 3)
        #expect(model.state?.host.barriers == [])
    }

    /// Of a full tunnel: its table leads into the tunnel or nowhere, at every moment.
    @Test(arguments: [nil, 7]) func no_packet_leaves_beside_a_link_that_is_replaced(
        _ mark: UInt32?
    ) throws {
        let state = try made(tunnel(["0.0.0.0/0", "::/0"]))
        let wanted = tunnel(["0.0.0.0/0", "::/0"]) { $0.fwmark = mark }
        var model = TunnelModel(state)
        var isWithoutRoute = 0
        for change in plan(from: state, to: wanted, renews: true) {
            try model.apply(change)
            let host = try #require(model.state?.host)
            let ends = host.rules.filter(\.isInverted)
            #expect(Set(ends.map(\.family)) == [.v4, .v6])
            for end in ends {
                let isRouted = host.routes.contains {
                    $0.table == end.table && $0.destination.length == 0
                        && $0.destination.address.family == end.family
                }
                let isBarred = host.barriers.contains {
                    $0.table == end.table && $0.destination.length == 0
                        && $0.destination.address.family == end.family
                }
                isWithoutRoute += isRouted ? 0 : 1
                #expect(isRouted || isBarred, "after \(change)")
            }
        }
        #expect(isWithoutRoute > 3)
        #expect(model.state?.host.barriers == [])
    }

    /// Routes that have wider ones of others behind them.
    @Test(arguments: [
        ["0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1"], ["10.1.0.0/16", "fd01::/48"],
        ["0.0.0.0/0", "::/0", "10.1.0.0/16"],
    ]) func no_packet_takes_the_wider_route_behind(_ allowed: [String]) throws {
        for table: RoutingTable in [.auto, .number(77), .number(Route.mainTable)] {
            let wanted = tunnel(allowed) { $0.table = table }
            try expectNoGap(from: wanted, to: wanted)
            try expectNoGap(from: wanted, to: tunnel(["10.2.0.0/16"]) { $0.table = table })
        }
    }

    /// The kernel takes the lowest metric: the tunnel's own route, then the barrier, then all others.
    @Test func a_barrier_is_right_behind_its_route() {
        for (route, metric): (Route, UInt32) in [
            (Route(prefix("0.0.0.0/1")), 1), (Route(prefix("8000::/1"), table: 7), 1025),
            (Route(prefix("10.0.0.0/8"), metric: 50), 51),
            (Route(prefix("10.0.0.0/8"), metric: .max), .max),
        ] {
            #expect(
                Barrier(behind: route)
                    == Barrier(route.destination, table: route.table, metric: metric))
        }
        let main = Route.mainTable
        #expect(
            Barrier(behindConnected: prefix("10.0.0.0/24"))
                == Barrier(prefix("10.0.0.0/24"), table: main, metric: 1))
        #expect(
            Barrier(behindConnected: prefix("fd00::/64"))
                == Barrier(prefix("fd00::/64"), table: main, metric: 257))
    }

    @Test func a_barrier_that_was_left_goes() throws {
        let wanted = tunnel(["0.0.0.0/0"])
        var state = try made(wanted)
        let route = try #require(state.host.routes.first { $0.destination.length == 0 })
        let left = Barrier(behind: route)
        state.host.barriers = [left]
        #expect(plan(from: state, to: wanted) == [.removeBarrier(left)])
        let renewal = plan(from: state, to: wanted, renews: true)
        #expect(!renewal.contains(.addBarrier(left)))
        #expect(renewal.contains(.removeBarrier(left)))
        #expect(undo(of: state).contains(.removeBarrier(left)))
        var model = TunnelModel(state)
        try model.apply(undo(of: state))
        #expect(model.state == nil)
    }
}
