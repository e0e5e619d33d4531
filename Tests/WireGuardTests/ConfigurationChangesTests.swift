// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import WireGuard

@Suite struct ConfigurationChangesTests {
    @Test func c23_c58_what_is_absent_is_left_and_not_zeroed() throws {
        let absent = try parse("[Interface]", lenient: true).configuration
        #expect(absent.deviceChange == DeviceChange())
        let zero = try parse(
            "[Interface]\nPrivateKey = \(key1)\nListenPort = 0\nFwMark = off"
        ).configuration
        #expect(
            zero.deviceChange
                == DeviceChange(privateKey: SecretKey(filledWith: 1), listenPort: 0, fwmark: 0))
        let text = String(decoding: absent.strip(), as: UTF8.self)
        #expect(text == "[Interface]\n")
    }

    @Test func c30_c31_only_names_are_resolved_and_one_that_fails_costs_the_endpoint_alone() throws
    {
        let names = ["10.0.0.1:1", "[fe80::1%eth0]:2", "good.example:3", "bad.example:4"]
        var text = "[Interface]\nPrivateKey = \(key1)\n"
        for (index, name) in names.enumerated() {
            text += "[Peer]\nPublicKey = \(PublicKey(filledWith: UInt8(index + 2)).base64)\n"
            text += "Endpoint = \(name)\nAllowedIPs = 10.0.\(index).0/24\nPersistentKeepalive = 0\n"
        }
        var asked: [String] = []
        let changes = try parse(text).configuration.peerChanges { host, port in
            asked.append("\(host):\(port)")
            return host.description == "good.example" ? Endpoint("10.9.9.9:\(port)") : nil
        }
        #expect(asked == ["good.example:3", "bad.example:4"])
        #expect(
            changes.map(\.endpoint) == [
                Endpoint("10.0.0.1:1"), Endpoint("[fe80::1%eth0]:2"), Endpoint("10.9.9.9:3"), nil,
            ])
        #expect(changes.map(\.keepalive) == [0, 0, 0, 0])
        #expect(changes.allSatisfy { $0.replaceAllowedIPs && !$0.remove && !$0.updateOnly })
        #expect(
            changes.map(\.prefixes) == (0..<4).map { [PrefixChange(prefix("10.0.\($0).0/24"))] })
        #expect(changes.allSatisfy { $0.presharedKey == nil })
    }

    @Test func c26_text_that_would_end_its_line_does_not_exist() {
        for text in ["", " a", "a ", "a\nPostUp = b", "a\rb", "a\0b", "a\u{1B}[2J", "a\u{9B}b"] {
            #expect(ConfigurationText(text) == nil)
        }
        #expect(Identifier("a b") == nil && Identifier("a#") == nil && Identifier("") == nil)
        for text in ["", "-a b", "a..b", ".a", "1.2.3.4", "0x10", "a.1", "a\nb"] {
            #expect(HostName(text) == nil, "\(text)")
        }
        let value = ConfigurationText("1")
        for name in ["MTU", "postup", "AllowedIP", "Listen-Port"] {
            #expect(UnknownSetting(name: Identifier(name)!, value: value) == nil, "\(name)")
        }
    }

    @Test func c93_a_kept_setting_does_not_print_its_value() {
        let setting = UnknownSetting(
            name: Identifier("Password")!, value: ConfigurationText("hunter2"))!
        #expect(!"\(setting)".contains("hunter2"))
        var dumped = ""
        dump(setting, to: &dumped)
        #expect(!dumped.contains("hunter2"))
    }
}
