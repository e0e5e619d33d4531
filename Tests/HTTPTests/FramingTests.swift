// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import HTTP

/// Requests whose end a proxy could see elsewhere than the server does (RFC 9112 section 11.2).
struct FramingTests {
    private static let end = "0\r\n\r\n"
    /// Fields of a request, and the body that one reading of them gives.
    static let ambiguous: [(fields: String, body: String)] = [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", end),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5", end),
        ("Transfer-Encoding : chunked\r\nContent-Length: 2", "{}"),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", end),
        ("Transfer-Encoding: identity\r\nContent-Length: 2", "{}"),
        ("Transfer-Encoding: identity", ""), ("Transfer-Encoding: xchunked", end),
        ("Transfer-Encoding: chunked, identity", end), ("Transfer-Encoding: gzip, chunked", end),
        ("Transfer-Encoding: \u{B}chunked", end), ("Content-Length: 2\r\nContent-Length: 3", "{}"),
        ("Content-Length: 2\r\nContent-Length: 2", "{}"), ("Content-Length: 2, 2", "{}"),
        ("Content-Length: +2", "{}"), ("Content-Length: 0x2", "{}"), ("Content-Length:", ""),
        ("Content-Length:\r\n 2", "{}"),
        ("Transfer-Encoding:\r\n\tchunked", end), ("Content-Length: 0\r\n 2", "{}"),
        ("Content-Length : 2", "{}"),
        ("X: a\rContent-Length: 5\r\nContent-Length: 2", "{}"), ("Host: other", ""),
        ("X\u{1}Y: z", ""), ("X: a\u{1}b", ""),
    ]

    @Test(arguments: ambiguous.indices)
    func an_end_that_can_be_read_in_two_ways_ends_the_connection(_ index: Int) throws {
        let (fields, body) = Self.ambiguous[index]
        let seen = Notes<String>()
        let server = try plainServer { request in
            seen.add(request.path)
            return HTTPResponse(status: 204)
        }
        let client = try RawClient(port: server.port)
        client.send(
            "POST /first HTTP/1.1\r\nHost: h\r\n\(fields)\r\n\r\n\(body)"
                + "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n")
        let answer = client.receiveAll()
        #expect(answer.isEmpty || answer.hasPrefix("HTTP/1.1 4"), "\(fields): \(answer)")
        #expect(seen.all == [], "\(fields)")
        #expect(eventually { server.connectionCount == 0 })
    }

    @Test func chunks_are_not_for_old_clients() throws {
        let server = try plainServer { _ in HTTPResponse(status: 204) }
        let client = try RawClient(port: server.port)
        client.send(
            "POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "2\r\n{}\r\n\(Self.end)")
        #expect(client.receiveAll().contains(" 400 "))
    }

    @Test func what_has_one_end_is_taken() throws {
        let seen = Notes<String>()
        let server = try plainServer { request in
            seen.add("\(request.path) \(request.body.count)")
            return HTTPResponse(status: 204)
        }
        let client = try RawClient(port: server.port)
        let head = " HTTP/1.1\r\nHost: h\r\nX-Tab: a\tb\r\n"
        client.send("POST /1\(head)Content-Length: 2\r\n\r\n{}")
        client.send("POST /2\(head)Transfer-Encoding: Chunked\r\n\r\n2;x=y\r\n{}\r\n\(Self.end)")
        client.send("POST /3\(head)Content-Length: 0\r\n\r\nGET /4\(head)\r\n")
        #expect(eventually { seen.all.count == 4 })
        #expect(seen.all == ["/1 2", "/2 2", "/3 0", "/4 0"])
    }
}
