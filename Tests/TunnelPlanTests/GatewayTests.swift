// SPDX-License-Identifier: Apache-2.0
import Testing
import WireGuard

@testable import TunnelPlan

private func forward(
    _ port: UInt16, _ transport: PortForward.Transport = .tcp, to target: String,
    _ targetPort: UInt16 = 443, end: UInt16? = nil, keepsSource: Bool = false
) -> PortForward {
    PortForward(
        transport, publicPort: port, publicPortEnd: end, target: IPAddress(target)!,
        targetPort: targetPort, keepsSource: keepsSource)!
}

private func decide(
    _ forwards: [PortForward] = [], addresses: [String] = ["10.0.0.1/24"],
    allowed: [String] = ["10.0.0.2/32", "10.1.0.0/16"], facts: HostFacts = HostFacts(),
    change: (inout Gateway) -> Void = { _ in }
) -> TunnelDecision {
    var options = TunnelOptions()
    options.gateway.forwards = forwards
    change(&options.gateway)
    let file = file(addresses: addresses, peer(1, allowed)) { $0.listenPort = 51820 }
    return DesiredTunnel.from(configuration: file, name: wg0, facts: facts, options: options)
}

@Suite struct PortForwardTests {
    @Test func portsThatDoNotFitAreNoForward() {
        let target = IPAddress("10.0.0.2")!
        func make(_ first: UInt16, _ last: UInt16, _ port: UInt16) -> PortForward? {
            PortForward(
                .tcp, publicPort: first, publicPortEnd: last, target: target, targetPort: port)
        }
        #expect(make(0, 1, 1) == nil)
        #expect(make(1, 1, 0) == nil)
        #expect(make(5, 4, 5) == nil)
        #expect(make(1, 65535, 1) != nil)
        #expect(make(1, 2, 65535) == nil)
        #expect(make(1, 1, 65535) != nil)
        #expect(make(1, 1024, 2) != nil)
        #expect(make(1, 1025, 2) == nil)
    }

    @Test func wordsReadBack() {
        for forward in [
            forward(8443, to: "10.1.2.3"),
            forward(5000, .udp, to: "fd00::2", 6000, end: 5010, keepsSource: true),
        ] {
            #expect(PortForward(words: forward.words) == forward)
        }
        for words in [
            "", "tcp 1-1 10.0.0.1 1", "tcp 1 10.0.0.1 1 keep", "sctp 1-1 10.0.0.1 1 keep",
            "tcp 1-1 10.0.0.1 1 drop", "tcp 1-1 10.0.0.1/8 1 keep", "tcp 2-1 10.0.0.1 1 keep",
            "tcp 1-1  10.0.0.1 1 keep",
        ] {
            #expect(PortForward(words: words) == nil, "\(words)")
        }
    }

    @Test func peopleReadAnArrow() {
        #expect("\(forward(8443, to: "10.1.2.3"))" == "tcp 8443 → 10.1.2.3:443")
        #expect(
            "\(forward(5000, .udp, to: "fd00::2", 6000, end: 5010, keepsSource: true))"
                == "udp 5000-5010 → [fd00::2]:6000-6010 keeping the source")
    }
}

@Suite struct GatewayTests {
    @Test func forwardsBecomePartOfTheFirewallAndTheKernelMayForward() throws {
        let both = [forward(9000, to: "10.1.2.3"), forward(8443, to: "10.0.0.2")]
        let host = try #require(decide(both).tunnel).host
        #expect(host.firewall?.forwards == [both[1], both[0]])
        #expect(host.firewall?.ownAddresses == [address("10.0.0.1/24")])
        #expect(host.firewall?.clampsSegmentSize == true)
        #expect(host.settings == [.forwardsIPv4: 1])
        #expect(decide(both).issues.isEmpty)
    }

    @Test func withoutAnyNothingIsAdded() throws {
        let host = try #require(decide().tunnel).host
        #expect(host.settings.isEmpty)
        #expect(host.firewall?.ownAddresses == [])
    }

    @Test func masqueradingAllowsTheFamiliesThatAreCarried() throws {
        let six = decide(addresses: ["10.0.0.1/24", "fd00::1/64"]) { $0.masquerades = true }
        let host = try #require(six.tunnel).host
        #expect(host.firewall?.masquerades == true)
        #expect(host.settings == [.forwardsIPv4: 1, .forwardsIPv6: 1])
        let four = decide { $0.forwardsBetweenPeers = true }
        #expect(try #require(four.tunnel).host.settings == [.forwardsIPv4: 1, .sendsRedirects: 0])
        #expect(try #require(four.tunnel).host.firewall?.masquerades == false)
    }

    @Test(arguments: [
        // One port for two.
        [forward(8000, to: "10.0.0.2", 8000, end: 8010), forward(8010, to: "10.0.0.2")],
        // The tunnel's own.
        [forward(51800, .udp, to: "10.0.0.2", 51800, end: 51900)],
        [forward(1, to: "127.0.0.1")], [forward(1, to: "0.0.0.0")], [forward(1, to: "224.0.0.1")],
        [forward(1, to: "::1")], [forward(1, to: "ff02::1")], [forward(1, to: "fe80::1")],
        // This host itself.
        [forward(1, to: "10.0.0.1")],
    ])
    func whatCannotBeForwardedIsRefused(_ forwards: [PortForward]) {
        #expect(decide(forwards).tunnel == nil)
    }

    @Test func otherTransportsAndFamiliesMayShareAPort() {
        let forwards = [
            forward(8000, to: "10.0.0.2"), forward(8000, .udp, to: "10.0.0.2"),
            forward(8000, to: "fd00::2"), forward(51820, to: "10.0.0.2"),
        ]
        let decision = decide(
            forwards, addresses: ["10.0.0.1/24", "fd00::1/64"],
            allowed: ["10.0.0.2/32", "fd00::/64"])
        #expect(decision.issues.isEmpty)
    }

    @Test func aTargetThatNoPeerIsAllowedIsToldOf() {
        let decision = decide([forward(1, to: "192.0.2.1")])
        #expect(decision.tunnel != nil)
        #expect(decision.issues.map(\.kind) == [.forwardTarget])
    }

    /// Masquerading needs an address to hide behind (C52).
    @Test func case_C52_without_an_address_the_source_has_to_be_kept() {
        let allowed = ["fd00::2/128"]
        #expect(decide([forward(1, to: "fd00::2")], allowed: allowed).tunnel == nil)
        #expect(
            decide([forward(1, to: "fd00::2", keepsSource: true)], allowed: allowed).tunnel != nil)
    }

    @Test func case_C52_answers_have_a_table_of_their_own() throws {
        var facts = HostFacts()
        facts.tablesInUse = [52820]
        facts.rulePriorities = [.v4: [0, 5000, 32766]]
        let decision = decide(allowed: ["0.0.0.0/0"], facts: facts) {
            $0.answersThroughTunnel = true
        }
        let tunnel = try #require(decision.tunnel)
        // 51820 is the mark of the full tunnel's own datagrams.
        #expect(tunnel.device.fwmark == 51820)
        #expect(tunnel.host.firewall?.answerMark == 52821)
        let rule = try #require(tunnel.host.rules.first { $0.isOfAnswers })
        #expect(rule.table == 52821)
        #expect(tunnel.host.rules.allSatisfy { $0 == rule || $0.priority > rule.priority })
        #expect(tunnel.host.routes.contains(Route(prefix("0.0.0.0/0"), table: 52821)))
        // What was chosen stays chosen.
        var model = TunnelModel()
        try model.apply(plan(from: nil, to: tunnel))
        facts.current = model.state
        facts.rulePriorities = [.v4: [rule.priority]]
        facts.tablesInUse = [51820, 52820, 52821]
        facts.current?.host.firewall = nil
        let again = decide(allowed: ["0.0.0.0/0"], facts: facts) { $0.answersThroughTunnel = true }
        #expect(again.tunnel?.host == tunnel.host)
    }

    @Test func case_C52_who_sends_from_few_addresses_needs_no_table() throws {
        let tunnel = try #require(decide { $0.answersThroughTunnel = true }.tunnel)
        #expect(tunnel.host.rules.isEmpty)
        #expect(tunnel.host.firewall?.answerMark == nil)
    }

    @Test func aPlanNamesEachForwardThatComesOrGoes() throws {
        let old = forward(8443, to: "10.0.0.2")
        let new = forward(9000, to: "10.1.2.3")
        var model = TunnelModel()
        try model.apply(plan(from: nil, to: try #require(decide([old]).tunnel)))
        let changes = plan(from: model.state, to: try #require(decide([new]).tunnel))
        var document = PlanDocument(name: wg0, changes: changes)
        document.formerForwards = [old]
        #expect(
            document.text == """
                ~ firewall clamps the segment size; 1 forwards
                + forward tcp 9000 → 10.1.2.3:443
                - forward tcp 8443 → 10.0.0.2:443

                """)
        #expect(
            String(decoding: document.json(), as: UTF8.self).contains(
                #""forwards":[{"protocol":"tcp","publicPort":9000,"publicPortEnd":9000,"#
                    + #""target":"10.1.2.3","targetPort":443,"keepsSource":false}]"#))
    }
}
