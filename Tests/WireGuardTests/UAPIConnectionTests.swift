// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import WireGuard

@Suite struct UAPIConnectionTests {
    let device = MemoryDevice()

    /// A device with every key of the get answer.
    private func fill() {
        device.state.privateKey = SecretKey(filledWith: 1)
        device.state.listenPort = 51820
        device.state.fwmark = 51820
        var peer = PeerSnapshot(publicKey: PublicKey(filledWith: 2))
        peer.presharedKey = PresharedKey(filledWith: 3)
        peer.endpoint = Endpoint("[fe80::1%3]:51820")
        peer.lastHandshakeSeconds = 1_700_000_000
        peer.lastHandshakeNanoseconds = 5
        peer.receivedBytes = 1 << 63
        peer.sentBytes = 7
        peer.keepalive = 25
        peer.prefixes = [prefix("10.0.0.0/24"), prefix("2001:db8::1")]
        device.state.peers = [peer, PeerSnapshot(publicKey: PublicKey(filledWith: 4))]
    }

    @Test func c102_get_has_exactly_the_known_keys_in_order() {
        fill()
        let expected = """
            private_key=\(hex(1))
            listen_port=51820
            fwmark=51820
            public_key=\(hex(2))
            preshared_key=\(hex(3))
            protocol_version=1
            endpoint=[fe80::1%3]:51820
            last_handshake_time_sec=1700000000
            last_handshake_time_nsec=5
            tx_bytes=7
            rx_bytes=9223372036854775808
            persistent_keepalive_interval=25
            allowed_ip=10.0.0.0/24
            allowed_ip=2001:db8::1/128
            public_key=\(hex(4))
            preshared_key=\(hex(0))
            protocol_version=1
            last_handshake_time_sec=0
            last_handshake_time_nsec=0
            tx_bytes=0
            rx_bytes=0
            persistent_keepalive_interval=0
            errno=0


            """
        #expect(converse("get=1\n\n", with: device) == (expected, false))
    }

    @Test func an_empty_device_answers_with_nothing_but_errno() {
        #expect(converse("get=1\n\n", with: device) == ("errno=0\n\n", false))
    }

    @Test func c100_errno_is_negative_after_set_and_positive_after_get() {
        #expect(converse("set=1\nunknown=1\n\n", with: device) == ("errno=-22\n\n", true))
        #expect(converse("get=1\nunknown=1\n\n", with: device) == ("errno=22\n\n", true))
    }

    @Test func c100_every_refusal_has_errno_and_a_blank_line() {
        for input in [
            "x\n", "\n", "set=2\n\n", "get\n", "get=1\r\n\r\n", " get=1\n\n", "set=1\nx\n\n",
        ] {
            let (output, mustClose) = converse(input, with: device)
            #expect(output == "errno=-71\n\n", "\(input)")
            #expect(
                mustClose
                    == (input == "\n" || input.hasSuffix("\n\n") || input.hasSuffix("\r\n\r\n")))
        }
    }

    @Test func c101_a_connection_without_a_byte_changes_and_answers_nothing() {
        var connection = UAPIConnection()
        connection.receive([], device: device)
        #expect(connection.takeOutput().isEmpty)
        #expect(!connection.mustClose && !connection.isWithinOperation)
        connection.finish(device: device)
        #expect(device.peerChanges.isEmpty && device.deviceChanges.isEmpty)
        #expect((device.commits, device.aborts) == (0, 0))
    }

    @Test func c101_a_half_open_operation_is_visible_to_the_time_limit() {
        var connection = UAPIConnection()
        for (text, within) in [("set", false), ("=1\n", true), ("fwmark=1\n", true), ("\n", false)]
        {
            connection.receive([UInt8](text.utf8), device: device)
            #expect(connection.isWithinOperation == within)
        }
        connection.receive([UInt8]("get=1\n".utf8), device: device)
        #expect(connection.isWithinOperation)
    }

    @Test func c23_a_truncated_operation_removes_nobody_and_drops_its_last_peer() {
        #expect(converse("set=1\npublic_key=\(hex(1))\n\n", with: device).output == "errno=0\n\n")
        let input =
            "set=1\nreplace_peers=true\npublic_key=\(hex(2))\npublic_key=\(hex(3))\nallowed_ip=10."
        #expect(converse(input, with: device) == ("", false))
        #expect(device.state.peers.map(\.publicKey) == [1, 2].map { PublicKey(filledWith: $0) })
        #expect((device.commits, device.aborts) == (0, 1))
    }

    @Test func operations_follow_each_other_on_one_connection() {
        let input = "set=1\nlisten_port=7\n\nget=1\n\nset=1\n\nget=1\n\n"
        let expected = "errno=0\n\nlisten_port=7\nerrno=0\n\nerrno=0\n\nlisten_port=7\nerrno=0\n\n"
        #expect(converse(input, with: device) == (expected, false))
    }

    @Test func after_an_error_the_rest_is_read_and_dropped_before_closing() {
        var connection = UAPIConnection()
        connection.receive([UInt8]("set=1\nbad=1\n".utf8), device: device)
        #expect(connection.takeOutput() == [UInt8]("errno=-22\n\n".utf8))
        #expect(!connection.mustClose)
        connection.receive([UInt8]("listen_port=7\nno equals\n".utf8), device: device)
        #expect(!connection.mustClose)
        connection.receive([UInt8]("\nset=1\nlisten_port=8\n\n".utf8), device: device)
        #expect(connection.mustClose)
        connection.receive([UInt8]("set=1\nlisten_port=9\n\n".utf8), device: device)
        #expect(connection.takeOutput().isEmpty)
        #expect(device.deviceChanges.isEmpty)
    }

    @Test func a_snapshot_that_fails_is_told_and_the_connection_goes_on() {
        final class Failing: UAPIDevice {
            let isReplacingPeers = false
            func snapshot() throws(UAPIError) -> DeviceSnapshot { throw UAPIError(errno: 12) }
            func set(device change: DeviceChange) throws(UAPIError) {}
            func set(peer change: PeerChange) throws(UAPIError) {}
            func beginReplacePeers() throws(UAPIError) {}
            func commitReplacePeers() throws(UAPIError) {}
            func abortReplacePeers() {}
        }
        var connection = UAPIConnection()
        connection.receive([UInt8]("get=1\n\nset=1\n\n".utf8), device: Failing())
        #expect(connection.takeOutput() == [UInt8]("errno=12\n\nerrno=0\n\n".utf8))
        #expect(!connection.mustClose)
    }

    @Test func a_client_that_does_not_read_is_held_and_then_cut_off() {
        fill()
        device.state.peers = (0..<2000).map { _ in device.state.peers[0] }
        var connection = UAPIConnection()
        // One answer is below the limit, so the third request is the first to wait.
        connection.receive([UInt8]("get=1\n\n".utf8), device: device)
        let answer = connection.takeOutput()
        #expect(
            answer.count < UAPIConnection.outputLimit
                && 2 * answer.count > UAPIConnection.outputLimit)
        connection.receive([UInt8]("get=1\n\nget=1\n\nget=1\n\n".utf8), device: device)
        #expect(connection.hasHeldInput)
        connection.receive([UInt8]("get=1\n\n".utf8), device: device)
        #expect(connection.takeOutput() == answer + answer)
        connection.receive([], device: device)
        #expect(!connection.hasHeldInput)
        let flood = [UInt8](repeating: UInt8(ascii: "\n"), count: UAPIConnection.heldInputLimit + 1)
        connection.receive(flood, device: device)
        #expect(connection.mustClose && !connection.hasHeldInput)
    }

    @Test func the_largest_answer_fits_its_reservation() {
        var peer = PeerSnapshot(publicKey: PublicKey(filledWith: 0xFF))
        peer.presharedKey = PresharedKey(filledWith: 0xFF)
        let longest = IPAddress("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")!
        peer.endpoint = Endpoint(address: longest, port: 65535, zone: .index(.max))
        peer.lastHandshakeSeconds = .max
        peer.lastHandshakeNanoseconds = 999_999_999
        peer.receivedBytes = .max
        peer.sentBytes = .max
        peer.keepalive = .max
        var text: [UInt8] = []
        var snapshot = DeviceSnapshot()
        snapshot.peers = [peer]
        appendUAPI(snapshot, to: &text)
        #expect(text.count <= 512)
        snapshot.peers[0].prefixes = [Prefix(address: longest, length: 128)!]
        var longer: [UInt8] = []
        appendUAPI(snapshot, to: &longer)
        #expect(longer.count - text.count <= 64)
        snapshot.peers = []
        snapshot.privateKey = SecretKey(filledWith: 0xFF)
        snapshot.listenPort = .max
        snapshot.fwmark = .max
        text = []
        appendUAPI(snapshot, to: &text)
        #expect(text.count <= 256)
    }
}
