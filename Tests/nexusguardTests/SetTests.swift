// SPDX-License-Identifier: Apache-2.0
import Testing
import WireGuard

@testable import nexusguard

private let one = "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08="

private func change(_ words: String) throws(Failure) -> SetChange {
    try SetChange(words.split(separator: " ").map(String.init)[...])
}

@Suite struct SetTests {
    @Test func settingsOfTheInterface() throws {
        let given = try change("listen-port 51820 fwmark 0xCA6c private-key /dev/null")
        #expect(given.device.listenPort == 51820)
        #expect(given.device.fwmark == 0xCA6C)
        #expect(given.device.privateKey?.isZero == true, "an empty file removes the key, as in wg")
        #expect(given.peers.isEmpty)
        #expect(try change("fwmark off").device.fwmark == 0)
        #expect(try change("fwmark 7").device == DeviceChange(fwmark: 7))
    }

    @Test func settingsOfPeers() throws {
        let given = try change(
            "peer \(one) endpoint [fe80::1%eth0]:5 persistent-keepalive OFF "
                + "preshared-key /dev/null allowed-ips 10.0.0.1/24,fd00::/8 peer \(one) remove")
        #expect(given.peers.count == 2)
        let peer = given.peers[0]
        #expect(peer.endpoint?.description == "[fe80::1%eth0]:5")
        #expect(peer.keepalive == 0)
        #expect(peer.presharedKey?.isZero == true)
        #expect(peer.replaceAllowedIPs)
        #expect(peer.prefixes.map(\.prefix.description) == ["10.0.0.0/24", "fd00::/8"])
        #expect(given.peers[1].remove)
        #expect(given.device == DeviceChange())
    }

    @Test func signedPrefixesAddAndRemove() throws {
        let peer = try change("peer \(one) allowed-ips +10.0.0.0/8,-fd00::/8").peers[0]
        #expect(!peer.replaceAllowedIPs)
        #expect(peer.prefixes.map(\.remove) == [false, true])
    }

    @Test func anEmptyListTakesAllPrefixes() throws {
        let peer = try SetChange(["peer", one, "allowed-ips", ""]).peers[0]
        #expect(peer.replaceAllowedIPs && peer.prefixes.isEmpty)
    }

    @Test(arguments: [
        "listen-port", "listen-port 70000", "listen-port -1", "fwmark 0x", "fwmark 0x123456789",
        "remove", "frobnicate 1", "peer", "peer AAAA", "peer \(one) listen-port 1",
        "peer \(one) endpoint 1.2.3.4", "peer \(one) endpoint example.net:1",
        "peer \(one) endpoint 1.2.3.4:0", "peer \(one) persistent-keepalive 25s",
        "peer \(one) allowed-ips 10.0.0.0/33", "peer \(one) allowed-ips 10.0.0.0/8,",
        "peer \(one) allowed-ips +10.0.0.0/8,11.0.0.0/8",
    ]) func refused(words: String) {
        let failure = #expect(throws: Failure.self) { try change(words) }
        #expect(failure?.code == ExitCode.usage)
    }

    @Test func case_C93_aMisplacedKeyIsNotRepeated() {
        let secret = "XasIfmJKikt54X+Lg4AO5m87sSkmGLb9HC+LJ/+I4O"
        let failure = #expect(throws: Failure.self) { try change("peer \(secret)") }
        #expect(failure?.message.contains("XasIfm") == false)
    }
}
