// SPDX-License-Identifier: Apache-2.0
// The client against servers that stall, lie or are older than it.
import HostProcess
import Synchronization
import TestSupport
import Testing
import TunnelPlan
import WireGuard

@testable import Backends

@Suite struct UserspaceBackendTests {
    let directory = TemporaryDirectory()

    /// Milliseconds that no healthy exchange here needs, for those that must go well.
    private static let patience: Int64 = 60_000

    private func limits(
        idle: Int64 = patience, total: Int64 = patience, answer: Int = 1 << 20
    ) -> UAPIClient.Limits {
        var limits = UAPIClient.Limits()
        limits.idle = idle
        limits.total = total
        limits.answer = answer
        return limits
    }

    private func backend(_ limits: UAPIClient.Limits? = nil) -> UserspaceBackend {
        UserspaceBackend(directory: directory.path, limits: limits ?? self.limits())
    }

    private func server(_ name: String = "wg0") throws -> FakeServer {
        try FakeServer("\(directory.path)/\(name).sock")
    }

    /// More than a socket holds.
    private static let manyPeers = (0..<10_000).map { number in
        var bytes = InlineArray<32, UInt8>(repeating: 7)
        bytes[0] = UInt8(number & 255)
        bytes[1] = UInt8(number >> 8)
        var peer = PeerChange(publicKey: PublicKey(bytes: bytes))
        peer.prefixes = [
            PrefixChange(Prefix(address: .v4(0x0A00_0000 + UInt32(number)), length: 32)!)
        ]
        return peer
    }

    // MARK: answers

    @Test func a_snapshot_has_what_the_server_said_and_the_public_key() throws {
        let server = try server()
        // Alice's keys of RFC 7748 section 6.1.
        server.serve(1) { client in
            #expect(readRequest(client) == "get=1\n\n")
            answer(
                client,
                """
                private_key=77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a
                listen_port=7
                public_key=\(key(2).hex)
                allowed_ip=10.0.0.0/8
                errno=0


                """)
        }
        let device = try backend().snapshot(wg0)
        server.join()
        #expect(device.listenPort == 7)
        #expect(device.peers.map(\.prefixes) == [[prefix("10.0.0.0/8")]])
        #expect(
            device.publicKey?.hex
                == "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")
    }

    @Test(arguments: [
        ("errno=-98\n\n", BackendError.Kind.taken), ("errno=98\n\n", .taken),
        ("errno=-22\n\n", .refused), ("errno=1\n\n", .permission),
        ("errno=0\n", .other), ("", .other), ("errno=0\n\nerrno=0\n\n", .other),
        ("HTTP/1.1 400 Bad Request\r\n\r\n", .other),
    ])
    func a_refusal_or_a_lie_has_a_kind(text: String, kind: BackendError.Kind) throws {
        let server = try server()
        server.serve(1) { client in
            _ = readRequest(client)
            answer(client, text)
        }
        let error = thrown { () throws(BackendError) in
            try backend().apply(wg0, device: DeviceChange(), peers: [], replacePeers: false)
        }
        server.join()
        #expect(error?.kind == kind, "\(error?.message ?? "none")")
        #expect(error?.message.hasPrefix("cannot configure wg0: ") == true)
    }

    @Test func nobody_listening_is_not_running() throws {
        var error = thrown { () throws(BackendError) in try backend().snapshot(wg0) }
        #expect(error?.kind == .notRunning)
        #expect(error?.message.contains("\(directory.path)/wg0.sock") == true)
        try HostFile.write([], to: "\(directory.path)/wg0.sock", replacing: false)
        error = thrown { () throws(BackendError) in try backend().snapshot(wg0) }
        #expect(error?.kind == .notRunning)
    }

    @Test func only_sockets_that_somebody_answers_on_are_names() throws {
        let (first, second) = (try server("wg1"), try server("wg0"))
        try HostFile.write([], to: "\(directory.path)/wg2.sock", replacing: false)
        try HostFile.write([], to: "\(directory.path)/notes", replacing: false)
        #expect(try backend().names().map(\.description) == ["wg0", "wg1"])
        _ = (first, second)
        #expect(try UserspaceBackend(directory: "/nonexistent").names() == [])
    }

    // MARK: stalling and hostile servers

    @Test func a_server_that_never_accepts_is_given_up() throws {
        let server = try server()
        let error = thrown { () throws(BackendError) in
            try backend(limits(idle: 30)).snapshot(wg0)
        }
        #expect(error?.kind == .timeout, "\(error?.message ?? "none")")
        _ = server
    }

    @Test func a_server_that_reads_nothing_of_a_large_request_is_given_up() throws {
        let server = try server()
        let error = thrown { () throws(BackendError) in
            try backend(limits(idle: 30)).apply(
                wg0, device: DeviceChange(), peers: Self.manyPeers, replacePeers: true)
        }
        #expect(error?.kind == .timeout, "\(error?.message ?? "none")")
        _ = server
    }

    @Test func a_server_whose_queue_is_full_is_given_up() throws {
        let server = try server()
        var clients = 0
        // Nobody accepts: the queue fills up.
        let held = Held()
        while clients < 10_000, held.connect(server.path) { clients += 1 }
        #expect(clients > 0 && clients < 10_000)
        let error = thrown { () throws(BackendError) in
            try backend(limits(total: 30)).snapshot(wg0)
        }
        #expect(error?.kind == .timeout, "\(error?.message ?? "none")")
    }

    @Test func a_server_that_drips_is_given_up_although_it_never_pauses() throws {
        let server = try server()
        server.serve(1) { client in
            var buffer = [UInt8](repeating: 0, count: 4096)
            var poller = Poller()
            while client.write([UInt8]("x=1\n".utf8), from: 0) != nil {
                poller.removeAll()
                poller.wait(milliseconds: 1)
                if case .ended = client.read(into: &buffer) { return }
            }
        }
        let error = thrown { () throws(BackendError) in
            try backend(limits(idle: 50_000, total: 100)).snapshot(wg0)
        }
        server.join()
        #expect(error?.kind == .timeout, "\(error?.message ?? "none")")
    }

    @Test func a_server_that_floods_is_given_up_at_the_limit() throws {
        let server = try server()
        server.serve(1) { client in
            answer(client, String(repeating: "x=1234567890\n", count: 1 << 20))
        }
        let error = thrown { () throws(BackendError) in
            try backend(limits(answer: 1 << 20)).snapshot(wg0)
        }
        server.join()
        #expect(error?.kind == .other)
        #expect(error?.message.contains("1048576 bytes") == true, "\(error?.message ?? "none")")
    }

    @Test func a_refusal_before_the_end_of_the_request_is_heard() throws {
        let server = try server()
        server.serve(1) { client in
            answer(client, "errno=-16\n\n")
            awaitEnd(client)
        }
        let error = thrown { () throws(BackendError) in
            try backend().apply(
                wg0, device: DeviceChange(), peers: Self.manyPeers, replacePeers: true)
        }
        server.join()
        #expect(error?.kind == .taken, "\(error?.message ?? "none")")
    }

    @Test func success_before_the_end_of_the_request_is_not_believed() throws {
        let server = try server()
        server.serve(1) { client in
            answer(client, "errno=0\n\n")
            awaitEnd(client)
        }
        let error = thrown { () throws(BackendError) in
            try backend().apply(
                wg0, device: DeviceChange(), peers: Self.manyPeers, replacePeers: true)
        }
        server.join()
        #expect(error?.message.contains("before it was asked") == true)
    }

    // MARK: older servers

    @Test func a_server_that_cannot_remove_prefixes_is_told_those_that_remain() throws {
        let server = try server()
        let requests = Mutex<[String]>([])
        let isOld: @Sendable (String) -> Bool = { $0.contains("allowed_ip=-") }
        server.serve(3) { client in
            guard let request = readRequest(client) else { return }
            requests.withLock { $0.append(request) }
            if request == "get=1\n\n" {
                answer(
                    client,
                    """
                    public_key=\(key(2).hex)
                    allowed_ip=10.0.0.1/32
                    allowed_ip=10.0.0.2/32
                    errno=0


                    """)
            } else {
                answer(client, isOld(request) ? "errno=-22\n\n" : "errno=0\n\n")
            }
        }
        var peer = PeerChange(publicKey: key(2))
        peer.updateOnly = true
        peer.prefixes = [
            PrefixChange(prefix("10.0.0.3/32")), PrefixChange(prefix("10.0.0.1/32"), remove: true),
        ]
        try backend().apply(wg0, device: DeviceChange(), peers: [peer], replacePeers: false)
        server.join()
        let last = requests.withLock { $0.last }
        #expect(
            last == """
                set=1
                public_key=\(key(2).hex)
                update_only=true
                replace_allowed_ips=true
                allowed_ip=10.0.0.2/32
                allowed_ip=10.0.0.3/32


                """)
    }

    // MARK: life

    @Test func removal_takes_the_socket_and_waits_for_the_servers_end() throws {
        let server = try server()
        let ended = Atomic<Bool>(false)
        server.serve(1) { client in
            server.waitForRemoval()
            ended.store(true, ordering: .sequentiallyConsistent)
        }
        try backend().remove(wg0)
        let hasEnded = ended.load(ordering: .sequentiallyConsistent)
        #expect(hasEnded)
        server.join()
        try backend().remove(wg0)
    }

    @Test func a_server_that_does_not_end_is_told() throws {
        let server = try server()
        let error = thrown { () throws(BackendError) in
            try backend(limits(total: 30)).remove(wg0)
        }
        #expect(error?.kind == .timeout)
        _ = server
    }

    @Test(arguments: [
        ("echo boom >&2; exit 4", BackendError.Kind.permission, "boom"),
        ("echo warning; echo name taken >&2; exit 8", .taken, "name taken"),
        ("exit 1", .other, "no reason"), ("kill -KILL $$", .other, "signal 9"),
    ])
    func why_an_engine_did_not_start_is_told(
        script: String, kind: BackendError.Kind, words: String
    ) throws {
        let program = try directory.program("engine", script)
        let backend = UserspaceBackend(
            program: program, directory: directory.path, limits: limits())
        let error = thrown { () throws(BackendError) in try backend.create(wg0) }
        #expect(error?.kind == kind)
        #expect(error?.message.contains(words) == true, "\(error?.message ?? "none")")
    }

    @Test func an_engine_that_is_never_ready_is_ended() throws {
        let program = try directory.program("engine", "exec sleep 1000")
        let backend = UserspaceBackend(
            program: program, directory: directory.path, limits: limits(total: 30))
        let error = thrown { () throws(BackendError) in try backend.create(wg0) }
        #expect(error?.kind == .timeout)
    }

    @Test func an_engine_gets_the_name_and_nothing_of_our_environment() throws {
        let program = try directory.program(
            "engine", "{ echo \"$#:$1:$NOTIFY_SOCKET\"; exit 7; }")
        let backend = UserspaceBackend(
            program: program, directory: directory.path, limits: limits())
        let error = thrown { () throws(BackendError) in try backend.create(wg0) }
        #expect(error?.message.contains("1:wg0:") == true)
    }

    @Test func a_program_that_is_not_there_makes_the_back_end_unavailable() {
        let backend = UserspaceBackend(program: "/nonexistent/engine")
        #expect(thrown { () throws(BackendError) in try backend.create(wg0) }?.kind == .unavailable)
        #expect(!backend.availability().isAvailable)
    }
}

/// Connections that stay open.
private final class Held {
    private var next: Held?
    private var connection: Descriptor?

    /// False: the queue is full.
    func connect(_ path: String) -> Bool {
        guard let made = try? Descriptor.connect(path) else { return false }
        let rest = Held()
        rest.connection = consume made
        rest.next = next
        next = rest
        return true
    }
}
