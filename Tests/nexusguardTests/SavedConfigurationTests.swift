// SPDX-License-Identifier: Apache-2.0
import Testing
import WireGuard

@testable import nexusguard

private let one = PublicKey(bytes: InlineArray(repeating: 1))
private let two = PublicKey(bytes: InlineArray(repeating: 2))
private let secret = "XasIfmJKikt54X+Lg4AO5m87sSkmGLb9HC+LJ/+I4Os="

private func file(_ text: String) throws -> ConfigurationFile {
    let bytes = [UInt8](("[Interface]\nPrivateKey = \(secret)\n" + text).utf8)
    return try ConfigurationFile.parse(bytes.span, file: "a.conf").configuration
}

private func device(_ peers: PeerSnapshot...) -> DeviceSnapshot {
    var device = DeviceSnapshot()
    device.privateKey = SecretKey(copying: [UInt8](repeating: 9, count: 32).span)
    device.listenPort = 7
    device.peers = peers
    return device
}

@Suite struct SavedConfigurationTests {
    @Test func case_C61_whatTheFileAloneKnowsStays() throws {
        let before = try file(
            """
            Address = 10.0.0.1/24
            DNS = 10.0.0.2
            PostUp = echo a  b # c
            X-Tool = 7
            [Peer]
            # friendly_name = office
            PublicKey = \(one)
            X-Peer = 8
            """)
        let after = before.saving(device(PeerSnapshot(publicKey: one)))
        var expected = before
        expected.interface.privateKey = SecretKey(copying: [UInt8](repeating: 9, count: 32).span)
        expected.interface.listenPort = 7
        #expect(after == expected)
        #expect(after.interface.unknown.count == 1 && after.peers[0].unknown.count == 1)
    }

    @Test func peersAreThoseOfTheDevice() throws {
        var running = PeerSnapshot(publicKey: two)
        running.presharedKey = PresharedKey(copying: [UInt8](repeating: 3, count: 32).span)
        running.endpoint = Endpoint("192.0.2.1:5")
        running.keepalive = 25
        running.prefixes = [Prefix("10.0.0.0/8")!]
        let after = try file("[Peer]\nPublicKey = \(one)\n").saving(device(running))
        #expect(after.peers.map(\.publicKey) == [two])
        #expect(after.peers[0].presharedKey == running.presharedKey)
        #expect(after.peers[0].endpoint == .address(running.endpoint!))
        #expect(after.peers[0].keepalive == 25)
        #expect(after.peers[0].allowedIPs == running.prefixes)
    }

    @Test func aPeerThatWasChangedIsSavedSo() throws {
        let before = try file(
            """
            [Peer]
            PublicKey = \(one)
            PresharedKey = \(secret)
            PersistentKeepalive = 25
            AllowedIPs = 10.0.0.0/8, 11.0.0.0/8
            """)
        let after = before.saving(device(PeerSnapshot(publicKey: one)))
        #expect(after.peers[0].presharedKey == nil)
        #expect(after.peers[0].keepalive == 0)
        #expect(after.peers[0].allowedIPs.isEmpty)
    }

    @Test func case_C27_theNameOfAHostStays() throws {
        var running = PeerSnapshot(publicKey: one)
        running.endpoint = Endpoint("192.0.2.1:5")
        let named = try file("[Peer]\nPublicKey = \(one)\nEndpoint = example.net:5\n")
        #expect(named.saving(device(running)).peers[0].endpoint == named.peers[0].endpoint)
        let literal = try file("[Peer]\nPublicKey = \(one)\nEndpoint = 192.0.2.9:5\n")
        #expect(literal.saving(device(running)).peers[0].endpoint == .address(running.endpoint!))
        let silent = literal.saving(device(PeerSnapshot(publicKey: one)))
        #expect(silent.peers[0].endpoint == literal.peers[0].endpoint, "not learned yet")
    }

    @Test(arguments: [
        ("", nil), ("Table = off\n", 51820), ("FwMark = 1\n", 51820),
    ]) func theMarkChosenForAFullTunnelIsNotWrittenDown(setting: String, mark: UInt32?) throws {
        let before = try file(setting + "[Peer]\nPublicKey = \(one)\nAllowedIPs = 0.0.0.0/0\n")
        var running = PeerSnapshot(publicKey: one)
        running.prefixes = [Prefix("0.0.0.0/0")!]
        var device = device(running)
        device.fwmark = 51820
        #expect(before.saving(device).interface.fwmark == mark)
    }

    @Test func case_C23_aDeviceWithoutKeyDoesNotTakeTheFiles() throws {
        let before = try file("")
        #expect(before.saving(DeviceSnapshot()).interface.privateKey == before.interface.privateKey)
    }
}
