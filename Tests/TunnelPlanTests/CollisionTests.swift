// SPDX-License-Identifier: Apache-2.0
import Testing
import WireGuard

@testable import TunnelPlan

/// A host with a local network and a default route.
private func facts(_ more: HostRoute...) -> HostFacts {
    var facts = HostFacts()
    facts.routes =
        [
            HostRoute(prefix("0.0.0.0/0"), link: "eth0"),
            HostRoute(prefix("192.168.1.0/24"), link: "eth0"),
        ] + more
    facts.addresses = [HostAddress(address("192.168.1.5/24"), link: "eth0")]
    return facts
}

private func found(_ decision: TunnelDecision) -> [String] {
    decision.issues.map { "\($0.severity.rawValue) \($0.kind.rawValue)" }
}

@Suite struct CollisionTests {
    @Test func case_C37_an_endpoint_inside_its_own_prefix_is_refused() {
        for allowed in ["192.0.2.0/24", "0.0.0.0/1", "128.0.0.0/1"] {
            let decision = decide(file(peer(1, [allowed], endpoint: "192.0.2.1:51820")), facts())
            let isInside = allowed != "0.0.0.0/1"
            #expect(decision.tunnel == nil || !isInside, "\(allowed)")
            let expected = isInside ? ["error endpointInsideTunnel"] : []
            #expect(found(decision).filter { $0.hasSuffix("Tunnel") } == expected)
        }
    }

    @Test func case_C37_the_full_tunnel_and_a_pinned_path_are_no_loop() {
        let full = file(peer(1, ["0.0.0.0/0"], endpoint: "192.0.2.1:51820"))
        #expect(decide(full, facts()).issues == [])
        let half = file(peer(1, ["192.0.2.0/24"], endpoint: "192.0.2.1:51820"))
        let pinned = HostRoute(prefix("192.0.2.1/32"), link: "eth0")
        #expect(found(decide(half, facts(pinned))) == ["warning hostRoute"])
        var marked = half
        marked.interface.fwmark = 7
        #expect(decide(marked, facts()).issues == [])
        var off = half
        off.interface.table = .off
        #expect(decide(off, facts()).issues == [])
    }

    @Test func case_C37_a_tunnel_in_a_tunnel_and_hooks_are_warned_of() {
        let nested = file(
            peer(1, ["10.9.0.0/16"], endpoint: "192.0.2.1:51820"),
            peer(2, ["192.0.2.0/24"], endpoint: "198.51.100.1:51820"))
        #expect(found(decide(nested, facts())) == ["warning endpointInsideTunnel"])
        var hooked = file(peer(1, ["192.0.2.0/24"], endpoint: "192.0.2.1:51820"))
        hooked.interface.hooks = [.init(.preUp, ConfigurationText("ip route add …")!)]
        #expect(found(decide(hooked, facts())) == ["warning endpointInsideTunnel"])
    }

    @Test func case_C37_the_endpoint_in_the_subnet_of_the_tunnels_address() {
        let inside = file(addresses: ["10.0.0.2/24"], peer(1, endpoint: "10.0.0.1:51820"))
        #expect(found(decide(inside, facts())) == ["error endpointInsideTunnel"])
    }

    @Test func case_C37_a_prefix_that_is_or_contains_a_route_of_the_host() {
        let equal = file(peer(1, ["192.168.1.0/24"]))
        #expect(found(decide(equal, facts())) == ["warning hostRoute"])
        var exact = facts()
        exact.routes[1].metric = 0
        #expect(found(decide(equal, exact)) == ["error hostRoute"])
        exact.routes[1].metric = 100
        #expect(found(decide(equal, exact)) == ["warning hostRoute"])
        let wide = decide(file(peer(1, ["192.168.0.0/16"])), facts())
        #expect(found(wide) == ["warning hostRoute"])
        #expect(wide.issues[0].what.contains("192.168.1.0/24, which the host routes to eth0"))
        #expect(decide(file(peer(1, ["192.168.1.64/26"])), facts()).issues == [])
    }

    @Test func case_C54_routes_of_the_tunnels_own_link_and_of_other_tables_do_not_count() {
        let own = file(addresses: ["10.0.0.1/24"], peer(1, ["10.1.0.0/16"]))
        var facts = facts(
            HostRoute(prefix("10.0.0.0/24"), link: "wg0"),
            HostRoute(prefix("10.1.0.0/16"), link: "wg0"),
            HostRoute(prefix("10.1.0.0/16"), table: 99, link: "eth0"))
        facts.addresses.append(HostAddress(address("10.0.0.1/24"), link: "wg0"))
        #expect(decide(own, facts).issues == [])
        facts.routes.append(HostRoute(prefix("10.1.0.0/16"), link: "wg1"))
        #expect(found(decide(own, facts)) == ["warning hostRoute"])
    }

    @Test func an_address_or_a_subnet_of_another_link_is_warned_of() {
        let same = decide(file(addresses: ["192.168.1.5/32"]), facts())
        #expect(found(same) == ["warning addressTaken"])
        let overlap = decide(file(addresses: ["192.168.1.9/28"]), facts())
        #expect(found(overlap) == ["warning subnetOverlap"])
        #expect(overlap.issues[0].whoLoses == "what both contain is reached by wg0 only")
        #expect(decide(file(addresses: ["192.168.2.9/24"]), facts()).issues == [])
    }
}
