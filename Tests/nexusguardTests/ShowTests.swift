// SPDX-License-Identifier: Apache-2.0
// The expected texts were printed by wg 1.0.20210914 for a device with these values.
import Testing
import WireGuard

@testable import nexusguard

private func key(_ byte: UInt8) -> PublicKey { PublicKey(bytes: InlineArray(repeating: byte)) }
private func prefix(_ text: String) -> Prefix { Prefix(text)! }

private func peer(
    _ byte: UInt8, handshake: Int64 = 0, received: UInt64 = 0, sent: UInt64 = 0
) -> PeerSnapshot {
    var peer = PeerSnapshot(publicKey: key(byte))
    peer.lastHandshakeSeconds = handshake
    peer.receivedBytes = received
    peer.sentBytes = sent
    return peer
}

private func pretty(_ devices: DeviceSnapshot..., style: ShowStyle = ShowStyle()) -> String {
    let shown = devices.enumerated().map { ShownDevice(name: "wg\($0.offset)", device: $0.element) }
    return String(decoding: ShowText(shown, style: style).bytes, as: UTF8.self)
}

private func fullDevice() -> DeviceSnapshot {
    var device = DeviceSnapshot()
    device.privateKey = SecretKey(copying: [UInt8](repeating: 1, count: 32).span)
    device.publicKey = key(2)
    device.listenPort = 5001
    device.fwmark = 0xCA6C
    var first = peer(3)
    first.presharedKey = PresharedKey(copying: [UInt8](repeating: 4, count: 32).span)
    first.endpoint = Endpoint("1.2.3.4:5")
    first.prefixes = [prefix("10.0.0.0/24"), prefix("fd00::/64")]
    first.keepalive = 25
    device.peers = [first, peer(5)]
    return device
}

@Suite struct ShowTextTests {
    @Test func aWholeDevice() {
        #expect(
            pretty(fullDevice(), DeviceSnapshot()) == """
                interface: wg0
                  public key: \(key(2))
                  private key: (hidden)
                  listening port: 5001
                  fwmark: 0xca6c

                peer: \(key(3))
                  preshared key: (hidden)
                  endpoint: 1.2.3.4:5
                  allowed ips: 10.0.0.0/24, fd00::/64
                  persistent keepalive: every 25 seconds

                peer: \(key(5))
                  allowed ips: (none)

                interface: wg1

                """)
    }

    @Test func coloursAreThoseOfWg() {
        var style = ShowStyle()
        style.isColoured = true
        let text = pretty(fullDevice(), style: style).split(separator: "\n")
        #expect(text[0] == "\u{1B}[0m\u{1B}[32m\u{1B}[1minterface\u{1B}[0m: \u{1B}[32mwg0\u{1B}[0m")
        #expect(text[5] == "\u{1B}[33m\u{1B}[1mpeer\u{1B}[0m: \u{1B}[33m\(key(3))\u{1B}[0m")
        #expect(
            text[8]
                == "  \u{1B}[1mallowed ips\u{1B}[0m: 10.0.0.0\u{1B}[36m/\u{1B}[0m24, "
                + "fd00::\u{1B}[36m/\u{1B}[0m64")
        #expect(
            text[9]
                == "  \u{1B}[1mpersistent keepalive\u{1B}[0m: every 25 \u{1B}[36mseconds\u{1B}[0m")
    }

    @Test func keysAreShownOnlyWhenAsked() {
        var style = ShowStyle()
        #expect(!pretty(fullDevice(), style: style).contains("AQEBAQ"))
        style.hidesKeys = false
        let text = pretty(fullDevice(), style: style)
        #expect(text.contains("private key: AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=\n"))
        #expect(text.contains("preshared key: BAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ=\n"))
    }

    @Test(arguments: [
        (0, "Now"), (1, "1 second ago"), (60, "1 minute ago"), (120, "2 minutes ago"),
        (3661, "1 hour, 1 minute, 1 second ago"), (90_061, "1 day, 1 hour, 1 minute, 1 second ago"),
        (31_536_000, "1 year ago"), (63_072_002, "2 years, 2 seconds ago"),
        (-50, "(System clock wound backward; connection problems may ensue.)"),
    ]) func handshakeAges(age: Int64, text: String) {
        var device = DeviceSnapshot()
        device.peers = [peer(1, handshake: 1_796_024_308 - age)]
        var style = ShowStyle()
        style.now = 1_796_024_308
        #expect(pretty(device, style: style).contains("  latest handshake: \(text)\n"))
    }

    @Test func case_C79_noHandshakeIsNotNow() {
        var device = DeviceSnapshot()
        device.peers = [peer(1, handshake: 0)]
        #expect(!pretty(device).contains("latest handshake"))
    }

    @Test(arguments: [
        (0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (1025, "1.00 KiB"), (1536, "1.50 KiB"),
        (1152, "1.12 KiB"), (1_048_575, "1024.00 KiB"), (1_048_576, "1.00 MiB"),
        (1_073_741_823, "1024.00 MiB"), (1_073_741_824, "1.00 GiB"),
        (1_099_511_627_776, "1.00 TiB"), (1 << 63, "8388608.00 TiB"),
        (UInt64.max, "16777216.00 TiB"),
    ]) func amounts(bytes: UInt64, text: String) {
        var device = DeviceSnapshot()
        device.peers = [peer(1, received: bytes, sent: 1)]
        #expect(pretty(device).contains("  transfer: \(text) received, 1 B sent\n"))
    }

    @Test func theNewestHandshakeComesFirst() {
        var device = DeviceSnapshot()
        device.peers = [peer(1), peer(2, handshake: 5), peer(3, handshake: 9), peer(4)]
        device.peers[1].lastHandshakeNanoseconds = 1
        let order = pretty(device).split(separator: "\n").filter { $0.hasPrefix("peer") }
        #expect(order == [3, 2, 1, 4].map { (byte: UInt8) in "peer: \(key(byte))" })
    }
}

@Suite struct ShowLinesTests {
    private func lines(_ field: ShowField, all: Bool = false) -> [Substring] {
        let shown = [
            ShownDevice(name: "wg0", device: fullDevice()),
            ShownDevice(name: "wg1", device: DeviceSnapshot()),
        ]
        let bytes = ShowLines(all ? shown : [shown[0]], field, showsName: all).bytes
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    }

    @Test func dumpHasTabsAndEveryField() {
        let secret = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
        let preshared = "BAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ="
        #expect(
            lines(.dump, all: true) == [
                "wg0\t\(secret)\t\(key(2))\t5001\t0xca6c",
                "wg0\t\(key(3))\t\(preshared)\t1.2.3.4:5\t10.0.0.0/24,fd00::/64\t0\t0\t0\t25",
                "wg0\t\(key(5))\t(none)\t(none)\t(none)\t0\t0\t0\toff",
                "wg1\t(none)\t(none)\t0\toff",
            ])
    }

    @Test func fieldsOfPeers() {
        #expect(lines(.peers) == ["\(key(3))", "\(key(5))"])
        #expect(lines(.allowedIPs) == ["\(key(3))\t10.0.0.0/24 fd00::/64", "\(key(5))\t(none)"])
        #expect(lines(.transfer) == ["\(key(3))\t0\t0", "\(key(5))\t0\t0"])
        #expect(lines(.persistentKeepalive) == ["\(key(3))\t25", "\(key(5))\toff"])
        #expect(
            lines(.endpoints, all: true) == [
                "wg0\t\(key(3))\t1.2.3.4:5", "wg0\t\(key(5))\t(none)",
            ])
    }

    @Test func fieldsOfInterfaces() {
        #expect(lines(.listenPort, all: true) == ["wg0\t5001", "wg1\t0"])
        #expect(lines(.fwmark) == ["0xca6c"])
        #expect(lines(.publicKey) == ["\(key(2))"])
    }

    @Test func jsonHasNoKeys() {
        let text = String(
            decoding: showJSON([ShownDevice(name: "wg0", device: fullDevice())]), as: UTF8.self)
        #expect(!text.contains("AQEBAQ") && !text.contains("BAQEBA"))
        #expect(
            text == """
                {"schemaVersion":1,"interfaces":{"wg0":{"publicKey":"\(key(2))","hasPrivateKey":true,\
                "listenPort":5001,"fwmark":51820,"peers":{"\(key(3))":{"hasPresharedKey":true,\
                "endpoint":"1.2.3.4:5","transferRx":0,"transferTx":0,"persistentKeepalive":25,\
                "allowedIPs":["10.0.0.0/24","fd00::/64"]},"\(key(5))":{"hasPresharedKey":false,\
                "transferRx":0,"transferTx":0,"allowedIPs":[]}}}}}

                """)
    }
}
