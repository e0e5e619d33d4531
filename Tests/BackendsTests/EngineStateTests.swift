// SPDX-License-Identifier: Apache-2.0
// The client of the engine's state socket, against servers that answer, refuse, stall or lie.
import Synchronization
import TestSupport
import Testing
import TunnelPlan
import WireGuard

@testable import Backends

@Suite struct EngineStateTests {
    let directory = TemporaryDirectory()

    private func state(milliseconds: Int64 = 60_000) -> EngineState {
        EngineState(wg0, directory: directory.path, milliseconds: milliseconds)
    }

    private func server() throws -> FakeServer { try FakeServer("\(directory.path)/wg0.engine") }

    @Test func the_document_is_one_line() throws {
        let server = try server()
        server.serve(1) { client in
            #expect(readRequest(client) == "get=1\n\n")
            answer(client, "{\"schemaVersion\":1}\n")
        }
        let document = try state().document()
        server.join()
        #expect(document == Array("{\"schemaVersion\":1}".utf8))
    }

    /// It looks at its link before it answers; others than our engine are not asked.
    @Test func an_engine_whose_link_was_set_up_is_waited_for() throws {
        let backend = UserspaceBackend(
            program: nil, directory: directory.path, stateDirectory: directory.path)
        try backend.awaitUp(wg0)
        let server = try server()
        let order = Mutex<[String]>([])
        server.serve(1) { client in
            #expect(readRequest(client) == "get=1\n\n")
            order.withLock { $0.append("answered") }
            answer(client, "{\"schemaVersion\":1}\n")
        }
        try backend.awaitUp(wg0)
        order.withLock { $0.append("up") }
        server.join()
        #expect(order.withLock { $0 } == ["answered", "up"])
    }

    @Test func case_C78_a_floor_is_told_with_nine_digits() throws {
        let server = try server()
        server.serve(1) { client in
            #expect(readRequest(client) == "set=1\ntimestamp_floor=1700000000.000000000\n\n")
            answer(client, "errno=0\n\n")
        }
        try state().raiseFloor(to: 1_700_000_000)
        server.join()
    }

    @Test(arguments: [
        ("errno=-22\n\n", BackendError.Kind.refused), ("errno=0\n", .other), ("", .other),
        ("\n\n", .refused),
    ])
    func a_refusal_or_a_lie_has_a_kind(text: String, kind: BackendError.Kind) throws {
        let server = try server()
        server.serve(1) { client in
            _ = readRequest(client)
            answer(client, text)
        }
        let error = thrown { () throws(BackendError) in try state().raiseFloor(to: 5) }
        server.join()
        #expect(error?.kind == kind, "\(error?.message ?? "none")")
    }

    @Test func nobody_listening_is_not_running_and_a_stalled_engine_is_given_up() throws {
        var error = thrown { () throws(BackendError) in _ = try state().document() }
        #expect(error?.kind == .notRunning)
        let server = try server()
        error = thrown { () throws(BackendError) in
            _ = try state(milliseconds: 30).document()
        }
        #expect(error?.kind == .timeout, "\(error?.message ?? "none")")
        _ = server
    }
}
