// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import ControlAPI

private struct Group: Decodable {
    struct Text: Decodable { let title, json: String }
    let title, canonical, hash: String
    let texts: [Text]
}

@Suite struct HashTests {
    @Test func case_C19_configurations_that_mean_the_same_have_one_hash() throws {
        let groups: [Group] = try vectors("confighash.json")
        #expect(Set(groups.map(\.hash)).count == groups.count && groups.count >= 4)
        for group in groups {
            for text in group.texts {
                let config = try Wire.decode(WireGuardConfig.self, from: Array(text.json.utf8))
                let canonical = try config.validated().canonicalText
                #expect(canonical == Array(group.canonical.utf8), "\(group.title): \(text.title)")
                #expect(try configHash(config) == group.hash, "\(group.title): \(text.title)")
            }
        }
    }

    @Test func forwards_that_mean_the_same_have_one_hash() throws {
        let groups: [Group] = try vectors("forwardshash.json")
        #expect(Set(groups.map(\.hash)).count == groups.count && groups.count >= 2)
        for group in groups {
            for text in group.texts {
                let forwards = try Wire.decode([Forward].self, from: Array(text.json.utf8))
                #expect(try forwardsHash(forwards) == group.hash, "\(group.title): \(text.title)")
            }
        }
    }

    /// Each field counts: a change of any one changes the hash.
    @Test func every_field_counts() throws {
        let key = base64([UInt8](repeating: 7, count: 32))
        let changes: [(inout WireGuardConfig) -> Void] = [
            { _ in }, { $0.deviceId = "other" }, { $0.presharedKey = SecretText(key) },
            { $0.internalIp = "10.172.21.3/32" }, { $0.serverPub = key },
            { $0.endpoint = "hub.example:51821" }, { $0.dns = "10.0.0.1" },
            { $0.allowedIps = "10.172.21.0/25" }, { $0.allowedIps = "" },
            { $0.serverWgIp = "10.172.21.1" }, { $0.mtu = 1380 }, { $0.persistentKeepalive = 0 },
            { $0.persistentKeepalive = 25 }, { $0.listenPort = 0 },
            { $0.peers = [ConfigPeer(publicKey: key, allowedIps: "")] },
            { $0.peers = [ConfigPeer(publicKey: key, allowedIps: "", name: "n")] },
            { $0.peers = [ConfigPeer(publicKey: key, endpoint: "a:1", allowedIps: "")] },
            { $0.peers = [ConfigPeer(publicKey: key, allowedIps: "10.9.0.0/16")] },
            {
                $0.peers = [
                    ConfigPeer(publicKey: key, presharedKey: SecretText(key), allowedIps: "")
                ]
            },
            { $0.peers = [ConfigPeer(publicKey: key, allowedIps: "", persistentKeepalive: 1)] },
        ]
        var hashes: Set<String> = []
        for change in changes {
            var config = sampleConfig()
            change(&config)
            hashes.insert(try configHash(config))
        }
        #expect(hashes.count == changes.count)
    }
}
