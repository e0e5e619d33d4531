// SPDX-License-Identifier: Apache-2.0
import Testing
import TunnelPlan
import WireGuard

@testable import HostNetwork

private let wg0 = InterfaceName("wg0")!

private func settings(
    clamp: Bool = false, mark: UInt32? = nil, protect: [String] = []
) -> FirewallSettings {
    var settings = FirewallSettings()
    settings.clampsSegmentSize = clamp
    settings.fullTunnelMark = mark
    settings.protectedAddresses = protect.map { InterfaceAddress(Array($0.utf8).span)! }
    return settings
}

private let full = settings(clamp: true, mark: 51820, protect: ["10.0.0.2/24", "fd00::2/64"])

private func gateway() -> FirewallSettings {
    var gateway = FirewallSettings()
    gateway.forwards = [
        PortForward(.tcp, publicPort: 8443, target: IPAddress("10.0.0.9")!, targetPort: 443)!,
        PortForward(
            .tcp, publicPort: 9000, publicPortEnd: 9001, target: IPAddress("10.0.0.9")!,
            targetPort: 80)!,
        PortForward(
            .udp, publicPort: 5000, publicPortEnd: 5010, target: IPAddress("fd00::9")!,
            targetPort: 5000, keepsSource: true)!,
    ]
    gateway.ownAddresses = ["10.0.0.1/24", "fd00::1/64"].map {
        InterfaceAddress(Array($0.utf8).span)!
    }
    gateway.masquerades = true
    gateway.answerMark = 51821
    return gateway
}

/// What libnftables 1.0.6 printed of `full`, with the flags that Firewall sets.
private let recorded = """
    table inet nexusguard-wg0 { # handle 2
    \tcomment "nexusguard 8fdb7014ba4dcef"
    \tchain forward { # handle 1
    \t\ttype filter hook forward priority mangle; policy accept;
    \t\toifname "wg0" tcp flags 0x2 / 0x2,0x4 tcp option maxseg size set rt mtu comment "clamp" # handle 2
    \t\tiifname "wg0" tcp flags 0x2 / 0x2,0x4 tcp option maxseg size set rt mtu comment "clamp" # handle 3
    \t}

    \tchain protect { # handle 4
    \t\ttype filter hook prerouting priority raw; policy accept;
    \t\tiifname != "wg0" ip daddr 10.0.0.2 fib saddr type != 2 drop comment "protect 10.0.0.2/24" # handle 5
    \t\tiifname != "wg0" ip6 daddr fd00::2 fib saddr type != 2 drop comment "protect fd00::2/64" # handle 6
    \t}

    \tchain restore { # handle 7
    \t\ttype filter hook prerouting priority mangle; policy accept;
    \t\tmeta l4proto 17 ct mark 0x0000ca6c meta mark set 0x0000ca6c comment "restore 51820" # handle 8
    \t}

    \tchain save { # handle 9
    \t\ttype filter hook postrouting priority mangle; policy accept;
    \t\tmeta l4proto 17 meta mark 0x0000ca6c ct mark set meta mark comment "save 51820" # handle 10
    \t}
    }

    """

/// As above, of `gateway()`.
private let recordedGateway = """
    table inet nexusguard-wg0 { # handle 1
    \tcomment "nexusguard 7016d0cecfa6d448"
    \tchain lead { # handle 1
    \t\ttype nat hook prerouting priority dstnat; policy accept;
    \t\tiifname "wg0" ip daddr 10.0.0.1 return comment "own 10.0.0.1/24" # handle 2
    \t\tiifname "wg0" ip6 daddr fd00::1 return comment "own fd00::1/64" # handle 3
    \t\tmeta nfproto 2 fib daddr type 2 tcp dport 8443 dnat ip to 10.0.0.9:443 comment "forward tcp 8443-8443 10.0.0.9 443 masquerade" # handle 4
    \t\tmeta nfproto 2 fib daddr type 2 tcp dport 9000 dnat ip to 10.0.0.9:80 comment "forward tcp 9000-9001 10.0.0.9 80 masquerade" # handle 5
    \t\tmeta nfproto 2 fib daddr type 2 tcp dport 9001 dnat ip to 10.0.0.9:81 comment "forward tcp 9000-9001 10.0.0.9 80 masquerade" # handle 6
    \t\tmeta nfproto 10 fib daddr type 2 udp dport 5000-5010 dnat ip6 to fd00::9 comment "forward udp 5000-5010 fd00::9 5000 keep" # handle 7
    \t}

    \tchain hide { # handle 8
    \t\ttype nat hook postrouting priority srcnat; policy accept;
    \t\toifname "wg0" ct status 0x20 ip daddr 10.0.0.9 tcp dport 443 ct original proto-dst 8443 masquerade comment "source tcp 8443-8443 10.0.0.9 443 masquerade" # handle 9
    \t\toifname "wg0" ct status 0x20 ip daddr 10.0.0.9 tcp dport 80-81 ct original proto-dst 9000-9001 masquerade comment "source tcp 9000-9001 10.0.0.9 80 masquerade" # handle 10
    \t\tiifname "wg0" oifname "wg0" ct status 0x20 ip6 daddr fd00::9 udp dport 5000-5010 ct original proto-dst 5000-5010 masquerade comment "source udp 5000-5010 fd00::9 5000 keep" # handle 11
    \t\tiifname "wg0" oifname != "wg0" masquerade comment "masquerade" # handle 12
    \t}

    \tchain arrive { # handle 13
    \t\ttype filter hook prerouting priority mangle; policy accept;
    \t\tiifname "wg0" ct state 0x8 ct mark set 0x0000ca6d comment "note 51821" # handle 14
    \t\tiifname != "wg0" ct direction 1 ct mark 0x0000ca6d meta mark set 0x0000ca6d comment "answer 51821" # handle 15
    \t}

    \tchain answer { # handle 16
    \t\ttype route hook output priority mangle; policy accept;
    \t\tct direction 1 ct mark 0x0000ca6d meta mark set 0x0000ca6d comment "answer 51821" # handle 17
    \t}
    }

    """

struct FirewallTableTests {
    @Test func commandsReplaceTheTableInOneTransaction() {
        let table = FirewallTable(settings(clamp: true), for: wg0)
        #expect(
            table.commands(replacing: 7) == """
                delete table inet handle 7
                create table inet nexusguard-wg0 { comment "\(table.comment)"; }
                add chain inet nexusguard-wg0 forward { type filter hook forward priority mangle; policy accept; }
                add rule inet nexusguard-wg0 forward oifname "wg0" tcp flags & (syn | rst) == syn tcp option maxseg size set rt mtu comment "clamp"
                add rule inet nexusguard-wg0 forward iifname "wg0" tcp flags & (syn | rst) == syn tcp option maxseg size set rt mtu comment "clamp"

                """)
        #expect(!table.commands(replacing: nil).contains("delete"))
    }

    @Test func namesThatNftDoesNotKnowAreEncodedApart() {
        let names = ["wg0", "a=b", "a+b", "a.b", "a3db"].map {
            FirewallTable.name(for: InterfaceName($0)!)
        }
        #expect(
            names == [
                "nexusguard-wg0", "nexusguard-a/3db", "nexusguard-a/2bb", "nexusguard-a.b",
                "nexusguard-a3db",
            ])
    }

    @Test func hashFollowsEverySetting() {
        let all = [
            settings(), settings(clamp: true), settings(mark: 1), settings(mark: 2),
            settings(protect: ["10.0.0.2/24"]), settings(protect: ["10.0.0.2/32"]), full,
        ]
        #expect(Set(all.map { FirewallTable($0, for: wg0).comment }).count == all.count)
        #expect(
            FirewallTable(full, for: wg0).comment
                != FirewallTable(full, for: InterfaceName("wg1")!).comment)
    }
}

struct FirewallListingTests {
    @Test func settingsAreReadBackFromTheKernelsTable() {
        let listing = FirewallListing(recorded)
        #expect(listing.handle == 2)
        #expect(listing.isOurs)
        #expect(listing.settings == full)
        #expect(listing.shows(FirewallTable(full, for: wg0)))
        #expect(!listing.shows(FirewallTable(settings(clamp: true), for: wg0)))
    }

    @Test func aGatewaysSettingsAreReadBackToo() {
        let listing = FirewallListing(recordedGateway)
        #expect(listing.settings == gateway())
        #expect(listing.shows(FirewallTable(gateway(), for: wg0)))
        var other = gateway()
        other.forwards[0] = other.forwards[2]
        #expect(!listing.shows(FirewallTable(other, for: wg0)))
    }

    @Test(arguments: [
        ("fib daddr type 2 tcp dport 8443", "tcp dport 8443"), ("10.0.0.9:443", "10.0.0.8:443"),
        ("tcp dport 9001", "tcp dport 9002"), ("dnat ip6 to fd00::9", "dnat ip6 to fd00::8"),
        ("oifname != \"wg0\" masquerade", "oifname \"wg0\" masquerade"),
        ("iifname \"wg0\" ip daddr 10.0.0.1 return", "ip daddr 10.0.0.1 return"),
        ("80-81 ct original proto-dst 9000-9001", "80-81"),
        ("ct mark set 0x0000ca6d", "ct mark set 0x0000ca6c"),
        ("priority dstnat", "priority filter"),
        ("type route hook output", "type filter hook output"),
    ])
    func aChangeOfAGatewayIsSeen(_ old: String, _ new: String) throws {
        let start = try #require(recordedGateway.range(of: old))
        let listing = FirewallListing(recordedGateway.replacingCharacters(in: start, with: new))
        #expect(!listing.shows(FirewallTable(gateway(), for: wg0)), "\(old)")
    }

    @Test(
        arguments: [
            ("a rule exchanged under its comment", "fib saddr type != 2 drop", "accept"),
            ("a rule without its comment", " comment \"save 51820\"", ""),
            ("another mark restored", "meta mark set 0x0000ca6c", "meta mark set 0x00000001"),
            ("another link", "iifname != \"wg0\" ip daddr", "iifname != \"eth0\" ip daddr"),
            (
                "a policy", "forward priority mangle; policy accept",
                "forward priority mangle; policy drop"
            ),
            ("a table that sleeps", "\tchain forward", "\tflags dormant\n\tchain forward"),
            ("a set", "\tchain save", "\tset s {\n\t\ttype mark\n\t}\n\n\tchain save"),
            ("a rule at the end", "\t}\n}", "\t\tcounter drop # handle 99\n\t}\n}"),
            ("a chain more", "\tchain save", "\tchain x {\n\t}\n\n\tchain save"),
            ("another hash", "8fdb7014ba4dcef", "8fdb7014ba4dcee"),
        ])
    func changeIsSeen(_ name: String, _ old: String, _ new: String) throws {
        let start = try #require(recorded.range(of: old))
        let changed = recorded.replacingCharacters(in: start, with: new)
        let listing = FirewallListing(changed)
        #expect(listing.isOurs, "\(name)")
        #expect(!listing.shows(FirewallTable(full, for: wg0)), "\(name)")
        #expect(!listing.shows(FirewallTable(listing.settings, for: wg0)), "\(name)")
    }

    @Test func everyMissingLineIsSeen() {
        let lines = recorded.split(separator: "\n", omittingEmptySubsequences: false)
        for index in lines.indices where !lines[index].isEmpty && lines[index].contains("\t\t") {
            var rest = lines
            rest.remove(at: index)
            let listing = FirewallListing(rest.joined(separator: "\n"))
            #expect(!listing.shows(FirewallTable(listing.settings, for: wg0)), "\(lines[index])")
        }
    }

    @Test func foreignTableIsForeign() {
        for comment in ["", "\tcomment \"nexusguardian 1\"\n", "\tcomment \"\"\n"] {
            let listing = FirewallListing("table inet nexusguard-wg0 { # handle 4\n\(comment)}\n")
            #expect(!listing.isOurs)
            #expect(listing.handle == 4)
        }
    }

    @Test func nonsenseIsNotOurs() {
        let texts = [
            "", "}", "}}}}\n{", "# handle 1", "table inet x {", "chain a {\n\t}", "{\n{\n{",
        ]
        for text in texts {
            #expect(!FirewallListing(text).isOurs)
        }
    }
}

struct NFTablesEventTests {
    /// One netlink message of nf_tables: header, nfgenmsg, attribute 1 with a name.
    private func message(type: UInt16, attribute: UInt16 = 1, name: String) -> [UInt8] {
        let value = Array(name.utf8) + [0]
        let attributeLength = 4 + value.count
        var bytes = native(UInt16(attributeLength)) + native(attribute) + value
        while bytes.count % 4 != 0 { bytes.append(0) }
        let body = [1, 0, 0, 0] + bytes
        return native(UInt32(16 + body.count)) + native(type) + native(UInt16(0))
            + native(UInt32(0)) + native(UInt32(0)) + body
    }

    private func native<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
        var number = number
        return unsafe withUnsafeBytes(of: &number) { unsafe Array($0) }
    }

    private let newRule: UInt16 = 10 << 8 | 6  // NFNL_SUBSYS_NFTABLES, NFT_MSG_NEWRULE
    private let ours = Array("nexusguard-wg0".utf8)

    private func isNamed(_ datagram: [UInt8]) -> Bool {
        NFTablesEvents.name(ours, in: datagram.span)
    }

    @Test func onlyOurTableCounts() {
        let neighbours = ["nexusguard-wg", "nexusguard-wg01", "filter", ""].flatMap {
            message(type: newRule, name: $0)
        }
        #expect(!isNamed(neighbours))
        let all = neighbours + message(type: newRule, name: "nexusguard-wg0")
        #expect(isNamed(all))
    }

    @Test func otherSubsystemsAndAttributesDoNotCount() {
        let others =
            message(type: 1 << 8, name: "nexusguard-wg0")
            + message(type: newRule, attribute: 2, name: "nexusguard-wg0")
        #expect(!isNamed(others))
    }

    @Test func brokenLengthsAskForALook() {
        let whole = message(type: newRule, name: "filter")
        #expect(!isNamed(whole))
        var tooLong = whole
        tooLong.replaceSubrange(0..<4, with: native(UInt32(whole.count + 4)))
        #expect(isNamed(tooLong))
        var tooShort = whole
        tooShort.replaceSubrange(0..<4, with: native(UInt32(3)))
        #expect(isNamed(tooShort))
        var attribute = whole
        attribute.replaceSubrange(20..<22, with: native(UInt16(200)))
        #expect(isNamed(attribute))
        for length in 0..<whole.count {
            _ = isNamed(Array(whole[..<length]))
        }
    }
}

extension String {
    fileprivate func range(of text: String) -> Range<Index>? {
        var start = startIndex
        while start != endIndex {
            if self[start...].hasPrefix(text) {
                return start..<index(start, offsetBy: text.count)
            }
            formIndex(after: &start)
        }
        return nil
    }

    fileprivate func replacingCharacters(in range: Range<Index>, with text: String) -> String {
        String(self[..<range.lowerBound]) + text + String(self[range.upperBound...])
    }
}
