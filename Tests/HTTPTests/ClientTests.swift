// SPDX-License-Identifier: Apache-2.0
import Glibc
import HostProcess
import Synchronization
import Testing

@testable import HTTP

/// The client against servers that misbehave, without TLS.
@Suite struct ClientTests {
    private let peer = Misbehaving.shared

    private func get(
        _ path: String, _ server: String = "plain",
        _ change: (inout HTTPClient.Options) -> Void = { _ in }
    ) throws -> HTTPClientResponse {
        var options = HTTPClient.Options()
        change(&options)
        return try HTTPClient(options).perform(HTTPClientRequest("GET", peer.url(path, server)))
    }

    private func failure(
        _ path: String, _ server: String = "plain",
        _ change: (inout HTTPClient.Options) -> Void = { _ in }
    ) -> HTTPClientError? {
        do {
            _ = try get(path, server, change)
            return nil
        } catch { return error as? HTTPClientError }
    }

    @Test func any_status_and_type_is_an_answer() throws {
        #expect(try get("/good").text == "{}")
        let html = try get("/html")
        #expect(html.status == 200 && html.headers["content-TYPE"] == "text/html")
        let error = try get("/500")
        #expect(error.status == 500 && error.text == "oops")
        #expect(try get("/longer").text == "{}")
    }

    @Test func redirects_are_not_followed() throws {
        let response = try get("/redirect")
        #expect(response.status == 302)
        #expect(response.headers["Location"] == "/good")
    }

    @Test func case_C69_a_cut_answer_is_no_answer() {
        for path in ["/cut", "/cut-chunked", "/nothing"] {
            #expect(failure(path)?.kind == .cut, "\(path)")
        }
        #expect(failure("/good", "noise") != nil)
    }

    @Test func an_answer_that_is_too_long_is_given_up() throws {
        for path in ["/huge", "/huge-chunked", "/endless-head"] {
            #expect(failure(path)?.kind == .tooLarge, "\(path)")
        }
        #expect(try get("/good") { $0.bodyLimit = 2 }.text == "{}")
        #expect(failure("/good") { $0.bodyLimit = 1 }?.kind == .tooLarge)
    }

    @Test func a_slow_or_dribbling_answer_has_a_time_limit() {
        for path in ["/slow", "/dribble"] {
            #expect(failure(path) { $0.totalTimeout = .milliseconds(200) }?.kind == .timeout)
        }
    }

    @Test func nobody_there_and_no_such_name_differ() throws {
        let server = try plainServer { _ in HTTPResponse(status: 204) }
        let port = server.port
        server.stop()
        let client = try HTTPClient()
        func kind(_ url: String) -> HTTPClientError.Kind? {
            do {
                _ = try client.perform(HTTPClientRequest("GET", url))
                return nil
            } catch { return error.kind }
        }
        #expect(kind("http://127.0.0.1:\(port)/") == .connect)
        #expect(kind("https://127.0.0.1:\(port)/") == .connect)
        // RFC 6761 section 6.4: no resolver knows it.
        #expect(kind("https://hub.invalid/") == .resolve)
    }

    @Test func plain_HTTP_beyond_this_host_is_refused() throws {
        let client = try HTTPClient()
        for url in [
            "http://hub.example/", "http://192.0.2.1/", "http://127.0.0.1.example/",
            "ftp://127.0.0.1/",
            "file:///etc/passwd", "https://user:s3cret@127.0.0.1/", "not a url", "",
        ] {
            do {
                _ = try client.perform(HTTPClientRequest("GET", url))
                Issue.record("\(url) was opened")
            } catch {
                #expect(error.kind == .other, "\(url)")
                #expect(!error.description.contains("s3cret"))
            }
        }
    }

    @Test func the_token_goes_out_and_nothing_is_added() throws {
        let client = try HTTPClient()
        let token = ConnectionSecret(copying: Array("abc-123".utf8))
        var request = HTTPClientRequest(
            "POST", peer.url("/echo-head"), headers: ["X-A": "b"], body: Array("{}".utf8),
            bearer: token)
        let head = try client.perform(request).text
        #expect(head.contains("\r\nAuthorization: Bearer abc-123\r\n"))
        #expect(head.contains("\r\nContent-Type: application/json\r\n"))
        #expect(head.contains("\r\nX-A: b\r\n"))
        #expect(!head.contains("Expect"))
        #expect("\(token)" == "(hidden)" && "\(request)".contains("abc-123") == false)
        let empty = try client.perform(HTTPClientRequest("POST", peer.url("/echo-head"))).text
        #expect(empty.contains("Content-Length: 0") && !empty.contains("Content-Type"))
        // Cookies are not kept, and a token is not remembered.
        _ = try client.perform(HTTPClientRequest("GET", peer.url("/cookie")))
        request = HTTPClientRequest("GET", peer.url("/echo-head"))
        let next = try client.perform(request).text
        #expect(
            next.hasPrefix("GET ") && !next.contains("Cookie") && !next.contains("Authorization"))
        request.headers = ["X": "a\r\nY: b"]
        #expect(throws: HTTPClientError.self) { try client.perform(request) }
    }

    @Test func one_connection_serves_many_requests() throws {
        let seen = Notes<Int>()
        let server = try plainServer { _ in HTTPResponse(status: 204) }
        let client = try HTTPClient()
        let url = "http://127.0.0.1:\(server.port)/"
        for _ in 0..<20 {
            _ = try client.perform(HTTPClientRequest("POST", url))
            seen.add(server.connectionCount)
        }
        #expect(seen.all == [Int](repeating: 1, count: 20))
    }

    @Test func a_server_that_was_restarted_is_found_again() throws {
        let client = try HTTPClient()
        let first = try plainServer { _ in HTTPResponse(status: 204) }
        let port = first.port
        _ = try client.perform(HTTPClientRequest("POST", "http://127.0.0.1:\(port)/"))
        first.stop()
        let second = try HTTPServer(.init(.plainLoopback(port: port))) { _ in
            HTTPResponse(status: 205)
        }
        let response = try client.perform(HTTPClientRequest("POST", "http://127.0.0.1:\(port)/"))
        #expect(response.status == 205)
        _ = second
    }

    @Test func cancel_ends_a_request_that_waits() throws {
        let client = try HTTPClient()
        let started = Atomic<Bool>(false)
        let kinds = Notes<HTTPClientError.Kind>()
        let server = try plainServer { _ in
            started.store(true, ordering: .relaxed)
            return .events(EventStream())  // never says anything
        }
        let url = "http://127.0.0.1:\(server.port)/"
        onThreads(2) { thread in
            if thread == 0 {
                do throws(HTTPClientError) {
                    _ = try client.perform(HTTPClientRequest("GET", url))
                } catch { kinds.add(error.kind) }
            } else {
                _ = eventually { started.load(ordering: .relaxed) }
                client.cancel()
            }
        }
        #expect(kinds.all == [.cancelled])
    }

    @Test func event_streams_of_others_are_read() throws {
        var seen: [String] = []
        let client = try HTTPClient()
        let response = try client.events(HTTPClientRequest("GET", peer.url("/events"))) {
            seen.append("\($0)=\($1)")
            return true
        }
        #expect(response.status == 200)
        #expect(seen == ["config=one\ntwo", "message=three", "last="])
        let other = try client.events(HTTPClientRequest("GET", peer.url("/500"))) { _, _ in true }
        #expect(other.status == 500 && other.text == "oops")
    }

    @Test func a_silent_event_stream_is_given_up() throws {
        var options = HTTPClient.Options()
        options.streamTimeout = .seconds(1)
        let client = try HTTPClient(options)
        do {
            try client.events(HTTPClientRequest("GET", peer.url("/silent-events"))) { _, _ in true }
            Issue.record("it went on")
        } catch { #expect(error.kind == .timeout) }
    }
}
