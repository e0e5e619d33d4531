// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import WireGuard

@Suite struct UAPISetTests {
    let device = MemoryDevice()

    /// Sends one set operation; the lines end with the blank one.
    private func set(_ lines: String...) -> String {
        converse("set=1\n" + lines.map { $0 + "\n" }.joined() + "\n", with: device).output
    }

    @Test func device_keys_apply_one_by_one_in_order() {
        let answer = set("private_key=\(hex(1))", "listen_port=51820", "fwmark=51966")
        #expect(answer == "errno=0\n\n")
        #expect(
            device.deviceChanges == [
                DeviceChange(privateKey: SecretKey(filledWith: 1)), DeviceChange(listenPort: 51820),
                DeviceChange(fwmark: 51966),
            ])
    }

    @Test func zeros_remove_the_private_key_and_the_mark() {
        #expect(set("private_key=\(hex(1))", "fwmark=7") == "errno=0\n\n")
        #expect(device.state.privateKey != nil)
        #expect(set("private_key=\(hex(0))", "fwmark=0") == "errno=0\n\n")
        #expect(device.state.privateKey == nil)
        #expect(device.state.fwmark == 0)
    }

    @Test func c15_a_mark_is_decimal_or_hexadecimal_with_either_x() {
        for (text, mark) in [
            ("0xca6c", 51820), ("0XCA6C", 51820), ("10", 10), ("0xffffffff", 1 << 32 - 1),
        ] {
            #expect(set("fwmark=\(text)") == "errno=0\n\n")
            #expect(device.state.fwmark == UInt32(mark))
        }
        for text in ["0x", "0x100000000", "4294967296", "-1", "off", "", "0x1g"] {
            #expect(set("fwmark=\(text)") == "errno=-22\n\n")
        }
    }

    @Test func every_peer_key_reaches_the_device() {
        let answer = set(
            "public_key=\(hex(2))", "update_only=true", "preshared_key=\(hex(3))",
            "endpoint=[2001:db8::1]:51820", "persistent_keepalive_interval=25",
            "replace_allowed_ips=true", "allowed_ip=10.0.0.1/24", "allowed_ip=-10.1.0.0/16",
            "protocol_version=1", "public_key=\(hex(4))", "remove=true")
        #expect(answer == "errno=0\n\n")
        var first = PeerChange(publicKey: PublicKey(filledWith: 2))
        first.updateOnly = true
        first.presharedKey = PresharedKey(filledWith: 3)
        first.endpoint = Endpoint("[2001:db8::1]:51820")
        first.keepalive = 25
        first.replaceAllowedIPs = true
        first.prefixes = [
            PrefixChange(prefix("10.0.0.0/24")), PrefixChange(prefix("10.1.0.0/16"), remove: true),
        ]
        var second = PeerChange(publicKey: PublicKey(filledWith: 4))
        second.remove = true
        #expect(device.peerChanges == [first, second])
    }

    @Test func prefixes_before_replace_allowed_ips_are_replaced_too() {
        #expect(
            set(
                "public_key=\(hex(2))", "allowed_ip=10.0.0.0/8", "replace_allowed_ips=true",
                "allowed_ip=::/0") == "errno=0\n\n")
        #expect(device.peerChanges.map(\.prefixes) == [[PrefixChange(prefix("::/0"))]])
    }

    @Test func replace_peers_keeps_the_named_and_removes_the_others_at_the_end() {
        #expect(set("public_key=\(hex(1))", "public_key=\(hex(2))") == "errno=0\n\n")
        #expect(
            set(
                "replace_peers=true", "replace_peers=true", "public_key=\(hex(2))",
                "public_key=\(hex(3))")
                == "errno=0\n\n")
        #expect(device.state.peers.map(\.publicKey) == [2, 3].map { PublicKey(filledWith: $0) })
        #expect((device.commits, device.aborts) == (1, 0))
        #expect(set("replace_peers=true") == "errno=0\n\n")
        #expect(device.state.peers.isEmpty)
    }

    /// The reference's errno for each kind of bad line (device/uapi.go).
    @Test(arguments: [
        ("novalue", 71), ("=", 22), ("unknown=1", 22), ("Listen_port=1", 22),
        ("listen_port =1", 22),
        ("private_key=", 22), ("private_key=00", 22), ("listen_port=65536", 22),
        ("listen_port=", 22),
        ("listen_port=-1", 22), ("listen_port= 1", 22), ("replace_peers=false", 22),
        ("replace_peers=1", 22), ("public_key=", 22), ("public_key=zz", 22), ("get=1", 22),
        ("allowed_ip=10.0.0.0/8", 22), ("remove=true", 22), ("protocol_version=1", 22),
        ("errno=0", 22),
    ]) func a_bad_device_line_is_answered_as_the_reference_does(line: String, errno: Int) {
        let (output, mustClose) = converse("set=1\n\(line)\n\n", with: device)
        #expect(output == "errno=-\(errno)\n\n")
        #expect(mustClose)
        #expect(device.deviceChanges.isEmpty && device.peerChanges.isEmpty)
    }

    @Test(arguments: [
        ("novalue", 71), ("unknown=1", 22), ("private_key=" + hex(1), 22), ("listen_port=1", 22),
        ("fwmark=1", 22), ("replace_peers=true", 22), ("update_only=false", 22), ("remove=1", 22),
        ("replace_allowed_ips=yes", 22), ("preshared_key=", 22), ("endpoint=192.0.2.1", 22),
        ("endpoint=", 22), ("endpoint=example.com:1", 22),
        ("persistent_keepalive_interval=65536", 22),
        ("persistent_keepalive_interval=off", 22), ("allowed_ip=10.0.0.0", 22), ("allowed_ip=", 22),
        ("allowed_ip=-", 22), ("allowed_ip=--10.0.0.0/8", 22), ("allowed_ip=+10.0.0.0/8", 22),
        ("allowed_ip=10.0.0.0/33", 22), ("protocol_version=2", 22), ("protocol_version=", 22),
        ("protocol_version=10", 22),
    ]) func a_bad_peer_line_keeps_what_came_before_it(line: String, errno: Int) {
        let (output, mustClose) = converse(
            "set=1\npublic_key=\(hex(2))\nallowed_ip=10.0.0.0/8\n\(line)\nallowed_ip=11.0.0.0/8\n"
                + "public_key=\(hex(3))\n\n", with: device)
        #expect(output == "errno=-\(errno)\n\n")
        #expect(mustClose)
        var applied = PeerChange(publicKey: PublicKey(filledWith: 2))
        applied.prefixes = [PrefixChange(prefix("10.0.0.0/8"))]
        #expect(device.peerChanges == [applied])
    }

    @Test func a_bad_line_aborts_a_replacement_and_removes_nobody() {
        #expect(set("public_key=\(hex(1))") == "errno=0\n\n")
        let answer = set("replace_peers=true", "public_key=\(hex(2))", "unknown=1")
        #expect(answer == "errno=-22\n\n")
        #expect(device.state.peers.map(\.publicKey) == [1, 2].map { PublicKey(filledWith: $0) })
        #expect((device.commits, device.aborts) == (0, 1))
        #expect(!device.isReplacingPeers)
    }

    @Test func c86_a_port_in_use_is_told_and_ends_the_operation() {
        device.portsInUse = [53]
        let (output, mustClose) = converse(
            "set=1\nfwmark=1\nlisten_port=53\nfwmark=2\n\n", with: device)
        #expect(output == "errno=-98\n\n")
        #expect(mustClose)
        #expect(device.state.fwmark == 1)
    }

    @Test func the_device_refusing_a_peer_ends_the_operation() {
        device.failure = (1, UAPIError(errno: 12))
        let answer = set("public_key=\(hex(1))", "public_key=\(hex(2))", "public_key=\(hex(3))")
        #expect(answer == "errno=-12\n\n")
        #expect(device.state.peers.map(\.publicKey) == [PublicKey(filledWith: 1)])
    }

    @Test func a_refusal_of_the_last_peer_leaves_the_connection_usable() {
        device.failure = (0, UAPIError(errno: 12))
        let (output, mustClose) = converse(
            "set=1\nreplace_peers=true\npublic_key=\(hex(1))\n\nset=1\nlisten_port=7\n\n",
            with: device)
        #expect(output == "errno=-12\n\nerrno=0\n\n")
        #expect(!mustClose)
        #expect((device.aborts, device.state.listenPort) == (1, 7))
    }

    @Test func own_public_key_as_a_peer_is_no_error() {
        device.state.publicKey = PublicKey(filledWith: 9)
        #expect(set("public_key=\(hex(9))", "allowed_ip=10.0.0.0/8") == "errno=0\n\n")
        #expect(device.state.peers.isEmpty)
    }

    @Test func carriage_returns_within_an_operation_are_dropped_as_the_reference_does() {
        let (output, mustClose) = converse("set=1\nlisten_port=7\r\n\r\n", with: device)
        #expect(output == "errno=0\n\n")
        #expect(!mustClose && device.state.listenPort == 7)
    }

    @Test func a_line_of_the_limit_is_read_and_a_longer_one_refused() {
        let padding = String(repeating: "0", count: LineAssembler.limit - "listen_port=7".count)
        #expect(set("listen_port=\(padding)7") == "errno=0\n\n")
        #expect(device.state.listenPort == 7)
        #expect(set("listen_port=\(padding)08") == "errno=-5\n\n")
        #expect(device.state.listenPort == 7)
        #expect(
            converse(String(repeating: "x", count: 5000), with: device).output == "errno=-71\n\n")
    }

    @Test func another_clients_replacement_is_not_joined() {
        var first = UAPIConnection()
        var second = UAPIConnection()
        first.receive(
            [UInt8]("set=1\nreplace_peers=true\npublic_key=\(hex(1))\n".utf8), device: device)
        second.receive([UInt8]("set=1\npublic_key=\(hex(2))\n\n".utf8), device: device)
        #expect(second.takeOutput() == [UInt8]("errno=-16\n\n".utf8))
        second.receive([UInt8]("set=1\nreplace_peers=true\n\n".utf8), device: device)
        #expect(second.takeOutput() == [UInt8]("errno=-16\n\n".utf8))
        #expect(device.isReplacingPeers && device.aborts == 0)
        first.receive([UInt8]("\n".utf8), device: device)
        #expect(first.takeOutput() == [UInt8]("errno=0\n\n".utf8))
        #expect(device.state.peers.map(\.publicKey) == [PublicKey(filledWith: 1)])
    }

    @Test func c99_ten_thousand_peers_in_one_operation_all_arrive() {
        var lines = "set=1\nreplace_peers=true\n"
        for number in 0..<10_000 {
            let key = String(repeating: "0", count: 56) + String(100_000_000 + number).suffix(8)
            lines += "public_key=\(key)\nreplace_allowed_ips=true\n"
            for third in 0..<3 {
                lines += "allowed_ip=10.\(number / 256).\(number % 256).\(third)/32\n"
            }
        }
        let quiet = CountingDevice()
        var connection = UAPIConnection()
        connection.receive([UInt8]((lines + "\n").utf8), device: quiet)
        #expect(connection.takeOutput() == [UInt8]("errno=0\n\n".utf8))
        #expect((quiet.peers, quiet.prefixes, quiet.commits) == (10_000, 30_000, 1))
    }
}

/// Counts, and keeps nothing.
private final class CountingDevice: UAPIDevice {
    var peers = 0
    var prefixes = 0
    var commits = 0
    let isReplacingPeers = false
    func snapshot() throws(UAPIError) -> DeviceSnapshot { DeviceSnapshot() }
    func set(device change: DeviceChange) throws(UAPIError) {}
    func set(peer change: PeerChange) throws(UAPIError) {
        peers += 1
        prefixes += change.prefixes.count
    }
    func beginReplacePeers() throws(UAPIError) {}
    func commitReplacePeers() throws(UAPIError) { commits += 1 }
    func abortReplacePeers() {}
}
