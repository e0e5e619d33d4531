// SPDX-License-Identifier: Apache-2.0
import Testing
import WireGuard

@testable import TunnelPlan

@Suite struct PlanDocumentTests {
    private func document() throws -> PlanDocument {
        var alice = peer(1, ["10.0.0.2/32", "0.0.0.0/0"], endpoint: "192.0.2.1:51820")
        alice.friendlyName = ConfigurationText("alice \"a\"")
        alice.presharedKey = preshared(9)
        alice.keepalive = 25
        let file = file(addresses: ["10.0.0.1/24"], alice) { $0.listenPort = 51820 }
        var old = PeerSnapshot(publicKey: key(2))
        old.prefixes = [prefix("10.0.0.9/32")]
        var before = TunnelState(backend: .userspace, device: DeviceSnapshot(), host: HostState())
        before.device.peers = [old]
        before.host.routes = [Route(prefix("10.8.0.0/16"))]
        before.host.isUp = true
        let decision = decide(file)
        return PlanDocument(
            name: wg0, changes: plan(from: before, to: decision.tunnel!), issues: decision.issues,
            configuration: file)
    }

    @Test func each_change_is_a_line() throws {
        #expect(
            try document().text == """
                ~ device private key (hidden); listening port 51820; fwmark 0xca6c
                + peer alice "a" preshared key (hidden); endpoint 192.0.2.1:51820; \
                persistent keepalive every 25 seconds; allowed ips 0.0.0.0/0, 10.0.0.2/32
                ~ mtu 1420
                + address 10.0.0.1/24
                ~ setting net.ipv4.conf.all.src_valid_mark = 1
                ~ firewall clamps the segment size; keeps mark 0xca6c; protects 10.0.0.1/24
                + route 0.0.0.0/0 table 51820
                + rule 32764 IPv4 table main suppress_prefixlength 0
                + rule 32765 IPv4 not fwmark 0xca6c table 51820
                - route 10.8.0.0/16
                - peer \(key(2).base64)

                """)
    }

    @Test func the_json_names_the_same_changes() throws {
        let json = String(decoding: try document().json(), as: UTF8.self)
        #expect(
            json.hasPrefix(
                #"{"schemaVersion":1,"interface":"wg0","issues":[],"changes":["#
                    + #"{"action":"change","object":"device","privateKey":"hidden","#
                    + #""listenPort":51820,"fwmark":51820},"#))
        #expect(
            json.contains(
                #""friendlyName":"alice \"a\"","presharedKey":"hidden","#
                    + #""endpoint":"192.0.2.1:51820","persistentKeepalive":25,"#
                    + #""allowedIpsAdded":["0.0.0.0/0","10.0.0.2/32"]}"#))
        #expect(
            json.hasSuffix(
                #"{"action":"remove","object":"route","destination":"10.8.0.0/16","table":254},"#
                    + #"{"action":"remove","object":"peer","publicKey":"\#(key(2).base64)"}]}"#))
    }

    @Test func case_C93_no_secret_is_in_it() throws {
        let document = try document()
        let json = String(decoding: document.json(), as: UTF8.self)
        for byte: UInt8 in [7, 9] {
            var secret: [UInt8] = []
            preshared(byte).appendBase64(to: &secret)
            var hexadecimal: [UInt8] = []
            preshared(byte).appendHex(to: &hexadecimal)
            for form in [secret, hexadecimal].map({ String(decoding: $0, as: UTF8.self) }) {
                #expect(!document.text.contains(form) && !json.contains(form))
            }
        }
    }

    @Test func a_peer_that_changes_says_what_comes_and_what_goes() {
        var change = PeerChange(publicKey: key(1))
        change.updateOnly = true
        change.presharedKey = preshared(0)
        change.keepalive = 0
        change.prefixes = [
            PrefixChange(prefix("10.0.0.3/32")), PrefixChange(prefix("10.0.0.2/32"), remove: true),
        ]
        let document = PlanDocument(name: wg0, changes: [.changePeer(change)])
        #expect(
            document.text == "~ peer \(key(1).base64) preshared key (none); "
                + "persistent keepalive off; + allowed ips 10.0.0.3/32; - allowed ips 10.0.0.2/32\n"
        )
    }

    @Test func issues_say_who_loses_what_and_what_to_do() {
        let issue = TunnelPlan.Issue(
            .warning, .sharedPrefix, "A and B both claim P", whoLoses: "A loses it", advice: "do C")
        #expect(issue.description == "warning: A and B both claim P; A loses it; do C")
        let json = PlanDocument(name: wg0, changes: [], issues: [issue]).json()
        #expect(
            String(decoding: json, as: UTF8.self)
                == #"{"schemaVersion":1,"interface":"wg0","issues":[{"severity":"warning","#
                + #""kind":"sharedPrefix","what":"A and B both claim P","#
                + #""whoLoses":"A loses it","advice":"do C"}],"changes":[]}"#)
    }
}
