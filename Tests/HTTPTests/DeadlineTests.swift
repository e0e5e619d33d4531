// SPDX-License-Identifier: Apache-2.0
import Glibc
import HostProcess
import Synchronization
import Testing

@testable import HTTP

/// Clients that send a byte now and then, for ever.
@Suite struct DeadlineTests {
    /// Says `beginning`, then byte after byte until the server ends it; false if it never does.
    private func isCut(_ server: HTTPServer, after beginning: String, dribbling text: String) throws
        -> Bool
    {
        let client = try RawClient(port: server.port)
        client.send(beginning)
        let byte = Array(text.utf8)
        return eventually { !client.send(byte) || client.isClosed() }
    }

    private func server(_ seen: Notes<String>, _ change: (inout HTTPServer.Options) -> Void) throws
        -> HTTPServer
    {
        try plainServer(limits(change)) { request in
            seen.add(request.path)
            return HTTPResponse(status: 204)
        }
    }

    @Test func a_dribbled_head_is_cut() throws {
        let seen = Notes<String>()
        let server = try server(seen) { $0.headDeadline = .milliseconds(150) }
        #expect(try isCut(server, after: "GET / HTTP/1.1\r\nHost: h\r\nX: ", dribbling: "x"))
        #expect(try isCut(server, after: "", dribbling: "G"))
        #expect(eventually { server.connectionCount == 0 })
        #expect(server.cutCount == 2)
        #expect(seen.all == [])
    }

    @Test func a_connection_that_says_nothing_is_cut() throws {
        let server = try server(Notes()) { $0.headDeadline = .milliseconds(150) }
        let client = try RawClient(port: server.port)
        #expect(client.receiveAll() == "")
        #expect(server.cutCount == 1)
    }

    @Test func a_dribbled_body_is_cut() throws {
        let seen = Notes<String>()
        let server = try server(seen) { $0.bodyDeadline = .milliseconds(150) }
        let head = "POST / HTTP/1.1\r\nHost: h\r\n"
        #expect(try isCut(server, after: head + "Content-Length: 900000\r\n\r\n", dribbling: "x"))
        let chunked = head + "Transfer-Encoding: chunked\r\n\r\n"
        #expect(try isCut(server, after: chunked, dribbling: "1\r\nx\r\n"))
        #expect(eventually { server.connectionCount == 0 })
        #expect(server.cutCount == 2)
        #expect(seen.all == [])
    }

    @Test func a_dribbled_second_request_is_cut() throws {
        let seen = Notes<String>()
        let server = try server(seen) { $0.idleDeadline = .milliseconds(150) }
        #expect(
            try isCut(
                server, after: "GET /one HTTP/1.1\r\nHost: h\r\n\r\nGET /two HTTP/1.1\r\nX: ",
                dribbling: "x"))
        #expect(eventually { server.connectionCount == 0 })
        #expect(seen.all == ["/one"])
    }

    @Test func an_answer_that_is_not_read_is_cut() throws {
        let server = try plainServer(limits { $0.answerDeadline = .milliseconds(150) }) { _ in
            HTTPResponse(status: 200, body: [UInt8](repeating: 0x78, count: 32 << 20))
        }
        let client = try RawClient(port: server.port)
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(eventually { server.cutCount == 1 && server.connectionCount == 0 })
    }

    @Test func others_are_served_while_slow_ones_wait() throws {
        let server = try server(Notes()) { $0.threads = 2 }
        var slow: [RawClient] = []
        for _ in 0..<50 {
            let client = try RawClient(port: server.port)
            client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nx")
            slow.append(client)
        }
        #expect(eventually { server.connectionCount == 50 })
        let response = try HTTPClient().perform(
            HTTPClientRequest("GET", "http://127.0.0.1:\(server.port)/"))
        #expect(response.status == 204)
        #expect(server.cutCount == 0)
    }
}
