// SPDX-License-Identifier: Apache-2.0
// The client's side of the configuration protocol, against the server's side of this module and
// against servers that lie.
import TestSupport
import Testing

@testable import WireGuard

private func read(_ text: String, limit: Int = UAPIAnswerReader.defaultLimit) throws -> UAPIAnswer {
    try read([[UInt8](text.utf8)], limit: limit)
}

private func read(
    _ fragments: [[UInt8]], limit: Int = UAPIAnswerReader.defaultLimit
) throws(UAPIAnswerError) -> UAPIAnswer {
    var reader = UAPIAnswerReader(limit: limit)
    for fragment in fragments { try reader.receive(fragment.span) }
    return try reader.finish()
}

extension SeededRandom {
    fileprivate mutating func prefix() -> Prefix {
        let address = address()
        return Prefix(address: address, length: UInt8(below(Int(address.bitWidth) + 1)))!
    }

    fileprivate mutating func snapshot() -> DeviceSnapshot {
        var device = DeviceSnapshot()
        if oneIn(2) { device.privateKey = SecretKey(filledWith: UInt8(1 + below(255))) }
        device.listenPort = oneIn(3) ? 0 : UInt16(below(65536))
        device.fwmark = oneIn(3) ? 0 : UInt32(truncatingIfNeeded: next())
        for _ in 0..<below(5) {
            var peer = PeerSnapshot(publicKey: PublicKey(bytes: key()))
            if oneIn(2) { peer.presharedKey = PresharedKey(filledWith: UInt8(1 + below(255))) }
            if oneIn(2) { peer.endpoint = Endpoint(address: address(), port: UInt16(below(65536))) }
            peer.lastHandshakeSeconds = Int64(below(1 << 40))
            peer.lastHandshakeNanoseconds = UInt32(below(1_000_000_000))
            peer.receivedBytes = next()
            peer.sentBytes = next()
            peer.keepalive = UInt16(below(65536))
            for _ in 0..<below(6) { peer.prefixes.append(prefix()) }
            device.peers.append(peer)
        }
        return device
    }

    fileprivate mutating func change() -> PeerChange {
        var peer = PeerChange(publicKey: PublicKey(filledWith: UInt8(below(6))))
        peer.remove = oneIn(6)
        peer.updateOnly = oneIn(6)
        peer.replaceAllowedIPs = oneIn(4)
        if oneIn(3) { peer.presharedKey = PresharedKey(filledWith: UInt8(below(3))) }
        if oneIn(3) { peer.endpoint = Endpoint(address: address(), port: UInt16(below(65536))) }
        if oneIn(3) { peer.keepalive = UInt16(below(65536)) }
        for _ in 0..<below(5) {
            let address = IPAddress.v4(0x0A00_0000 | UInt32(below(4)))
            let prefix = Prefix(address: address, length: UInt8(30 + below(3)))!
            peer.prefixes.append(PrefixChange(prefix, remove: oneIn(3)))
        }
        return peer
    }
}

@Suite struct UAPIClientTests {
    @Test func a_set_request_has_these_lines_in_this_order() {
        var peer = PeerChange(publicKey: PublicKey(filledWith: 2))
        peer.updateOnly = true
        peer.presharedKey = PresharedKey(filledWith: 3)
        peer.endpoint = Endpoint("[fe80::1%eth0]:51820")
        peer.keepalive = 25
        peer.replaceAllowedIPs = true
        peer.prefixes = [
            PrefixChange(prefix("10.0.0.0/24")), PrefixChange(prefix("::/0"), remove: true),
        ]
        var gone = PeerChange(publicKey: PublicKey(filledWith: 4))
        gone.remove = true
        gone.keepalive = 1
        let device = DeviceChange(
            privateKey: SecretKey(filledWith: 1), listenPort: 0, fwmark: 0xCA6C)
        let text = UAPIRequest.set(device: device, peers: [peer, gone], replacePeers: true)
        let expected = """
            set=1
            private_key=\(hex(1))
            listen_port=0
            fwmark=51820
            replace_peers=true
            public_key=\(hex(2))
            update_only=true
            preshared_key=\(hex(3))
            endpoint=[fe80::1%eth0]:51820
            persistent_keepalive_interval=25
            replace_allowed_ips=true
            allowed_ip=10.0.0.0/24
            allowed_ip=-::/0
            public_key=\(hex(4))
            remove=true


            """
        #expect(String(decoding: text, as: UTF8.self) == expected)
    }

    @Test func an_empty_change_is_a_whole_request() {
        let text = UAPIRequest.set(device: DeviceChange(), peers: [], replacePeers: false)
        #expect(text == [UInt8]("set=1\n\n".utf8))
    }

    @Test func a_random_request_does_to_a_server_what_the_change_says() {
        var random = SeededRandom(seed: 21)
        for round in 0..<2000 {
            let served = MemoryDevice()
            let direct = MemoryDevice()
            for _ in 0..<3 {
                let changes = (0..<random.below(5)).map { _ in random.change() }
                let replace = random.oneIn(4)
                let device = DeviceChange(
                    privateKey: random.oneIn(3) ? SecretKey(filledWith: 9) : nil,
                    listenPort: random.oneIn(3) ? UInt16(random.below(65536)) : nil,
                    fwmark: random.oneIn(3) ? UInt32(random.below(9)) : nil)
                let request = UAPIRequest.set(
                    device: device, peers: changes, replacePeers: replace)
                let answer = converse([request], with: served).output
                hold((try? read(answer))?.errno == 0, "round \(round): \(answer)")
                try? direct.set(device: device)
                if replace { try? direct.beginReplacePeers() }
                for change in changes { try? direct.set(peer: change) }
                if replace { try? direct.commitReplacePeers() }
            }
            hold(served.state == direct.state, "round \(round)")
        }
    }

    @Test func a_random_answer_is_read_back_however_it_is_cut() throws {
        var random = SeededRandom(seed: 22)
        for round in 0..<500 {
            let device = random.snapshot()
            var text: [UInt8] = []
            appendUAPI(device, to: &text)
            text.append("errno=0\n\n")
            var fragments: [[UInt8]] = []
            var rest = text[...]
            while !rest.isEmpty {
                let length = 1 + random.below(200)
                fragments.append(Array(rest.prefix(length)))
                rest = rest.dropFirst(length)
            }
            let answer = try read(fragments)
            hold(answer.device == device && answer.failure == nil, "round \(round)")
        }
    }

    @Test func c100_both_signs_of_errno_mean_the_same_failure() throws {
        for text in ["errno=22\n\n", "errno=-22\n\n"] {
            #expect(try read(text).failure == .invalid)
        }
        #expect(try read("errno=0\n\n").failure == nil)
        #expect(try read("errno=-0\n\n").failure == nil)
    }

    @Test func keys_of_newer_servers_are_skipped() throws {
        let text = """
            future=1
            public_key=\(hex(1))
            colour=green=blue
            allowed_ip=10.0.0.1/32
            errno=0


            """
        #expect(try read(text).device.peers.map(\.prefixes) == [[prefix("10.0.0.1/32")]])
    }

    @Test func keys_of_zeros_are_no_keys() throws {
        let text =
            "private_key=\(hex(0))\npublic_key=\(hex(1))\npreshared_key=\(hex(0))\nerrno=0\n\n"
        let device = try read(text).device
        #expect(device.privateKey == nil)
        #expect(device.peers.map(\.presharedKey) == [nil])
    }

    private static let peer = "public_key=\(hex(1))\n"
    @Test(
        arguments: [
            ("", .incomplete),
            ("errno=0\n", .incomplete),
            ("errno=0", .incomplete),
            ("listen_port=1\n", .incomplete),
            ("\n", .malformed),
            ("listen_port=1\n\nerrno=0\n\n", .malformed),
            ("errno=0\n\n\n", .malformed),
            ("errno=0\nlisten_port=1\n\n", .malformed),
            ("errno=0\nerrno=0\n\n", .malformed),
            ("errno=0\n\nerrno=0\n\n", .malformed),
            ("no equals\nerrno=0\n\n", .malformed),
            ("HTTP/1.1 400 Bad Request\r\n\r\n", .malformed),
            ("errno=\n\n", .value(key: "errno")),
            ("errno=+1\n\n", .value(key: "errno")),
            ("errno=--1\n\n", .value(key: "errno")),
            ("errno=4096\n\n", .value(key: "errno")),
            ("listen_port=65536\n", .value(key: "listen_port")),
            ("fwmark=0xca6c\n", .value(key: "fwmark")),
            ("private_key=00\n", .value(key: "private_key")),
            ("listen_port=1\nlisten_port=1\n", .misplaced(key: "listen_port")),
            ("allowed_ip=10.0.0.0/8\n", .misplaced(key: "allowed_ip")),
            (peer + "listen_port=1\n", .misplaced(key: "listen_port")),
            (peer + peer, .misplaced(key: "public_key")),
            (peer + "allowed_ip=10.0.0.1\n", .value(key: "allowed_ip")),
            (peer + "allowed_ip=-10.0.0.1/32\n", .value(key: "allowed_ip")),
            (peer + "endpoint=host:1\n", .value(key: "endpoint")),
            (peer + "tx_bytes=18446744073709551616\n", .value(key: "tx_bytes")),
            (
                peer + "last_handshake_time_sec=9223372036854775808\n",
                .value(key: "last_handshake_time_sec")
            ),
            (
                peer + "last_handshake_time_nsec=1000000000\n",
                .value(key: "last_handshake_time_nsec")
            ),
            (peer + "protocol_version=2\n", .value(key: "protocol_version")),
            (
                peer + "persistent_keepalive_interval=-1\n",
                .value(key: "persistent_keepalive_interval")
            ),
        ] as [(String, UAPIAnswerError)])
    func a_bad_answer_is_refused(text: String, expected: UAPIAnswerError) {
        #expect(throws: expected) { _ = try read(text) }
    }

    @Test func a_refusal_shows_nothing_of_the_answer() {
        let secret = String(repeating: "5", count: 63)
        for text in ["private_key=\(secret)\n", "\(secret)\n"] {
            let error = #expect(throws: UAPIAnswerError.self) { _ = try read(text) }
            #expect(
                error.map { !"\($0)".contains("555") && !$0.description.contains("555") } == true)
        }
    }

    @Test func an_endless_answer_is_given_up_at_the_limit() throws {
        var reader = UAPIAnswerReader(limit: 1000)
        let line = [UInt8]("x=0123\n".utf8)
        var taken = 0
        let error = #expect(throws: UAPIAnswerError.self) {
            while taken < 10_000 {
                try reader.receive(line.span)
                taken += line.count
            }
        }
        #expect(error == .tooLong(limit: 1000))
        #expect(taken == 994)
        // A line that never ends is given up far earlier.
        let endless = [UInt8](repeating: 0x61, count: LineAssembler.limit + 1)
        #expect(throws: UAPIAnswerError.malformed) { _ = try read([endless]) }
    }
}
