// SPDX-License-Identifier: Apache-2.0
import TestSupport
import Testing

@testable import HTTP

@Suite struct MutationTests {
    private static let requests = [
        "GET /api/v1/x?a=b&c=%20d HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer abc\r\n\r\n",
        "POST /api/v1/provision HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json\r\n"
            + "Content-Length: 14\r\n\r\n{\"token\":\"abc\"}",
        "POST / HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
            + "3;x=y\r\nabc\r\n0\r\nTrailer: t\r\n\r\n",
        "PUT /a HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    ]
    private static let pieces: [[UInt8]] = [
        "\r\n", "\n", "\r", "\u{0}", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", " ",
        ":", "%", "%00", "/../", "?", "HTTP/9.9", "ffffffffffffffff\r\n", "-1", "\t", "Host: x\r\n",
        "Connection: close\r\n", "Upgrade: h2c\r\n", "Cookie: a=\"b; c\r\n",
    ].map { Array($0.utf8) }

    private static func mutated(_ generator: inout SeededRandom) -> [UInt8] {
        var bytes = Array(requests.randomElement(using: &generator)!.utf8)
        for _ in 0..<Int.random(in: 1...4, using: &generator) {
            let place = Int.random(in: 0...bytes.count, using: &generator)
            switch Int.random(in: 0..<5, using: &generator) {
            case 0: bytes.insert(contentsOf: pieces.randomElement(using: &generator)!, at: place)
            case 1 where place < bytes.count: bytes[place] = .random(in: 0...255, using: &generator)
            case 2: bytes.removeSubrange(place..<min(bytes.count, place + 3))
            case 3: bytes.removeSubrange(place...)
            default: bytes += Array(requests.randomElement(using: &generator)!.utf8)
            }
        }
        return bytes
    }

    @Test func mutated_requests_do_no_harm() throws {
        let odd = Notes<String>()
        let server = try plainServer(
            limits {
                $0.headDeadline = .milliseconds(60)
                $0.bodyDeadline = .milliseconds(60)
                $0.idleDeadline = .milliseconds(60)
                $0.bodyLimit = 1000
            }
        ) { request in
            let isSound =
                request.body.count <= 1000 && !request.path.utf8.contains(0)
                && !request.path.contains("?") && !request.method.isEmpty
            if !isSound { odd.add("\(request)") }
            return HTTPResponse(status: 200, body: request.body)
        }
        var generator = SeededRandom(seed: 20_26)
        for _ in 0..<25 {
            // 120 at a time, since the server waits for the end of some.
            var clients: [(RawClient, [UInt8])] = []
            for _ in 0..<120 {
                let bytes = Self.mutated(&generator)
                let client = try RawClient(port: server.port)
                client.send(bytes)
                client.endSending()
                clients.append((client, bytes))
            }
            for (client, bytes) in clients {
                let answer = client.receiveAll()
                #expect(
                    answer.isEmpty || answer.hasPrefix("HTTP/1."),
                    "\(String(decoding: bytes, as: UTF8.self).debugDescription)")
            }
        }
        #expect(odd.all == [])
        #expect(eventually { server.connectionCount == 0 })
        let response = try HTTPClient().perform(
            HTTPClientRequest("POST", "http://127.0.0.1:\(server.port)/", body: [1, 2]))
        #expect(response.body == [1, 2])
    }
}
