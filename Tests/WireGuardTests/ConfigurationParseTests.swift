// SPDX-License-Identifier: Apache-2.0
import TestSupport
import Testing

@testable import WireGuard

private let interface = "[Interface]\nPrivateKey = \(key1)\n"

private func diagnostics(_ text: String, lenient: Bool = false) -> [String] {
    thrown { () throws(ConfigurationError) in try parse(text, lenient: lenient) }?
        .diagnostics.map(\.description) ?? []
}

@Suite struct ConfigurationParseTests {
    @Test func every_setting_has_its_value() throws {
        let parsed = try parse(
            """
            # kept by nobody
            [Interface]
            PrivateKey = \(key1)
            ListenPort = 51820
            FwMark = 0xca6c
            Address = 10.0.0.1/24
            Address = fd00::1/64
            DNS = 10.0.0.53, lan, fd00::53
            MTU = 1420
            Table = off
            SaveConfig = false
            PreUp = one
            PostDown = two
            PostUp = three

            [Peer]
            # friendly_name=Anna's phone # 2
            # friendly_json={"id": 7}
            PublicKey = \(key2)
            # friendly_name=of the next one
            PresharedKey = \(key1)
            AllowedIPs = 10.0.0.2/32
            AllowedIPs = fd00::2/128
            Endpoint = vpn.example:51820
            PersistentKeepalive = 25
            """)
        var expected = ConfigurationFile()
        expected.interface.privateKey = SecretKey(filledWith: 1)
        expected.interface.listenPort = 51820
        expected.interface.fwmark = 0xCA6C
        expected.interface.addresses = [
            InterfaceAddress([UInt8]("10.0.0.1/24".utf8).span)!,
            InterfaceAddress([UInt8]("fd00::1/64".utf8).span)!,
        ]
        expected.interface.dnsServers = [
            DNSServer(address: IPAddress("10.0.0.53")!)!,
            DNSServer(address: IPAddress("fd00::53")!)!,
        ]
        expected.interface.searchDomains = [SearchDomain("lan")!]
        expected.interface.mtu = 1420
        expected.interface.table = .off
        expected.interface.saveConfig = false
        expected.interface.hooks = [
            .init(.preUp, ConfigurationText("one")!), .init(.postDown, ConfigurationText("two")!),
            .init(.postUp, ConfigurationText("three")!),
        ]
        var peer = ConfigurationFile.Peer(publicKey: PublicKey(filledWith: 2))
        peer.friendlyName = ConfigurationText("Anna's phone # 2")
        peer.friendlyJSON = ConfigurationText("{\"id\": 7}")
        peer.presharedKey = PresharedKey(filledWith: 1)
        peer.allowedIPs = [prefix("10.0.0.2/32"), prefix("fd00::2/128")]
        peer.endpoint = .host(HostName("vpn.example")!, port: 51820)
        peer.keepalive = 25
        expected.peers = [peer]
        #expect(parsed.configuration == expected)
        #expect(parsed.warnings.isEmpty)
    }

    @Test func c01_what_cannot_be_seen_is_shown() {
        #expect(
            diagnostics(interface + "\u{FEFF}[Peer]") == [
                "wg0.conf:3:1: neither a section nor a setting \"<BOM>[Peer]\"; "
                    + "write NAME = VALUE, or # before a comment"
            ])
        #expect(
            diagnostics("[Interface]\nPrivateKey = \u{A0}\(key1)") == [
                "wg0.conf:2:14: a character that is no part of a value \"<NBSP>\"; "
                    + "remove or retype it"
            ])
        #expect(
            diagnostics(interface + "Address = 10.0.0.1\u{200B}/8, \u{1B}[31m") == [
                "wg0.conf:3:11: not an address or prefix \"10.0.0.1<U+200B>/8\"; "
                    + "write ADDRESS or ADDRESS/LENGTH",
                "wg0.conf:3:24: not an address or prefix \"<U+001B>[31m\"; "
                    + "write ADDRESS or ADDRESS/LENGTH",
            ])
    }

    @Test func c01_utf16_is_named() {
        for bytes: [UInt8] in [[0xFF, 0xFE, 0x5B, 0], [0xFE, 0xFF, 0, 0x5B]] {
            let error = thrown { () throws(ConfigurationError) in
                try ConfigurationFile.parse(bytes.span, file: "f", lenient: true)
            }
            #expect(error?.diagnostics.map(\.cause) == [.utf16])
        }
    }

    @Test func c02_c25_a_hook_is_raw_text_without_the_carriage_return() throws {
        let parsed = try parse(
            interface + "PostUp =  iptables -A x  -m comment --comment \"a # b\";  echo a=b \t\r\n")
        #expect(
            parsed.configuration.interface.hooks.map(\.command.description) == [
                "iptables -A x  -m comment --comment \"a # b\";  echo a=b"
            ])
    }

    @Test func c25_bytes_that_are_not_utf8_are_not_repaired() {
        let text = [UInt8]((interface + "PostUp = x").utf8) + [0xFF]
        let error = thrown { () throws(ConfigurationError) in
            try ConfigurationFile.parse(text.span, file: "f")
        }
        #expect(error?.diagnostics.map(\.cause) == [.notUTF8])
        #expect(error?.diagnostics.first?.column == 10)
    }

    @Test func c03_an_empty_element_has_a_position() {
        #expect(
            diagnostics(interface + "[Peer]\nPublicKey = \(key2)\nAllowedIPs = 10.0.0.2/32, ,") == [
                "wg0.conf:5:27: nothing between commas; remove a comma",
                "wg0.conf:5:28: nothing between commas; remove a comma",
            ])
    }

    @Test func c07_slash_and_plus_in_a_key_mean_nothing() throws {
        let key = "/+" + PublicKey(filledWith: 9).base64.dropFirst(2)
        let parsed = try parse(interface + "[Peer]\nPublicKey=\(key)")
        #expect(parsed.configuration.peers.map(\.publicKey.base64) == [key])
    }

    @Test func c08_a_peer_that_is_commented_out_is_not_there() throws {
        let parsed = try parse(interface + "#[Peer]\n# PublicKey = \(key2)\n  # [Peer]\n")
        #expect(parsed.configuration.peers.isEmpty)
    }

    @Test func c13_both_peers_with_one_key_are_named() {
        let peer = "[Peer]\nPublicKey = \(key2)\n"
        #expect(
            diagnostics(interface + peer + "\n" + peer).first?.hasPrefix(
                "wg0.conf:6:1: a peer with the public key of the peer on line 3;") == true)
    }

    @Test func c14_c93_no_diagnostic_contains_a_key() {
        var random = SeededRandom(seed: 14)
        let key = PublicKey(bytes: random.key()).base64
        for text in [
            "PrivateKey = \(key.dropLast())", "PrivateKey = \(key)=", "PrivateKey \(key)",
            "PrivateKey\u{FF1D}\(key)", key, "\(key) = 1", "[\(key)]", "; PrivateKey = \(key)",
            "PrivateKey = \(key.prefix(20))\n\(key.dropFirst(20))", "ListenPort = \(key)",
            "ListenPort = 51820PrivateKey = \(key)", "Address = \(key)", "DNS = a,\(key)",
            "Privatkey = \(key)", "Secret = \(key)", "PostUp = \u{1}\(key)", "Table = \(key)",
            "PrivateKey = \(key)\nPrivateKey = \(key)", "AllowedIPs = \(key)",
            "PrivateKey: \(key)", "PrivateKey = x\(key.prefix(30)) \(key.dropFirst(30))",
        ] {
            for lenient in [false, true] {
                let error = thrown { () throws(ConfigurationError) in
                    try parse("[Interface]\n" + text, lenient: lenient)
                }
                hold(error != nil || lenient || text.hasPrefix("Secret"), text)
                for note in error?.diagnostics ?? [] {
                    hold(!sharesRun(note.description, with: key, of: 8), note.description)
                }
            }
        }
    }

    @Test func c14_c93_pieces_of_a_key_are_not_shown_either() {
        #expect(
            diagnostics(interface + "abcd efg hijk lmnop") == [
                "wg0.conf:3:1: neither a section nor a setting "
                    + "\"abcd efg (4 characters) (5 characters)\"; "
                    + "write NAME = VALUE, or # before a comment"
            ])
        #expect(
            diagnostics(interface + "ListenPort = 5x=secret") == [
                "wg0.conf:3:14: not a port \"5x\"; write a number from 0 to 65535"
            ])
    }

    @Test func c19_host_bits_are_cleared_and_said_once() throws {
        let parsed = try parse(
            interface + "[Peer]\nPublicKey = \(key2)\nAllowedIPs = 10.0.0.1/24, 10.1.0.1/24\n")
        #expect(
            parsed.configuration.peers[0].allowedIPs == [
                prefix("10.0.0.0/24"), prefix("10.1.0.0/24"),
            ])
        #expect(parsed.warnings.map(\.cause) == [.hostBits])
        #expect(parsed.warnings.map(\.text) == ["10.0.0.1/24"])
    }

    @Test func c39_a_prefix_of_two_peers_is_said() throws {
        let parsed = try parse(
            interface + "[Peer]\nPublicKey = \(key1)\nAllowedIPs = 10.0.0.0/8\n"
                + "[Peer]\nPublicKey = \(key2)\nAllowedIPs = 10.0.0.0/8\n")
        #expect(
            parsed.warnings.map(\.description) == [
                "wg0.conf:6:1: this peer takes a prefix from the peer on line 3 \"10.0.0.0/8\"; "
                    + "a prefix belongs to one peer only, remove it from the other"
            ])
    }

    @Test func c51_an_mtu_that_carries_no_ipv6_is_said() throws {
        let text = interface + "MTU = 1279\nAddress = "
        #expect(try parse(text + "fd00::1/64").warnings.map(\.cause) == [.smallMTU])
        #expect(try parse(text + "10.0.0.1/24").warnings.isEmpty)
    }

    @Test func c61_unknown_settings_are_kept_and_slips_are_not() throws {
        let parsed = try parse(
            interface + "Jc = 4 # x\nS1 =\n[Peer]\nPublicKey = \(key2)\nAdvancedSecurity = on")
        let name = { (text: String) in Identifier(text)! }
        #expect(
            parsed.configuration.interface.unknown == [
                UnknownSetting(name: name("Jc"), value: ConfigurationText("4 # x"))!,
                UnknownSetting(name: name("S1"), value: nil)!,
            ])
        #expect(
            parsed.configuration.peers[0].unknown == [
                UnknownSetting(name: name("AdvancedSecurity"), value: ConfigurationText("on"))!
            ])
        #expect(parsed.warnings.map(\.cause) == [.unknownName, .unknownName, .unknownName])
        for (slip, meant): (String, ConfigurationKey) in [
            ("PresharedKye", .presharedKey), ("AllowedIP", .allowedIPs), ("Adress", .address),
            ("PreSharedKeys", .presharedKey), ("Endpoints", .endpoint), ("MTUs", .mtu),
        ] {
            #expect(
                diagnostics(interface + slip + " = 1").first?.contains("write \(meant.name) if")
                    == true)
        }
    }

    @Test func all_errors_are_collected_up_to_a_limit() {
        let error = thrown { () throws(ConfigurationError) in
            try parse(interface + String(repeating: "MTU = x\n", count: 1000))
        }
        #expect(error?.diagnostics.count == ConfigurationParser.errorLimit)
        #expect(error?.omitted == 1000 - ConfigurationParser.errorLimit)
        #expect(error?.description.hasSuffix("and 968 more") == true)
    }

    @Test func a_file_above_the_limit_is_refused() {
        let text = [UInt8](repeating: 0x0A, count: ConfigurationFile.sizeLimit + 1)
        let error = thrown { () throws(ConfigurationError) in
            try ConfigurationFile.parse(text.span, file: "f")
        }
        #expect(error?.diagnostics.map(\.cause) == [.tooLarge])
    }

    @Test func c99_ten_thousand_peers_are_read() throws {
        var random = SeededRandom(seed: 99)
        var text = interface
        for index in 0..<10_000 {
            text += "[Peer]\nPublicKey = \(PublicKey(bytes: random.key()).base64)\n"
            text +=
                "AllowedIPs = 10.\(index >> 8).\(index & 255).0/24, fd00::\(String(index, radix: 16))\n"
        }
        let parsed = try parse(text)
        #expect(parsed.configuration.peers.count == 10_000)
        #expect(parsed.configuration.peers.allSatisfy { $0.allowedIPs.count == 2 })
        #expect(parsed.warnings.isEmpty)
    }
}

/// Whether `length` characters in a row of `secret` are in `text`.
func sharesRun(_ text: String, with secret: String, of length: Int) -> Bool {
    let (text, secret) = ([UInt8](text.utf8), [UInt8](secret.utf8))
    guard text.count >= length, secret.count >= length else { return false }
    let runs = Set((0...secret.count - length).map { Array(secret[$0..<$0 + length]) })
    return (0...text.count - length).contains { runs.contains(Array(text[$0..<$0 + length])) }
}
