// SPDX-License-Identifier: Apache-2.0
import Glibc
import HostProcess
import Synchronization
import Testing

@testable import HTTP

@Suite struct ServerTests {
    @Test func a_request_arrives_whole_and_the_answer_too() throws {
        let seen = Notes<HTTPRequest>()
        let server = try plainServer { request in
            seen.add(request)
            return .json(201, Array("{\"a\":1}".utf8))
        }
        let client = try RawClient(port: server.port)
        client.send(
            "POST /a%20b/c?x=1%262&y=a+b&x=3&flag HTTP/1.1\r\nHost: h\r\nX-One: 1\r\nx-one: 2\r\n"
                + "Content-Length: 4\r\nConnection: close\r\n\r\nbody")
        let answer = client.receiveAll()
        #expect(answer.hasPrefix("HTTP/1.1 201 Created\r\n"))
        #expect(answer.hasSuffix("\r\n\r\n{\"a\":1}"))
        #expect(answer.contains("Content-Type: application/json\r\n"))
        #expect(answer.contains("Cache-Control: no-store\r\n"))
        let request = try #require(seen.all.first)
        #expect(seen.all.count == 1)
        #expect(request.method == "POST")
        #expect(request.path == "/a%20b/c")
        #expect(request.query == ["x": "1&2", "y": "a b", "flag": ""])
        #expect(request.headers.all("X-ONE") == ["1", "2"])
        #expect(request.body == Array("body".utf8))
        #expect(request.origin == .ip("127.0.0.1"))
        #expect(request.isSecure)
    }

    @Test func paths_reach_the_handler_as_they_were_sent() throws {
        let paths = Notes<String>()
        let server = try plainServer { request in
            paths.add(request.path)
            return HTTPResponse(status: 204)
        }
        let tricks = [
            "/a/../b", "/%2e%2e/secret", "/a%00b", "//double", "/a%2Fb", "/%zz", "/%", "/.",
            "/%252e",
            "/a;b=c", "/\u{FF}",
        ]
        for path in tricks {
            let client = try RawClient(port: server.port)
            client.send("GET \(path) HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            #expect(client.receiveAll().hasPrefix("HTTP/1.1 204"), "\(path)")
        }
        #expect(paths.all == tricks)
    }

    @Test func a_segment_is_decoded_once() {
        #expect(HTTPText.decoded("a%2Fb%20c") == "a/b c")
        #expect(HTTPText.decoded("%252e") == "%2e")
        for bad in ["%", "%2", "%zz", "a%00b", "%ff"] { #expect(HTTPText.decoded(bad) == nil) }
        #expect(HTTPText.decoded(HTTPText.encoded("a/b ü%&=+?#")) == "a/b ü%&=+?#")
    }

    @Test func malformed_requests_never_reach_the_handler() throws {
        let seen = Notes<String>()
        let server = try plainServer(
            limits {
                // Of some the server expects more to come.
                $0.headDeadline = .milliseconds(100)
                $0.bodyDeadline = .milliseconds(100)
            }
        ) { request in
            seen.add(request.path)
            return HTTPResponse(status: 204)
        }
        let requests = [
            "\r\n\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/1.1\r\nNo colon here\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",  // no Host (RFC 9112 section 3.2)
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999999\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
            "\u{16}\u{3}\u{1}\u{2}\u{0}",
        ]
        for request in requests {
            let client = try RawClient(port: server.port)
            client.send(request)
            client.endSending()
            let answer = client.receiveAll()
            #expect(answer.isEmpty || answer.hasPrefix("HTTP/1.1 4"), "\(request): \(answer)")
        }
        #expect(seen.all == [])
        #expect(eventually { server.connectionCount == 0 })
    }

    @Test func a_connection_is_kept_and_HEAD_has_no_body() throws {
        let server = try plainServer { .json(200, Array("{\"m\":\"\($0.method)\"}".utf8)) }
        let client = try RawClient(port: server.port)
        client.send("HEAD /one HTTP/1.1\r\nHost: h\r\n\r\n")
        let head = client.receive(until: "\r\n\r\n")
        #expect(head.hasSuffix("\r\n\r\n"))
        #expect(head.contains("Content-Length: 12\r\n"))
        client.send("GET /two HTTP/1.1\r\nHost: h\r\n\r\nGET /three HTTP/1.1\r\nHost: h\r\n\r\n")
        var both = client.receive(until: "{\"m\":\"GET\"}")
        if both.components("{\"m\":\"GET\"}") < 2 {
            both += client.receive(until: "{\"m\":\"GET\"}")
        }
        #expect(both.components("{\"m\":\"GET\"}") == 2)
        #expect(server.connectionCount == 1)
    }

    @Test func a_body_that_is_too_long_is_refused_however_it_comes() throws {
        let seen = Notes<Int>()
        let server = try plainServer(limits { $0.bodyLimit = 1000 }) { request in
            seen.add(request.body.count)
            return HTTPResponse(status: 204)
        }
        func answer(_ request: String) throws -> String {
            let client = try RawClient(port: server.port)
            client.send(request)
            return client.receiveAll()
        }
        let head = "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
        let fits = String(repeating: "x", count: 1000)
        #expect(try answer(head + "Content-Length: 1000\r\n\r\n\(fits)").contains(" 204 "))
        #expect(try answer(head + "Content-Length: 1001\r\n\r\n\(fits)y").contains(" 413 "))
        #expect(try answer(head + "Content-Length: 9000000\r\n\r\n").contains(" 413 "))
        let chunked = head + "Transfer-Encoding: chunked\r\n\r\n3e8\r\n\(fits)\r\n"
        #expect(try answer(chunked + "0\r\n\r\n").contains(" 204 "))
        #expect(try answer(chunked + "1\r\ny\r\n0\r\n\r\n").contains(" 413 "))
        #expect(seen.all == [1000, 1000])
    }

    @Test func a_chunked_body_without_end_is_cut() throws {
        let server = try plainServer(limits { $0.bodyLimit = 1000 }) { _ in
            HTTPResponse(status: 204)
        }
        let client = try RawClient(port: server.port)
        client.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
        let chunk = "1000\r\n" + String(repeating: "x", count: 4096) + "\r\n"
        var sent = 0
        while client.send(chunk), sent < 100_000 { sent += 1 }
        #expect(sent < 100_000)
        #expect(eventually { server.connectionCount == 0 })
    }

    @Test func all_bodies_together_have_a_limit() throws {
        let server = try plainServer(limits { $0.bodiesLimit = 10_000 }) { _ in
            HTTPResponse(status: 204)
        }
        let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9000\r\n\r\n"
        let waiting = try RawClient(port: server.port)
        waiting.send(head + String(repeating: "x", count: 8999))
        let second = try RawClient(port: server.port)
        #expect(eventually { server.bytesOfBodies == 8999 })
        second.send(head + String(repeating: "x", count: 9000))
        let answer = second.receive(until: "\r\n\r\n")
        #expect(answer.contains(" 503 ") && answer.contains("Retry-After: 5"))
        let third = try RawClient(port: server.port)
        third.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2000\r\n\r\n")
        third.send(String(repeating: "x", count: 2000))
        #expect(third.receive(until: "\r\n\r\n").contains(" 204 "))
        waiting.send("x")
        #expect(waiting.receive(until: "\r\n\r\n").contains(" 204 "))
        #expect(server.bytesOfBodies == 0)
    }

    @Test func a_head_that_is_too_long_is_refused() throws {
        let server = try plainServer { _ in HTTPResponse(status: 204) }
        let client = try RawClient(port: server.port)
        client.send("GET / HTTP/1.1\r\nHost: h\r\nX: " + String(repeating: "x", count: 40_000))
        client.send("\r\n\r\n")
        let status = client.receiveAll().split(separator: " ").dropFirst().first
        #expect(status == "431" || status == "413")
        let url = try RawClient(port: server.port)
        url.send("GET /" + String(repeating: "x", count: 40_000) + " HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(url.receiveAll().hasPrefix("HTTP/1.1 4"))
    }

    @Test func fields_that_would_end_the_head_are_not_sent() throws {
        for headers: HTTPHeaders in [["X": "a\r\nSet-Cookie: b=c"], ["X: y\r\nZ": "a"], ["": "a"]] {
            let server = try plainServer { _ in HTTPResponse(status: 200, headers: headers) }
            let client = try RawClient(port: server.port)
            client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            let answer = client.receiveAll()
            #expect(answer.hasPrefix("HTTP/1.1 500") && !answer.contains("Set-Cookie"))
        }
    }

    @Test func connections_beyond_the_limit_wait_their_turn() throws {
        let server = try plainServer(limits { $0.connectionLimit = 4 }) { _ in
            HTTPResponse(status: 204)
        }
        var held: [RawClient] = []
        for _ in 0..<12 {
            let client = try RawClient(port: server.port)
            client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n")
            held.append(client)
        }
        #expect(eventually { server.connectionCount == 4 })
        for client in held { client.send("\r\n") }
        for client in held { #expect(client.receiveAll().hasPrefix("HTTP/1.1 204")) }
    }

    @Test func nothing_secret_is_printed() {
        let secret = HTTPHeaders(dictionaryLiteral: ("Authorization", "Bearer s3cret"))
        let body = Array("s3cret".utf8)
        let values: [Any] = [
            HTTPRequest(method: "GET", path: "/", headers: secret, body: body),
            HTTPResponse(status: 200, headers: secret, body: body),
            HTTPClientRequest("GET", "https://h/", headers: secret, body: body),
            HTTPClientResponse(status: 200, headers: secret, body: body),
        ]
        for value in values {
            var dumped = ""
            dump(value, to: &dumped)
            for text in ["\(value)", String(reflecting: value), dumped] {
                #expect(!text.contains("s3cret") && !text.contains("115"), "\(text)")
            }
        }
    }

    @Test func stop_returns_with_idle_and_half_open_connections() throws {
        let server = try plainServer { _ in HTTPResponse(status: 204) }
        let port = server.port
        let idle = try RawClient(port: port)
        let half = try RawClient(port: port)
        half.send("GET / HT")
        #expect(eventually { server.connectionCount == 2 })
        server.stop()
        server.stop()
        #expect(idle.receiveAll() == "" && half.receiveAll() == "")
        #expect(throws: HTTPClientError.self) {
            try HTTPClient().perform(HTTPClientRequest("GET", "http://127.0.0.1:\(port)/"))
        }
    }
}

extension String {
    /// How often `part` is in it.
    func components(_ part: String) -> Int {
        let bytes = Array(utf8)
        let wanted = Array(part.utf8)
        guard bytes.count >= wanted.count else { return 0 }
        return (0...bytes.count - wanted.count).count { bytes[$0...].starts(with: wanted) }
    }
}
