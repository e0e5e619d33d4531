// SPDX-License-Identifier: Apache-2.0
import Testing
import WireGuard

@testable import TunnelPlan

/// What stands in a full tunnel's table while its link is exchanged.
@Suite struct BarrierTests {
    /// Of a full tunnel: its table leads into the tunnel or nowhere, at every moment.
    @Test(arguments: [nil, 7]) func no_packet_leaves_beside_a_link_that_is_replaced(
        _ mark: UInt32?
    ) throws {
        func tunnel(_ mark: UInt32?) -> DesiredTunnel {
            let peer = peer(1, ["0.0.0.0/0", "::/0"])
            return decide(
                file(addresses: ["10.0.0.2/24", "fd00::2/64"], peer) { $0.fwmark = mark }
            ).tunnel!
        }
        let state = try made(tunnel(nil))
        let wanted = tunnel(mark)
        var model = TunnelModel(state)
        var isWithoutRoute = 0
        for change in plan(from: state, to: wanted, renews: true) {
            try model.apply(change)
            let host = try #require(model.state?.host)
            let ends = host.rules.filter(\.isInverted).map {
                Barrier(family: $0.family, table: $0.table)
            }
            #expect(Set(ends.map(\.family)) == [.v4, .v6])
            for end in ends {
                let isRouted = host.routes.contains {
                    $0.table == end.table && $0.destination.length == 0
                        && $0.destination.address.family == end.family
                }
                isWithoutRoute += isRouted ? 0 : 1
                #expect(isRouted || host.barriers.contains(end), "after \(change)")
            }
        }
        #expect(isWithoutRoute > 3)
        #expect(model.state?.host.barriers == [])
    }

    @Test func a_barrier_that_was_left_goes() throws {
        let wanted = decide(file(addresses: ["10.0.0.2/24"], peer(1, ["0.0.0.0/0"]))).tunnel!
        var state = try made(wanted)
        let table = try #require(state.host.rules.first { $0.isInverted }?.table)
        let left = Barrier(family: .v4, table: table)
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
