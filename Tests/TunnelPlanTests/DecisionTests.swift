// SPDX-License-Identifier: Apache-2.0
import Testing
import WireGuard

@testable import TunnelPlan

/// The kinds of the issues, in order.
private func kinds(_ decision: TunnelDecision) -> [TunnelPlan.Issue.Kind] {
    decision.issues.map(\.kind)
}

@Suite struct DecisionTests {
    @Test func a_full_tunnel_is_what_wg_quick_makes() throws {
        var facts = HostFacts()
        facts.defaultRouteMTU = 1500
        facts.rulePriorities = [.v4: [0, 32766, 32767], .v6: [0, 32766]]
        let decision = decide(
            file(addresses: ["10.0.0.2/24"], peer(1, ["0.0.0.0/0"], endpoint: "192.0.2.1:51820")),
            facts)
        #expect(decision.issues == [])
        let host = try #require(decision.tunnel).host
        #expect(host.mtu == 1420)
        #expect(host.isUp)
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
        #expect(host.firewall?.clampsSegmentSize == true)
        #expect(decision.tunnel?.device.fwmark == 51820)
    }

    @Test func a_private_key_is_wanted_as_devices_report_it() throws {
        var configuration = file(peer(1, ["10.0.0.0/24"]))
        configuration.interface.privateKey = secret(0xFF)
        let key = try #require(decide(configuration).tunnel?.device.privateKey)
        key.withBytes { bytes in
            #expect(bytes[0] == 0xF8)
            #expect(bytes[1] == 0xFF)
            #expect(bytes[31] == 0x7F)
        }
        #expect(key.clamped == key)
        #expect(secret(0).clamped.isZero)
        #expect(secret(0x08).clamped != secret(0x08), "bit 254 is set")
    }

    @Test func a_full_tunnel_of_ipv6_needs_no_source_valid_mark() {
        let host = decide(file(addresses: ["fd00::2/64"], peer(1, ["::/0"]))).tunnel?.host
        #expect(host?.settings == [:])
        #expect(host?.rules.map(\.family) == [.v6, .v6])
    }

    @Test func the_rules_come_before_those_of_others_as_with_wg_quick() {
        var facts = HostFacts()
        facts.rulePriorities = [.v4: [0, 5210, 32766], .v6: [0, 5270]]
        let host = decide(file(peer(1, ["0.0.0.0/0", "::/0"])), facts).tunnel!.host
        #expect(Set(host.rules.map(\.priority)) == [5208, 5209])
        #expect(host.rules.filter(\.isInverted).map(\.priority) == [5209, 5209])
        facts.rulePriorities = [.v4: [0, 1, 32765, 32763, 32766]]
        let squeezed = decide(file(peer(1, ["0.0.0.0/0"])), facts).tunnel!.host
        #expect(Set(squeezed.rules.map(\.priority)) == [32761, 32762])
        facts.rulePriorities = [.v4: Set(stride(from: 1, to: 32766, by: 2))]
        #expect(kinds(decide(file(peer(1, ["0.0.0.0/0"])), facts)) == [.noRulePriority])
    }

    @Test func what_the_subnet_of_an_address_covers_gets_no_route() {
        let decision = decide(
            file(
                addresses: ["10.0.0.1/24", "10.5.0.1/32", "fd00::1/128"],
                peer(
                    1, ["10.0.0.2/32", "10.5.0.1/32", "10.0.0.0/16", "fd00::1/128", "fd00::2/128"])
            ))
        #expect(
            decision.tunnel?.host.routes == [
                Route(prefix("10.5.0.1/32")), Route(prefix("10.0.0.0/16")),
                Route(prefix("fd00::2/128")),
            ])
    }

    @Test func resolver_settings_are_taken_over() {
        let decision = decide(
            file {
                $0.dnsServers = [DNSServer(address: IPAddress("10.0.0.1")!)!]
                $0.searchDomains = [SearchDomain("example.org")!]
            })
        #expect(decision.tunnel?.host.dns?.servers.count == 1)
        #expect(decision.tunnel?.host.dns?.searchDomains == [SearchDomain("example.org")!])
        #expect(decide(file()).tunnel?.host.dns == nil)
    }

    @Test func case_C19_prefixes_that_differ_in_host_bits_are_one() throws {
        let first = decide(file(peer(1, ["10.0.0.1/24"]))).tunnel!
        let second = decide(file(peer(1, ["10.0.0.0/24", "10.0.0.77/24"]))).tunnel!
        #expect(first == second)
        #expect(plan(from: try made(first), to: second) == [])
    }

    @Test func case_C23_a_file_without_private_key_is_refused() {
        let keyless = file { $0.privateKey = nil }
        let zero = file { $0.privateKey = secret(0) }
        for file in [keyless, zero] {
            let decision = decide(file)
            #expect(decision.tunnel == nil)
            #expect(kinds(decision) == [.noPrivateKey])
        }
        let hook = ConfigurationFile.Hook(.postUp, ConfigurationText("wg set %i private-key /k")!)
        let left = decide(
            file {
                $0.privateKey = nil
                $0.hooks = [hook]
            })
        #expect(left.tunnel != nil && left.tunnel?.device.privateKey == nil)
        #expect(left.issues.map(\.severity) == [.note])
    }

    @Test func case_C30_a_name_that_does_not_resolve_keeps_nobody_from_working() {
        var named = peer(1, ["10.0.0.1/32"])
        named.endpoint = .host(HostName("vpn.example.org")!, port: 51820)
        var facts = HostFacts()
        let unresolved = decide(file(named, peer(2, ["10.0.0.2/32"])), facts)
        #expect(unresolved.tunnel?.peers.map(\.endpoint) == [nil, nil])
        #expect(kinds(unresolved) == [.unresolvedName])
        facts.resolved[named.endpoint!] = endpoint("192.0.2.7:51820")
        let resolved = decide(file(named), facts)
        #expect(resolved.tunnel?.peers.first?.endpoint == endpoint("192.0.2.7:51820"))
        #expect(resolved.tunnel?.peers.first?.endpointSource == named.endpoint)
        #expect(resolved.issues == [])
    }

    /// Bridges of containers (docker's 172.17.0.0/16 and on, k3s's 10.42.0.0/16) and the LAN are where
    /// two hosts have the same addresses: nothing that is on this host becomes anybody's endpoint, also
    /// not for a peer without one, or in the subnet of one. What is told was configured, resolved or
    /// learned.
    @Test func case_C36_no_endpoint_is_guessed() throws {
        let text = [UInt8]("gateway.example".utf8)
        let name = HostName(text.span)!
        var named = peer(3, ["10.42.7.0/24"])
        named.endpoint = .host(name, port: 51820)
        let file = file(
            addresses: ["10.42.0.1/24", "172.19.0.1/16"], peer(1, ["172.19.0.2/32"]),
            peer(2, ["10.42.1.0/24"], endpoint: "192.0.2.1:51820"), named, peer(4, ["fd42::/64"]))
        var facts = HostFacts()
        for (number, text) in [
            "172.17.0.1/16", "172.19.0.1/16", "10.42.0.1/24", "192.168.1.7/24", "fd42::1/64",
        ].enumerated() {
            let link = ["docker0", "br-1", "cni0", "eth0", "flannel.1"][number]
            facts.addresses.append(HostAddress(address(text), link: link))
            facts.routes.append(HostRoute(address(text).subnet, link: link))
        }
        for peer in file.peers {
            if let source = peer.endpoint { facts.resolved[source] = endpoint("203.0.113.5:51820") }
        }
        let configured: Set = [endpoint("192.0.2.1:51820"), endpoint("203.0.113.5:51820")]
        let wanted = try #require(decide(file, facts).tunnel)
        let state = try made(wanted)
        #expect(endpoints(plan(from: nil, to: wanted)) == configured)
        var learned = state
        learned.device.peers[0].endpoint = endpoint("198.51.100.9:4000")
        learned.device.peers[0].lastHandshakeSeconds = 990
        let policy = EndpointPolicy(now: 1000)
        #expect(endpoints(plan(from: learned, to: wanted, policy: policy)) == [])
        #expect(
            endpoints(plan(from: learned, to: wanted, policy: policy, renews: true))
                == configured.union([endpoint("198.51.100.9:4000")]))
    }

    private func endpoints(_ changes: [Change]) -> Set<Endpoint> {
        Set(
            changes.compactMap { change in
                switch change {
                case .addPeer(let peer), .changePeer(let peer): peer.endpoint
                default: nil
                }
            })
    }

    @Test func case_C38_table_off_routes_nothing() {
        let off = decide(
            file(addresses: ["10.0.0.1/24"], peer(1, ["0.0.0.0/0", "10.1.0.0/16"])) {
                $0.table = .off
            }
        ).tunnel!
        #expect(off.host.routes == [] && off.host.rules == [])
        #expect(off.device.fwmark == nil && off.host.settings == [:])
        #expect(off.peers[0].prefixes.count == 2)
    }

    @Test func case_C38_a_table_takes_all_routes_and_no_rule() {
        var facts = HostFacts()
        facts.tableNumbers = ["vpn": 77]
        let named = file(addresses: ["10.1.0.1/16"], peer(1, ["0.0.0.0/0", "10.1.0.0/16"])) {
            $0.table = .name(Identifier("vpn")!)
        }
        let host = decide(named, facts).tunnel!.host
        #expect(
            host.routes == [
                Route(prefix("0.0.0.0/0"), table: 77), Route(prefix("10.1.0.0/16"), table: 77),
            ])
        #expect(host.rules == [])
        #expect(kinds(decide(named)) == [.unknownTable])
        let main = file(peer(1, ["10.1.0.0/16"])) { $0.table = .name(Identifier("main")!) }
        #expect(decide(main).tunnel?.host.routes == [Route(prefix("10.1.0.0/16"))])
    }

    @Test func case_C39_two_peers_with_one_prefix_are_named() {
        var alice = peer(1, ["10.0.0.1/32", "10.0.0.3/32"])
        alice.friendlyName = ConfigurationText("alice")
        let decision = decide(file(alice, peer(2, ["10.0.0.1/32"])))
        let issue = decision.issues.first
        let label = "peer alice (\(key(1)))"
        #expect(kinds(decision) == [.sharedPrefix])
        #expect(issue?.what == "\(label) and peer \(key(2)) both claim 10.0.0.1/32")
        #expect(issue?.whoLoses == "\(label) loses it")
        #expect(decision.tunnel?.peers[0].prefixes == [prefix("10.0.0.3/32")])
        #expect(decision.tunnel?.peers[1].prefixes == [prefix("10.0.0.1/32")])
    }

    @Test func case_C13_of_a_peer_configured_twice_the_second_counts() {
        let decision = decide(file(peer(1, ["10.0.0.1/32"]), peer(1, ["10.0.0.2/32"])))
        #expect(kinds(decision) == [.duplicatePeer])
        #expect(decision.tunnel?.peers.map(\.prefixes) == [[prefix("10.0.0.2/32")]])
    }

    @Test func the_device_itself_is_no_peer() {
        var facts = HostFacts()
        facts.ownPublicKey = key(1)
        let decision = decide(file(peer(1, ["10.0.0.1/32"]), peer(2)), facts)
        #expect(kinds(decision) == [.ownKey])
        #expect(decision.tunnel?.peers.map(\.publicKey) == [key(2)])
    }

    @Test func case_C86_a_port_of_another_tunnel_is_refused_with_its_name() {
        var facts = HostFacts()
        facts.listenPorts = [51820: InterfaceName("wg7")!]
        let decision = decide(file { $0.listenPort = 51820 }, facts)
        #expect(decision.tunnel == nil && kinds(decision) == [.portTaken])
        #expect(decision.issues[0].what.contains("wg7"))
        facts.listenPorts = [51820: wg0]
        #expect(decide(file { $0.listenPort = 51820 }, facts).issues == [])
    }
}

@Suite struct FullTunnelTests {
    private let full = file(addresses: ["10.0.0.2/24"], peer(1, ["0.0.0.0/0"]))

    @Test func case_C41_the_second_full_tunnel_takes_another_table() {
        var facts = HostFacts()
        facts.tablesInUse = [254, 51820]
        facts.marksInUse = [51821]
        let decision = decide(full, facts)
        #expect(decision.tunnel?.device.fwmark == 51822)
        #expect(decision.tunnel?.host.routes == [Route(prefix("0.0.0.0/0"), table: 51822)])
        #expect(kinds(decision) == [.otherTable])
        #expect(decision.issues.map(\.severity) == [.note])
        facts.fullTunnels = [InterfaceName("wg1")!, wg0]
        #expect(kinds(decide(full, facts)) == [.otherTable, .otherFullTunnel])
    }

    @Test func case_C42_a_running_full_tunnel_keeps_its_numbers() throws {
        var facts = HostFacts()
        facts.rulePriorities = [.v4: [100]]
        let first = try #require(decide(full, facts).tunnel)
        facts.current = try made(first)
        facts.tablesInUse = [51820]
        facts.marksInUse = [51820]
        facts.rulePriorities = [.v4: [50, 98, 99, 100]]
        let again = try #require(decide(full, facts).tunnel)
        #expect(again == first)
        // Also when somebody took its rules.
        facts.current?.host.rules = []
        #expect(decide(full, facts).tunnel?.device.fwmark == 51820)
        facts.current?.host.firewall = nil
        #expect(decide(full, facts).tunnel?.device.fwmark == 51820)
    }

    @Test func a_mark_of_the_file_is_the_number_of_the_table() {
        var marked = full
        marked.interface.fwmark = 777
        var facts = HostFacts()
        facts.tablesInUse = [777]
        #expect(
            decide(marked, facts).tunnel?.host.routes == [Route(prefix("0.0.0.0/0"), table: 777)])
        facts.routes = [HostRoute(prefix("0.0.0.0/0"), table: 777, link: "eth9")]
        #expect(kinds(decide(marked, facts)).contains(.tableTaken))
        #expect(decide(marked, facts).tunnel == nil)
        marked.interface.fwmark = 254
        #expect(decide(marked).tunnel == nil)
    }

    @Test func the_mark_goes_with_the_full_tunnel_unless_the_file_has_one() throws {
        var facts = HostFacts()
        facts.current = try made(try #require(decide(full).tunnel))
        var part = file(addresses: ["10.0.0.2/24"], peer(1, ["10.0.0.0/16"]))
        let wanted = try #require(decide(part, facts).tunnel)
        #expect(wanted.device.fwmark == 0)
        let changes = plan(from: facts.current, to: wanted)
        let mark = changes.firstIndex(of: .setDevice(DeviceChange(fwmark: 0)))
        let lastRule = changes.lastIndex {
            if case .removeRule = $0 { true } else { false }
        }
        #expect(try #require(lastRule) < #require(mark))
        part.interface.fwmark = 9
        #expect(decide(part, facts).tunnel?.device.fwmark == 9)
    }
}

@Suite struct MTUTests {
    private let dual = ["10.0.0.2/24", "fd00::2/64"]

    private func facts(_ paths: [String: UInt32]) -> HostFacts {
        var facts = HostFacts()
        for (text, mtu) in paths { facts.pathMTU[endpoint(text)] = mtu }
        facts.defaultRouteMTU = 9000
        return facts
    }

    @Test func case_C49_the_smallest_path_minus_80() {
        let file = file(
            addresses: dual, peer(1, endpoint: "192.0.2.1:1"), peer(2, endpoint: "192.0.2.2:1"),
            peer(3, endpoint: "192.0.2.3:1"))
        let paths: [String: UInt32] = ["192.0.2.1:1": 1500, "192.0.2.2:1": 1492]
        #expect(decide(file, facts(paths)).tunnel?.host.mtu == 1412)
        #expect(decide(file, facts([:])).tunnel?.host.mtu == 8920)
        #expect(decide(file).tunnel?.host.mtu == 1420)
        var fixed = file
        fixed.interface.mtu = 1300
        #expect(decide(fixed, facts(paths)).tunnel?.host.mtu == 1300)
    }

    @Test func case_C51_a_small_path_still_carries_ipv6() {
        let paths: [String: UInt32] = ["192.0.2.1:1": 1280]
        let six = decide(file(addresses: dual, peer(1, endpoint: "192.0.2.1:1")), facts(paths))
        #expect(six.tunnel?.host.mtu == 1280)
        #expect(kinds(six) == [.smallMTU])
        let four = decide(
            file(addresses: ["10.0.0.2/24"], peer(1, endpoint: "192.0.2.1:1")), facts(paths))
        #expect(four.tunnel?.host.mtu == 1200)
        #expect(four.issues == [])
    }

    @Test func case_C51_a_small_mtu_of_the_file_drops_ipv6_and_says_so() throws {
        let decision = decide(
            file(addresses: dual, peer(1, ["10.1.0.0/16", "fd01::/48"])) { $0.mtu = 1279 })
        let host = try #require(decision.tunnel).host
        #expect(host.addresses == [address("10.0.0.2/24")])
        #expect(host.routes == [Route(prefix("10.1.0.0/16"))])
        #expect(kinds(decision) == [.smallMTU])
        #expect(decision.issues.map(\.severity) == [.warning])
        _ = try made(decision.tunnel!)
        #expect(decide(file(addresses: dual) { $0.mtu = 1280 }).issues == [])
    }

    @Test func case_C51_no_ipv6_leaks_beside_a_full_tunnel_with_a_small_mtu() {
        let decision = decide(file(addresses: dual, peer(1, ["::/0"])) { $0.mtu = 1279 })
        #expect(decision.tunnel == nil)
        #expect(kinds(decision) == [.smallMTU])
    }
}
