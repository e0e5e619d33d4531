// SPDX-License-Identifier: Apache-2.0
// The part of a tunnel's table that translates addresses and leads answers back.
import TunnelPlan
import WireGuard

extension FirewallTable {
    static func gatewayChains(_ settings: FirewallSettings, _ link: String) -> [Chain] {
        let forwards = settings.forwards
        return [
            Chain(
                name: "lead", header: natHeader("prerouting", "dstnat"),
                rules: settings.ownAddresses.map { own($0, link) } + forwards.flatMap { lead($0) }),
            Chain(
                name: "hide", header: natHeader("postrouting", "srcnat"),
                rules: forwards.map { source($0, link) }
                    + (settings.masquerades ? [masquerade(link)] : [])),
            Chain(
                name: "arrive",
                header: "type filter hook prerouting priority mangle; policy accept;",
                rules: settings.answerMark.map { [note($0, link), markAnswer($0, link)] } ?? []),
            Chain(
                // The route of a packet of this host is asked for again when its mark changes
                // (nft(8), "CHAINS").
                name: "answer", header: "type route hook output priority mangle; policy accept;",
                rules: settings.answerMark.map { [markAnswer($0, nil)] } ?? []),
        ].filter { !$0.rules.isEmpty }
    }

    private static func natHeader(_ hook: String, _ priority: String) -> String {
        "type nat hook \(hook) priority \(priority); policy accept;"
    }

    // MARK: forwards

    private static func own(_ address: InterfaceAddress, _ link: String) -> Rule {
        let match = "iifname \(link) \(familyWord(address.address)) daddr \(address.address)"
        return Rule(text: "\(match) return", role: .own(address), landmarks: [match, " return"])
    }

    /// What is meant for an address of this host and one of the ports. What only passes through has
    /// another destination and goes on, whatever its port (C53).
    private static func lead(_ forward: PortForward) -> [Rule] {
        // Without a port in the rule the packet keeps its own.
        if forward.publicPort == forward.targetPort {
            return [
                lead(
                    forward, ports(forward.publicPort, forward.publicPortEnd), target(forward, nil))
            ]
        }
        // nft(8) has no distance between the two: each port is a rule.
        return (0...(forward.publicPortEnd - forward.publicPort)).map { offset in
            lead(
                forward, "\(forward.publicPort + offset)",
                target(forward, forward.targetPort + offset))
        }
    }

    private static func lead(_ forward: PortForward, _ ports: String, _ target: String) -> Rule {
        let family = forward.target.family == .v4 ? "ipv4" : "ipv6"
        let match = "\(forward.transport.rawValue) dport \(ports)"
        let action = "dnat \(familyWord(forward.target)) to \(target)"
        return Rule(
            text: "meta nfproto \(family) fib daddr type local \(match) \(action)",
            role: .forward(forward),
            landmarks: ["fib daddr type ", match, action])
    }

    private static func target(_ forward: PortForward, _ port: UInt16?) -> String {
        guard let port else { return "\(forward.target)" }
        return forward.target.family == .v6
            ? "[\(forward.target)]:\(port)" : "\(forward.target):\(port)"
    }

    /// The target answers to this host; or, where it is to see who asks, only those that ask from the
    /// tunnel too are hidden: their answers would go past this host (C52, C53).
    private static func source(_ forward: PortForward, _ link: String) -> Rule {
        let way = forward.keepsSource ? "iifname \(link) oifname \(link)" : "oifname \(link)"
        let asked = ports(forward.publicPort, forward.publicPortEnd)
        let address = "\(familyWord(forward.target)) daddr \(forward.target)"
        let dport =
            "\(forward.transport.rawValue) dport "
            + ports(forward.targetPort, forward.targetPortEnd)
        return Rule(
            text: "\(way) ct status dnat \(address) \(dport) ct original proto-dst \(asked) "
                + "masquerade",
            role: .source(forward),
            landmarks: [
                way, address, dport, "ct original proto-dst \(asked)", " masquerade",
            ])
    }

    private static func masquerade(_ link: String) -> Rule {
        let match = "iifname \(link) oifname != \(link)"
        return Rule(
            text: "\(match) masquerade", role: .masquerade, landmarks: [match, " masquerade"])
    }

    private static func ports(_ first: UInt16, _ last: UInt16) -> String {
        first == last ? "\(first)" : "\(first)-\(last)"
    }

    private static func familyWord(_ address: IPAddress) -> String {
        address.family == .v4 ? "ip" : "ip6"
    }

    // MARK: answers

    /// A connection that begins in the tunnel is known by its mark …
    private static func note(_ mark: UInt32, _ link: String) -> Rule {
        Rule(
            text: "iifname \(link) ct state new ct mark set \(mark)", role: .noteArrival(mark),
            landmarks: ["iifname \(link) ct state ", "ct mark set \(hexadecimal(mark))"])
    }

    /// … and a rule leads what answers it into the tunnel. `link`: of packets that come by another;
    /// nil: of this host's own.
    private static func markAnswer(_ mark: UInt32, _ link: String?) -> Rule {
        let way = link.map { "iifname != \($0) " } ?? ""
        return Rule(
            text: "\(way)ct direction reply ct mark \(mark) meta mark set \(mark)",
            role: .markAnswer(mark),
            landmarks: [
                "\(way)ct direction ",
                "ct mark \(hexadecimal(mark)) meta mark set \(hexadecimal(mark))",
            ])
    }
}
