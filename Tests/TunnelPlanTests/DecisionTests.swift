// SPDX-License-Identifier: Apache-2.0
import Testing
import WireGuard

@testable import TunnelPlan

@Suite struct DecisionTests {
    @Test func a_full_tunnel_is_what_wg_quick_makes() throws {
        var facts = HostFacts()
        facts.defaultRouteMTU = 1500
        let decision = decide(
            file(addresses: ["10.0.0.2/24"], peer(1, ["0.0.0.0/0"], endpoint: "192.0.2.1:51820")),
            facts)
        #expect(decision.issues == [])
        let host = try #require(decision.tunnel).host
        #expect(host.mtu == 1420)
        #expect(host.routes == [Route(prefix("0.0.0.0/0"), table: 51820)])
        var local = Rule(family: .v4, priority: 32764, table: 254)
        local.suppressPrefixLength = 0
        var rest = Rule(family: .v4, priority: 32765, table: 51820)
        rest.mark = 51820
        rest.isInverted = true
        #expect(host.rules == [local, rest])
        #expect(host.settings == [.sourceValidMark: 1])
        #expect(host.firewall?.fullTunnelMark == 51820)
        #expect(host.firewall?.protectedAddresses == [address("10.0.0.2/24")])
        #expect(decision.tunnel?.device.fwmark == 51820)
        let state = try made(decision.tunnel!)
        #expect(plan(from: state, to: decision.tunnel!) == [])
        var model = TunnelModel(state)
        try model.apply(undo(of: state))
        #expect(model.state == nil)
    }
}
