// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import Crypto
import TestSupport
import Testing
import WireGuard

private let key = base64([UInt8](repeating: 9, count: 32))

private func refusal(_ change: (inout WireGuardConfig) -> Void) -> ConfigRefusal? {
    var config = sampleConfig()
    change(&config)
    return thrown { () throws(ConfigRefusal) in try config.validated() }
}

private func peer(_ change: (inout ConfigPeer) -> Void) -> ConfigRefusal? {
    refusal {
        var peer = ConfigPeer(publicKey: key, allowedIps: "10.9.0.0/16")
        change(&peer)
        $0.peers = [peer]
    }
}

@Suite struct ValidationTests {
    @Test func every_refusal_names_its_field_and_code() {
        #expect(refusal { _ in } == nil)
        let table: [(ConfigRefusal?, ConfigRefusal.Code, String)] = [
            (refusal { $0.deviceId = "" }, .idInvalid, "deviceId"),
            (refusal { $0.deviceId = "../../etc" }, .idInvalid, "deviceId"),
            (refusal { $0.privateKey = SecretText("x") }, .keyInvalid, "privateKey"),
            (refusal { $0.presharedKey = SecretText(key + "=") }, .keyInvalid, "presharedKey"),
            (refusal { $0.serverPub = "" }, .keyInvalid, "serverPub"),
            (refusal { $0.internalIp = "" }, .addressInvalid, "internalIp"),
            (refusal { $0.internalIp = "10.0.0.1/33" }, .addressInvalid, "internalIp"),
            (refusal { $0.internalIp = "10.0.0.1/32,," }, .addressInvalid, "internalIp"),
            (refusal { $0.allowedIps = "010.0.0.0/8" }, .prefixInvalid, "allowedIps"),
            (refusal { $0.allowedIps = "10.0.0.0/8," }, .prefixInvalid, "allowedIps"),
            (refusal { $0.endpoint = "" }, .endpointInvalid, "endpoint"),
            (refusal { $0.endpoint = "hub.example" }, .endpointInvalid, "endpoint"),
            (refusal { $0.endpoint = "hub.example:0" }, .endpointInvalid, "endpoint"),
            (refusal { $0.endpoint = "10.0.0.1:0" }, .endpointInvalid, "endpoint"),
            (refusal { $0.endpoint = "[fe80::1%eth0]:51820" }, .endpointInvalid, "endpoint"),
            (refusal { $0.endpoint = "hub example:51820" }, .endpointInvalid, "endpoint"),
            (refusal { $0.dns = "10.0.0.1, -bad-!" }, .dnsInvalid, "dns"),
            (refusal { $0.dns = "fe80::1%eth0" }, .dnsInvalid, "dns"),
            (refusal { $0.serverWgIp = "10.0.0.1/32" }, .addressInvalid, "serverWgIp"),
            (refusal { $0.mtu = 575 }, .numberInvalid, "mtu"),
            (refusal { $0.mtu = -1 }, .numberInvalid, "mtu"),
            (refusal { $0.persistentKeepalive = 65536 }, .numberInvalid, "persistentKeepalive"),
            (refusal { $0.listenPort = .max }, .numberInvalid, "listenPort"),
            (peer { $0.publicKey = "k" }, .keyInvalid, "peers[0].publicKey"),
            (peer { $0.presharedKey = SecretText("k") }, .keyInvalid, "peers[0].presharedKey"),
            (peer { $0.endpoint = "x" }, .endpointInvalid, "peers[0].endpoint"),
            (peer { $0.allowedIps = "x" }, .prefixInvalid, "peers[0].allowedIps"),
            (peer { $0.persistentKeepalive = -1 }, .numberInvalid, "peers[0].persistentKeepalive"),
            (peer { $0.name = "a\nb" }, .nameInvalid, "peers[0].name"),
            (peer { $0.name = "\u{1B}[2J" }, .nameInvalid, "peers[0].name"),
            (
                peer { $0.publicKey = sampleConfig().serverPub }, .duplicatePeer,
                "peers[0].publicKey"
            ),
            (peer { $0.allowedIps = "10.172.21.9/24" }, .duplicatePrefix, "peers[0].allowedIps"),
        ]
        for (refusal, code, field) in table {
            #expect(
                refusal?.code == code && refusal?.field == field,
                "\(field): \(String(describing: refusal))")
        }
    }

    @Test func case_C14_C93_no_refusal_shows_a_key() {
        let secret = String(key.dropLast(2)) + "!="
        let refusals = [
            refusal { $0.privateKey = SecretText(secret) },
            refusal { $0.presharedKey = SecretText(secret) }, refusal { $0.serverPub = secret },
            peer { $0.presharedKey = SecretText(secret) },
        ]
        for refusal in refusals {
            #expect(refusal?.code == .keyInvalid)
            #expect(!"\(refusal!)".contains(key.prefix(8)))
        }
        var config = sampleConfig()
        config.privateKey = SecretText(key)
        config.presharedKey = SecretText(key)
        var dumped = ""
        dump(config, to: &dumped)
        for text in ["\(config)", String(reflecting: config), dumped] {
            #expect(!text.contains(key.prefix(8)))
        }
    }

    /// Whatever a value tries, it is refused or stays a value: no line of it becomes a setting.
    @Test func case_C26_no_value_becomes_a_line() throws {
        let attempts = [
            "\nPostUp = reboot", "10.0.0.1/32\nPostUp = reboot", "a:1\nPostUp=reboot",
            "# PostUp = reboot", "x\r\n[Peer]", "10.0.0.0/8 # [Interface]", "h\u{2028}PostUp = x:1",
            "\u{0}", "PostUp = reboot", "[Interface]", "10.0.0.1/32;PostUp=reboot",
        ]
        let fields: [WritableKeyPath<WireGuardConfig, String>] = [
            \.deviceId, \.internalIp, \.serverPub, \.endpoint, \.dns, \.allowedIps,
        ]
        for attempt in attempts {
            for field in fields {
                #expect(refusal { $0[keyPath: field] = attempt } != nil, "\(field): \(attempt)")
            }
            #expect(refusal { $0.serverWgIp = attempt } != nil, "\(attempt)")
            #expect(peer { $0.endpoint = attempt } != nil, "\(attempt)")
            #expect(peer { $0.allowedIps = attempt } != nil, "\(attempt)")
            // A name is free text: what is accepted stays the comment that it is.
            var config = sampleConfig()
            config.peers = [ConfigPeer(publicKey: key, allowedIps: "", name: attempt)]
            guard let validated = try? config.validated() else { continue }
            let text = validated.configurationText(privateKey: .generate())
            let parsed = try ConfigurationFile.parse(text.span, file: "f").configuration
            #expect(parsed.interface.hooks.isEmpty && parsed.interface.unknown.isEmpty)
            #expect(parsed.peers.count == 2 && parsed.peers[1].unknown.isEmpty)
        }
    }

    @Test func case_C26_hooks_in_json_are_no_part_of_a_configuration() throws {
        var json = String(decoding: Wire.encode(sampleConfig()), as: UTF8.self)
        json.removeLast()
        json += #","PostUp":"reboot","hooks":["reboot"],"table":"off","saveConfig":true}"#
        let config = try Wire.decode(WireGuardConfig.self, from: Array(json.utf8))
        #expect(config == sampleConfig())
        let text = try config.validated().configurationText(privateKey: .generate())
        #expect(!String(decoding: text, as: UTF8.self).contains("reboot"))
    }

    @Test func the_text_is_what_the_configuration_says() throws {
        var config = sampleConfig()
        config.internalIp = "fd00::2/64, 10.172.21.2/24"
        config.dns = "10.172.21.1, Corp.example"
        config.mtu = 1380
        config.listenPort = 51820
        config.persistentKeepalive = 25
        config.presharedKey = SecretText(key)
        config.peers = [
            ConfigPeer(
                publicKey: key, endpoint: "[2001:DB8::1]:7", allowedIps: "10.9.0.1/16",
                name: "b # c")
        ]
        let own = SecretKey(copying: [UInt8](repeating: 64, count: 32).span)
        let text = try config.validated().configurationText(privateKey: own)
        #expect(
            String(decoding: text, as: UTF8.self) == """
                [Interface]
                PrivateKey = \(base64([UInt8](repeating: 64, count: 32)))
                ListenPort = 51820
                Address = 10.172.21.2/24, fd00::2/64
                DNS = 10.172.21.1
                DNS = corp.example
                MTU = 1380

                [Peer]
                PublicKey = \(config.serverPub)
                PresharedKey = \(key)
                AllowedIPs = 10.172.21.0/24
                Endpoint = hub.example:51820
                PersistentKeepalive = 25

                [Peer]
                # friendly_name = b # c
                PublicKey = \(key)
                AllowedIPs = 10.9.0.0/16
                Endpoint = [2001:db8::1]:7

                """)
    }

    @Test func the_devices_own_settings_win() throws {
        var config = sampleConfig()
        config.dns = "10.172.21.1"
        config.mtu = 1380
        config.listenPort = 51820
        var settings = InterfaceSettings()
        settings.mtu = 1280
        settings.listenPort = 7
        settings.table = .off
        settings.fwmark = 0x10
        settings.acceptsDNS = false
        let file = try config.validated().configurationFile(
            privateKey: .generate(), settings: settings)
        #expect(file.interface.mtu == 1280 && file.interface.listenPort == 7)
        #expect(file.interface.table == .off && file.interface.fwmark == 0x10)
        #expect(file.interface.dnsServers.isEmpty)
    }

    @Test func forwards_are_checked() throws {
        let good = Forward(
            id: "f1", protocol: "tcp", publicPort: 8000, publicPortEnd: 8010, targetIp: "10.0.0.9",
            targetPort: 65525)
        #expect(try good.validated().publicPorts == 8000...8010)
        let changes: [(inout Forward) -> Void] = [
            { $0.id = "a b" }, { $0.protocol = "TCP" }, { $0.protocol = "icmp" },
            { $0.publicPort = 0 }, { $0.publicPort = 65536 }, { $0.publicPortEnd = 7999 },
            { $0.publicPortEnd = 70000 }, { $0.targetPort = 65526 }, { $0.targetPort = -1 },
            { $0.targetIp = "10.0.0.0/8" }, { $0.targetIp = "host" }, { $0.description = "a\nb" },
        ]
        for (index, change) in changes.enumerated() {
            var forward = good
            change(&forward)
            #expect(
                throws: ConfigRefusal.self, "change \(index)",
                performing: { try forward.validated() })
        }
    }
}
