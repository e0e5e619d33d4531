// SPDX-License-Identifier: Apache-2.0
// The engine itself, in network namespaces of their own: each test has a thread that leaves the
// namespace of the machine before it makes a device. Needs root and /dev/net/tun.
import FoundationEssentials
import Glibc
import Synchronization
import Testing
import WireGuard

@testable import TunnelEngine

private let mayMakeDevices = unsafe geteuid() == 0 && access("/dev/net/tun", R_OK | W_OK) == 0

/// unshare(2), which the Glibc module does not show.
@_silgen_name("unshare") private func unshare(_ flags: Int32) -> Int32
/// sched.h
private let newNetworkNamespace: Int32 = 0x4000_0000

private final class Job: Sendable {
    let body: @Sendable () throws -> Void
    let failure = Mutex<(any Error)?>(nil)
    init(_ body: @escaping @Sendable () throws -> Void) { self.body = body }

    func run() {
        do {
            guard unshare(newNetworkNamespace) == 0 else {
                throw EngineError(errno: errno, message: "cannot leave the network namespace")
            }
            try body()
        } catch { failure.withLock { $0 = error } }
    }
}

/// Runs `body` on a thread in a new network namespace, which ends with the thread and its devices.
private func inNamespace(_ body: @escaping @Sendable () throws -> Void) throws {
    let job = Job(body)
    var thread = pthread_t()
    // Unsafe: the job is retained for the thread, which releases it; joined below.
    let result = unsafe pthread_create(
        &thread, nil,
        { context in
            unsafe Unmanaged<Job>.fromOpaque(context!).takeRetainedValue().run()
            return nil
        }, Unmanaged.passRetained(job).toOpaque())
    precondition(result == 0, "no thread")
    pthread_join(thread, nil)
    if let error = job.failure.withLock({ $0 }) { throw error }
}

private func key(_ byte: UInt8) -> PublicKey { PublicKey(bytes: InlineArray(repeating: byte)) }

/// One whole operation on a new connection.
private func ask(_ engine: Engine, _ lines: String) -> String {
    var connection = UAPIConnection()
    connection.receive([UInt8]((lines + "\n").utf8), device: engine)
    let output = connection.takeOutput()
    connection.finish(device: engine)
    return String(decoding: output, as: UTF8.self)
}

@Suite(.enabled(if: mayMakeDevices)) struct EngineTests {
    @Test func what_is_set_is_what_is_shown() throws {
        try inNamespace {
            let engine = try Engine(options: EngineOptions(name: "ngte0"))
            let secret = String(repeating: "5a", count: 32)
            let answer = ask(
                engine,
                """
                set=1
                private_key=\(secret)
                fwmark=0xca6c
                public_key=\(key(2).hex)
                preshared_key=\(key(3).hex)
                endpoint=192.0.2.1:51820
                persistent_keepalive_interval=25
                allowed_ip=10.0.0.1/24
                allowed_ip=2001:db8:1::/48
                public_key=\(key(4).hex)
                endpoint=[2001:db8::1]:1

                """)
            #expect(answer == "errno=0\n\n")
            let snapshot = try engine.snapshot()
            #expect(
                snapshot.privateKey == (try SecretKey(hex: [UInt8](secret.utf8).span)).clamped())
            #expect(snapshot.fwmark == 0xCA6C && snapshot.mtu == 1420)
            var first = PeerSnapshot(publicKey: key(2))
            first.presharedKey = PresharedKey(copying: [UInt8](repeating: 3, count: 32).span)
            first.endpoint = Endpoint("192.0.2.1:51820")
            first.keepalive = 25
            first.prefixes = [Prefix("10.0.0.0/24")!, Prefix("2001:db8:1::/48")!]
            var second = PeerSnapshot(publicKey: key(4))
            second.endpoint = Endpoint("[2001:db8::1]:1")
            #expect(snapshot.peers == [first, second])
            let shown = ask(engine, "get=1\n")
            #expect(shown.contains("fwmark=51820\n") && shown.hasSuffix("errno=0\n\n"))
            #expect(
                ask(engine, "set=1\nprivate_key=\(String(repeating: "0", count: 64))\n")
                    == "errno=0\n\n")
            #expect(try engine.snapshot().privateKey == nil)
        }
    }

    @Test func c17_a_zone_becomes_an_interface_index_and_an_unknown_one_is_refused() throws {
        try inNamespace {
            let engine = try Engine(options: EngineOptions(name: "ngte0"))
            func set(_ endpoint: String) -> String {
                ask(engine, "set=1\npublic_key=\(key(2).hex)\nendpoint=\(endpoint)\n")
            }
            #expect(set("[fe80::1%lo]:5") == "errno=0\n\n")
            // The loopback interface is the first of every namespace.
            #expect(try engine.snapshot().peers[0].endpoint == Endpoint("[fe80::1%1]:5"))
            #expect(set("[fe80::1%nosuchif]:5") == "errno=-22\n\n")
            #expect(set("[fe80::2%7]:5") == "errno=0\n\n")
            #expect(try engine.snapshot().peers[0].endpoint == Endpoint("[fe80::2%7]:5"))
            #expect(set("[2001:db8::1%lo]:5") == "errno=0\n\n")
            #expect(try engine.snapshot().peers[0].endpoint == Endpoint("[2001:db8::1]:5"))
        }
    }

    @Test func a_replacement_keeps_the_named_and_an_aborted_one_everybody() throws {
        try inNamespace {
            let engine = try Engine(options: EngineOptions(name: "ngte0"))
            func names() throws -> [PublicKey] { try engine.snapshot().peers.map(\.publicKey) }
            let two = "set=1\npublic_key=\(key(1).hex)\npublic_key=\(key(2).hex)\n"
            #expect(ask(engine, two) == "errno=0\n\n")
            #expect(ask(engine, "set=1\nreplace_peers=true\nbad=1\n") == "errno=-22\n\n")
            #expect(try names() == [key(1), key(2)])
            try engine.beginReplacePeers()
            #expect(engine.isReplacingPeers)
            #expect(ask(engine, "set=1\nreplace_peers=true\n") == "errno=-16\n\n")
            engine.abortReplacePeers()
            #expect(!engine.isReplacingPeers)
            let other =
                "set=1\nreplace_peers=true\npublic_key=\(key(2).hex)\npublic_key=\(key(3).hex)\n"
            #expect(ask(engine, other) == "errno=0\n\n")
            #expect(try names() == [key(2), key(3)])
        }
    }

    @Test func pitfall_57_update_only_and_remove_never_create() throws {
        try inNamespace {
            let engine = try Engine(options: EngineOptions(name: "ngte0"))
            for line in ["update_only=true", "remove=true"] {
                #expect(ask(engine, "set=1\npublic_key=\(key(1).hex)\n\(line)\n") == "errno=0\n\n")
            }
            #expect(try engine.snapshot().peers.isEmpty)
        }
    }

    @Test func pitfall_57_an_allowed_ip_added_elsewhere_moves_and_is_removed_only_from_its_holder()
        throws
    {
        try inNamespace {
            let engine = try Engine(options: EngineOptions(name: "ngte0"))
            func set(_ peer: UInt8, _ line: String) throws -> [[Prefix]] {
                let lines = "set=1\npublic_key=\(key(peer).hex)\nallowed_ip=\(line)\n"
                #expect(ask(engine, lines) == "errno=0\n\n")
                return try engine.snapshot().peers.map(\.prefixes)
            }
            let held = Prefix("10.0.0.0/8")!
            #expect(try set(1, "10.0.0.0/8") == [[held]])
            #expect(try set(2, "10.0.0.0/8") == [[], [held]])
            #expect(try set(1, "-10.0.0.0/8") == [[], [held]])
            #expect(try set(2, "-10.0.0.0/8") == [[], []])
        }
    }

    @Test func c78_the_floor_is_only_ever_raised() throws {
        try inNamespace {
            let engine = try Engine(options: EngineOptions(name: "ngte0"))
            #expect(engine.timestampFloor == TimestampFloor(seconds: 0, nanoseconds: 0))
            let high = TimestampFloor(seconds: 2_000_000_000, nanoseconds: 7)
            engine.raiseTimestampFloor(to: high)
            #expect(engine.timestampFloor == high)
            engine.raiseTimestampFloor(to: TimestampFloor(seconds: 2_000_000_000, nanoseconds: 6))
            #expect(engine.timestampFloor == high)
        }
    }

    @Test func the_document_of_a_running_engine_names_every_counter() throws {
        try inNamespace {
            var options = EngineOptions(name: "ngte0")
            options.aead = "libsodium"
            options.workers = 1
            options.version = "9.9"
            let engine = try Engine(options: options)
            try engine.start()
            let document = try JSONDecoder().decode(
                Document.self, from: Data(engine.stateDocument()))
            #expect(
                (document.name, document.version, document.aead) == ("ngte0", "9.9", "libsodium"))
            #expect(document.ladder.count == 9)
            #expect(document.drops["tag_invalid"] == 0 && document.drops["link_down"] != nil)
            #expect(document.fallbacks["udp_gso_eio"] == 0)
            #expect(document.workers.count == 1)
            #expect(document.workers[0].tx.histogram.count == 8)
            #expect(Set(document.handshakes.keys).count == 4)
            engine.stop()
            engine.stop()
        }
    }

    @Test func a_switch_takes_its_rung_out_of_the_ladder() throws {
        try inNamespace {
            var options = EngineOptions(name: "ngte0")
            options.switches = [.noUDPGSO, .noTunUSO]
            let engine = try Engine(options: options)
            let ladder = engine.statistics().ladder.reduce(into: [:]) { $0[$1.name] = $1.value }
            #expect(ladder["udp_gso"] == false && ladder["tun_uso"] == false)
        }
    }

    @Test func an_engine_that_cannot_be_made_says_why() throws {
        try inNamespace {
            func failure(_ change: (inout EngineOptions) -> Void) -> EngineError? {
                var options = EngineOptions(name: "ngte0")
                change(&options)
                do throws(EngineError) {
                    _ = try Engine(options: options)
                    return nil
                } catch { return error }
            }
            #expect(failure { $0.name = "sixteen-letters-" }?.errno == EINVAL)
            #expect(failure { $0.name = "a\0b" }?.errno == EINVAL)
            #expect(
                failure { $0.aead = "rot13" }.map { $0.errno > 0 && !$0.message.isEmpty } == true)
            #expect(
                failure { $0.tunDescriptor = 1_000_000 }.map { $0.errno > 0 && !$0.message.isEmpty }
                    == true)
        }
    }

    @Test func c99_ten_thousand_peers_go_in_and_come_out() throws {
        try inNamespace {
            let engine = try Engine(options: EngineOptions(name: "ngte0"))
            var lines = "set=1\nreplace_peers=true\n"
            for number in 0..<10_000 {
                lines += "public_key=" + String(repeating: "0", count: 56)
                lines +=
                    String(String(100_000_000 + number).suffix(8)) + "\nreplace_allowed_ips=true\n"
                lines += "allowed_ip=10.\(number / 256).\(number % 256).0/24\n"
                lines += "allowed_ip=2001:db8:\(String(number, radix: 16))::/48\n"
            }
            for _ in 0..<2 {
                #expect(ask(engine, lines) == "errno=0\n\n")
                let peers = try engine.snapshot().peers
                #expect(peers.count == 10_000)
                #expect(Set(peers.map(\.publicKey)).count == 10_000)
                #expect(peers.allSatisfy { $0.prefixes.count == 2 })
            }
            #expect(ask(engine, "set=1\nreplace_peers=true\n") == "errno=0\n\n")
            #expect(try engine.snapshot().peers.isEmpty)
        }
    }
}

extension SecretKey {
    /// As X25519 uses it (RFC 7748 section 5), which is how the reference stores and shows it.
    fileprivate func clamped() -> SecretKey {
        withBytes { bytes in
            var copy = (0..<bytes.count).map { bytes[$0] }
            copy[0] &= 248
            copy[31] = copy[31] & 127 | 64
            return SecretKey(copying: copy.span)
        }
    }
}
