// SPDX-License-Identifier: Apache-2.0
import Testing
import WireGuard

@testable import TunnelPlan

private func tunnel(_ peers: DesiredPeer...) -> DesiredTunnel {
    var tunnel = DesiredTunnel()
    tunnel.peers = peers
    return tunnel
}

private func desired(
    _ number: Int, _ prefixes: String..., change: (inout DesiredPeer) -> Void = { _ in }
) -> DesiredPeer {
    var peer = DesiredPeer(publicKey: key(number))
    peer.prefixes = Set(prefixes.map { prefix($0) })
    change(&peer)
    return peer
}

@Suite struct PlanTests {
    @Test func case_C57_one_more_peer_is_one_change() throws {
        let state = try made(tunnel(desired(1, "10.0.0.1/32"), desired(2, "10.0.0.2/32")))
        var change = PeerChange(publicKey: key(3))
        change.prefixes = [PrefixChange(prefix("10.0.0.3/32"))]
        let wanted = tunnel(
            desired(3, "10.0.0.3/32"), desired(2, "10.0.0.2/32"), desired(1, "10.0.0.1/32"))
        #expect(plan(from: state, to: wanted) == [.addPeer(change)])
    }

    @Test func case_C57_adding_one_among_10000_gives_exactly_one_change() throws {
        var wanted = DesiredTunnel()
        wanted.peers = manyPeers(10_000)
        let state = try made(wanted)
        wanted.peers.insert(desired(10_000, "10.255.0.1/32"), at: 5000)
        var change = PeerChange(publicKey: key(10_000))
        change.prefixes = [PrefixChange(prefix("10.255.0.1/32"))]
        #expect(plan(from: state, to: wanted) == [.addPeer(change)])
    }

    private func manyPeers(_ count: Int) -> [DesiredPeer] {
        (0..<count).map { number in
            var peer = DesiredPeer(publicKey: key(number))
            peer.prefixes = [
                Prefix(address: .v4(0x0A00_0000 + UInt32(number)), length: 32)!,
                Prefix(address: .v6(high: 0xFD00 << 48, low: UInt64(number)), length: 128)!,
            ]
            return peer
        }
    }

    /// Each peer keeps its place and half of them change hands.
    @Test func case_C99_work_is_proportional_to_peers_and_prefixes() throws {
        let visits = try [1_000, 10_000].map { count in
            let peers = manyPeers(count)
            var before = DesiredTunnel()
            before.peers = peers
            let state = try made(before)
            var after = peers
            for index in stride(from: 0, to: count, by: 2) {
                (after[index].prefixes, after[index + 1].prefixes) =
                    (after[index + 1].prefixes, after[index].prefixes)
            }
            var planner = PeerPlanner(policy: EndpointPolicy())
            let changes = planner.plan(from: state.device, to: after)
            #expect(changes.set.count == count && changes.removed.isEmpty)
            return planner.visits
        }
        #expect(visits[1] == 10 * visits[0])
    }

    @Test func case_C39_a_prefix_moves_in_one_change_of_its_new_holder() throws {
        let state = try made(tunnel(desired(1, "10.0.0.1/32", "10.0.0.9/32"), desired(2)))
        var change = PeerChange(publicKey: key(2))
        change.updateOnly = true
        change.prefixes = [PrefixChange(prefix("10.0.0.9/32"))]
        let wanted = tunnel(desired(1, "10.0.0.1/32"), desired(2, "10.0.0.9/32"))
        #expect(plan(from: state, to: wanted) == [.changePeer(change)])
    }

    @Test func case_C39_of_two_peers_with_one_prefix_the_later_has_it() throws {
        let state = try made(tunnel(desired(1, "10.0.0.1/32"), desired(2, "10.0.0.1/32")))
        #expect(state.device.peers[0].prefixes == [])
        #expect(state.device.peers[1].prefixes == [prefix("10.0.0.1/32")])
    }

    @Test func case_C58_what_is_absent_is_left_alone() throws {
        var before = DesiredTunnel()
        before.device = DeviceChange(privateKey: secret(1), listenPort: 51820, fwmark: 7)
        before.host.mtu = 1380
        let state = try made(before)
        #expect(plan(from: state, to: DesiredTunnel()) == [])
        var anyPort = DesiredTunnel()
        anyPort.device.listenPort = 0
        #expect(plan(from: state, to: anyPort) == [])
        var unmarked = DesiredTunnel()
        unmarked.device.fwmark = 0
        #expect(plan(from: state, to: unmarked) == [.setDevice(DeviceChange(fwmark: 0))])
    }

    @Test func a_preshared_key_and_a_keepalive_that_vanished_are_cleared() throws {
        let before = desired(1) {
            $0.presharedKey = preshared(5)
            $0.keepalive = 25
        }
        let state = try made(tunnel(before))
        var change = PeerChange(publicKey: key(1))
        change.updateOnly = true
        change.presharedKey = preshared(0)
        change.keepalive = 0
        #expect(plan(from: state, to: tunnel(desired(1))) == [.changePeer(change)])
    }

    @Test func a_zero_preshared_key_is_none() throws {
        let state = try made(tunnel(desired(1) { $0.presharedKey = preshared(0) }))
        #expect(state.device.peers[0].presharedKey == nil)
        #expect(plan(from: state, to: tunnel(desired(1))) == [])
    }

    @Test func the_device_itself_is_no_peer() throws {
        var state = try made(tunnel())
        state.device.publicKey = key(1)
        #expect(plan(from: state, to: tunnel(desired(1, "10.0.0.1/32"))) == [])
    }

    @Test func case_C40_addresses_routes_and_mtu_are_part_of_the_plan() throws {
        let before = decide(file(addresses: ["10.0.0.1/24"], peer(1, ["10.1.0.0/16"]))).tunnel!
        let after = decide(
            file(addresses: ["10.0.0.2/24"], peer(1, ["10.2.0.0/16"])) { $0.mtu = 1380 }
        ).tunnel!
        var change = PeerChange(publicKey: key(1))
        change.updateOnly = true
        change.prefixes = [
            PrefixChange(prefix("10.2.0.0/16")), PrefixChange(prefix("10.1.0.0/16"), remove: true),
        ]
        #expect(
            plan(from: try made(before), to: after) == [
                .changePeer(change), .setMTU(1380), .addAddress(address("10.0.0.2/24")),
                .addRoute(Route(prefix("10.2.0.0/16"))),
                .removeRoute(Route(prefix("10.1.0.0/16"))),
                .removeAddress(address("10.0.0.1/24")),
            ])
    }

    @Test func case_C42_undo_removes_what_was_added_in_an_order_without_leaks() throws {
        let wanted = decide(
            file(addresses: ["10.0.0.2/24"], peer(1, ["0.0.0.0/0"])) {
                $0.dnsServers = [DNSServer(address: IPAddress("10.0.0.1")!)]
                    .compactMap { $0 }
            }
        ).tunnel!
        let state = try made(wanted)
        let rules = state.host.rules.sorted(by: Rule.precedes)
        #expect(rules.map(\.priority) == [32764, 32765])
        #expect(
            undo(of: state) == [
                .setDNS(nil), .removeRule(rules[1]), .removeRule(rules[0]),
                .setSetting(.sourceValidMark, nil), .setFirewall(nil), .removeLink,
            ])
        var model = TunnelModel(state)
        try model.apply(undo(of: state))
        #expect(model.state == nil)
    }

    @Test func another_back_end_is_a_link_of_its_kind_and_keeps_the_rules() throws {
        var wanted = decide(file(addresses: ["10.0.0.2/24"], peer(1, ["0.0.0.0/0"]))).tunnel!
        wanted.backend = .kernel
        let state = try made(wanted)
        wanted.backend = .userspace
        let changes = plan(from: state, to: wanted)
        #expect(changes.first == .createReplacement(.userspace))
        for change in changes {
            if case .addRule = change { Testing.Issue.record("a rule again") }
            if case .removeRule = change { Testing.Issue.record("a rule goes") }
        }
        var model = TunnelModel(state)
        try model.apply(changes)
        #expect(model.state?.backend == .userspace)
        #expect(model.state?.host == state.host)
    }

    @Test func a_link_is_whole_before_it_replaces_the_old_one() throws {
        var wanted = decide(
            file(addresses: ["10.0.0.2/24"], peer(1, ["0.0.0.0/0"]), peer(2, ["10.1.0.0/16"]))
        ).tunnel!
        wanted.device.listenPort = 51820
        var state = try made(wanted)
        for index in state.device.peers.indices {
            state.device.peers[index].endpoint = endpoint("203.0.113.9:1024")
            state.device.peers[index].lastHandshakeSeconds = index == 0 ? 900 : 0
        }
        let policy = EndpointPolicy(now: 1000)
        #expect(plan(from: state, to: wanted, policy: policy) == [])
        let changes = plan(from: state, to: wanted, policy: policy, renews: true)
        #expect(changes.first == .createReplacement(state.backend))
        let exchange = try #require(changes.firstIndex(of: .exchangeLink))
        // Only what two links cannot both have comes after it: port, being up, routes.
        for change in changes[..<exchange] {
            switch change {
            case .createReplacement, .addPeer, .addAddress, .setMTU, .addBarrier: break
            case .setDevice(let device): #expect(device.listenPort == nil)
            default: Testing.Issue.record("\(change) before the exchange")
            }
        }
        #expect(
            changes[(exchange + 1)...].prefix(2) == [
                .setDevice(DeviceChange(listenPort: 51820)), .setUp(true),
            ])
        for change in changes[(exchange + 3)...] {
            switch change {
            case .addRoute, .removeBarrier: break
            // Who had no session is not waked.
            case .greetPeers(let keys): #expect(keys == [state.device.peers[0].publicKey])
            default: Testing.Issue.record("\(change) after the exchange")
            }
        }
        var model = TunnelModel(state)
        try model.apply(changes)
        let after = try #require(model.state)
        #expect(after.host == state.host)
        #expect(after.device.peers.map(\.endpoint) == state.device.peers.map(\.endpoint))
        #expect(after.device.peers.allSatisfy { $0.lastHandshakeSeconds == 0 })
    }

    @Test func a_link_that_replaces_another_knows_where_a_peer_has_roamed_to() throws {
        let server = peer(1, ["10.1.0.0/16"], endpoint: "192.0.2.1:51820")
        let wanted = decide(file(addresses: ["10.0.0.2/24"], server)).tunnel!
        var state = try made(wanted)
        state.device.peers[0].endpoint = endpoint("203.0.113.9:1024")
        for (handshake, place) in [(900, "203.0.113.9:1024"), (0, "192.0.2.1:51820")] {
            state.device.peers[0].lastHandshakeSeconds = Int64(handshake)
            var model = TunnelModel(state)
            try model.apply(
                plan(from: state, to: wanted, policy: EndpointPolicy(now: 1000), renews: true))
            #expect(model.state?.device.peers.first?.endpoint == endpoint(place))
        }
    }

    @Test func routes_come_back_after_the_last_ipv4_address() throws {
        var before = DesiredTunnel()
        before.host.isUp = true
        before.host.addresses = [address("10.0.0.1/24")]
        before.host.routes = [Route(prefix("10.1.0.0/16")), Route(prefix("fd01::/48"))]
        var after = before
        after.host.addresses = []
        #expect(
            plan(from: try made(before), to: after) == [
                .removeAddress(address("10.0.0.1/24")), .addRoute(Route(prefix("10.1.0.0/16"))),
            ])
    }

    @Test func an_address_goes_before_the_route_that_takes_its_subnet() throws {
        var before = DesiredTunnel()
        before.host.isUp = true
        before.host.addresses = [address("10.0.0.1/24"), address("10.9.0.1/32")]
        var after = before
        after.host.addresses = [address("10.9.0.1/32")]
        after.host.routes = [Route(prefix("10.0.0.0/24"))]
        #expect(
            plan(from: try made(before), to: after) == [
                .removeAddress(address("10.0.0.1/24")), .addRoute(Route(prefix("10.0.0.0/24"))),
            ])
    }

    @Test func an_ipv6_address_with_another_length_goes_first() throws {
        var before = DesiredTunnel()
        before.host.addresses = [address("fd00::1/64")]
        var after = DesiredTunnel()
        after.host.addresses = [address("fd00::1/128")]
        #expect(
            plan(from: try made(before), to: after) == [
                .removeAddress(address("fd00::1/64")), .addAddress(address("fd00::1/128")),
            ])
    }
}

@Suite struct ModelTests {
    @Test func what_does_not_fit_is_refused_and_changes_nothing() throws {
        let wanted = decide(file(addresses: ["10.0.0.1/24"], peer(1, ["10.1.0.0/16"]))).tunnel!
        let state = try made(wanted)
        var again = PeerChange(publicKey: key(1))
        again.updateOnly = true
        again.prefixes = [PrefixChange(prefix("10.1.0.0/16"))]
        let misfits: [Change] = [
            .createLink(.kernel), .exchangeLink, .removeLink, .setDevice(DeviceChange()),
            .setDevice(DeviceChange(privateKey: secret(7).clamped)),
            .addPeer(PeerChange(publicKey: key(1))),
            .changePeer(PeerChange(publicKey: key(1))), .changePeer(again), .removePeer(key(2)),
            .addAddress(address("10.0.0.1/24")), .removeAddress(address("10.0.0.2/24")),
            .setMTU(1420), .setUp(true), .setUp(false), .addRoute(Route(prefix("10.1.0.0/16"))),
            .addRoute(Route(prefix("10.0.0.0/24"))), .removeRoute(Route(prefix("10.2.0.0/16"))),
            .removeRule(Rule(family: .v4, priority: 1, table: 1)), .setDNS(nil),
            .setFirewall(state.host.firewall), .setSetting(.sourceValidMark, nil),
        ]
        for change in misfits {
            var model = TunnelModel(state)
            #expect(throws: ModelError.self, "\(change)") { try model.apply(change) }
            #expect(model.state == state, "\(change)")
        }
    }

    @Test func without_a_link_nothing_can_be_done_to_it() {
        var model = TunnelModel()
        for change: Change in [.removeLink, .setMTU(1420), .removePeer(key(1)), .setDNS(nil)] {
            #expect(throws: ModelError.self) { try model.apply(change) }
        }
        #expect(model.state == nil)
    }
}

@Suite struct EndpointPolicyTests {
    private let roamed = endpoint("203.0.113.9:1024")

    private func actual(handshake: Int64, _ endpoint: Endpoint?) -> PeerSnapshot {
        var peer = PeerSnapshot(publicKey: key(1))
        peer.endpoint = endpoint
        peer.lastHandshakeSeconds = handshake
        return peer
    }

    private func wanted(_ text: String, source: String? = nil) -> DesiredPeer {
        desired(1) {
            $0.endpoint = endpoint(text)
            $0.endpointSource = source.map { .host(HostName($0)!, port: 51820) }
        }
    }

    @Test func pitfall_56_a_live_endpoint_that_roamed_stays() {
        let policy = EndpointPolicy(now: now)
        let peer = wanted("192.0.2.1:51820")
        #expect(policy.endpoint(for: peer, having: actual(handshake: now - 180, roamed)) == nil)
        #expect(policy.endpoint(for: peer, having: actual(handshake: now + 900, roamed)) == nil)
    }

    @Test func case_C28_after_180_seconds_or_without_handshake_it_is_sent() {
        let policy = EndpointPolicy(now: now)
        let peer = wanted("192.0.2.1:51820")
        for handshake in [now - 181, 0] {
            let actual = actual(handshake: handshake, roamed)
            #expect(policy.endpoint(for: peer, having: actual) == peer.endpoint)
        }
        let unknown = EndpointPolicy()
        #expect(unknown.endpoint(for: peer, having: actual(handshake: 1, roamed)) == nil)
        #expect(unknown.endpoint(for: peer, having: actual(handshake: 0, roamed)) != nil)
    }

    @Test func a_peer_without_endpoint_gets_one_and_the_same_is_not_sent_again() {
        let policy = EndpointPolicy(now: now)
        let peer = wanted("192.0.2.1:51820")
        #expect(policy.endpoint(for: peer, having: actual(handshake: now, nil)) == peer.endpoint)
        let same = actual(handshake: 0, endpoint("192.0.2.1:51820"))
        #expect(policy.endpoint(for: peer, having: same) == nil)
        #expect(policy.endpoint(for: desired(1), having: actual(handshake: 0, roamed)) == nil)
    }

    @Test func an_endpoint_that_changed_in_the_configuration_is_sent() {
        let live = actual(handshake: now, roamed)
        let policy = EndpointPolicy(previous: tunnel(wanted("192.0.2.1:51820")), now: now)
        #expect(policy.endpoint(for: wanted("192.0.2.1:51820"), having: live) == nil)
        #expect(policy.endpoint(for: wanted("192.0.2.2:51820"), having: live) != nil)
    }

    @Test func case_C27_a_name_that_resolves_anew_is_no_change_of_the_configuration() {
        let live = actual(handshake: now, roamed)
        let before = wanted("192.0.2.1:51820", source: "vpn.example.org")
        let policy = EndpointPolicy(previous: tunnel(before), now: now)
        let anew = wanted("192.0.2.2:51820", source: "vpn.example.org")
        #expect(policy.endpoint(for: anew, having: live) == nil)
        let other = wanted("192.0.2.2:51820", source: "vpn.example.net")
        #expect(policy.endpoint(for: other, having: live) == other.endpoint)
    }

    @Test func case_C58_another_back_end_takes_over_what_is_left_as_it_is() throws {
        let caller = peer(1, ["10.0.0.2/32"])
        let server = peer(2, ["10.0.0.3/32"], endpoint: "192.0.2.1:51820")
        let file = file(addresses: ["10.0.0.1/24"], caller, server)
        var model = TunnelModel()
        try model.apply(plan(from: nil, to: decide(file).tunnel!))
        var before = try #require(model.state)
        before.device.listenPort = 40000
        before.device.fwmark = 7
        for index in before.device.peers.indices {
            before.device.peers[index].endpoint = endpoint("203.0.113.9:1024")
        }
        var wanted = decide(file).tunnel!
        wanted.backend = .userspace
        let changes = plan(from: before, to: wanted)
        #expect(changes.first == .createReplacement(.userspace))
        model = TunnelModel(before)
        try model.apply(changes)
        let device = try #require(model.state).device
        #expect(device.listenPort == 40000)
        #expect(device.fwmark == 7)
        // Who only calls is known where it was; a configured endpoint is where to begin anew.
        #expect(
            device.peers.map(\.endpoint) == [
                endpoint("203.0.113.9:1024"), endpoint("192.0.2.1:51820"),
            ])
        #expect(plan(from: model.state, to: wanted).isEmpty)
    }
}
