// SPDX-License-Identifier: Apache-2.0
import Glibc
import Synchronization
import Testing

@testable import HTTP

/// What needs a process of its own: its descriptors are counted, or its environment is changed.
@Suite struct ProcessTests {
    @Test func many_threads_and_a_thousand_requests_leak_nothing() async {
        await #expect(processExitsWith: .success) {
            let before = descriptorCount()
            let made = try Certificate.selfSigned(
                commonName: "hub", addresses: ["127.0.0.1"], days: 1)
            let pin = try Certificate.pin(ofPEM: made.certificatePEM)
            for listen in [
                HTTPServer.Listen.plainLoopback(port: 0),
                .tls(
                    address: "127.0.0.1", port: 0, certificatePEM: made.certificatePEM,
                    key: made.key),
            ] {
                var options = HTTPServer.Options(listen)
                options.headDeadline = patience
                let server = try HTTPServer(options) { request in
                    HTTPResponse(status: 200, body: request.body)
                }
                let scheme = listen.isTLS ? "https" : "http"
                let answered = askInParallel("\(scheme)://127.0.0.1:\(server.port)/", pin: pin)
                #expect(answered == 1000)
                #expect(eventually { server.connectionCount == 0 })
                server.stop()
            }
            #expect(eventually { descriptorCount() <= before })
        }
    }

    @Test func streams_and_cut_connections_leak_nothing() async {
        await #expect(processExitsWith: .success) {
            let before = descriptorCount()
            let server = try plainServer(limits { $0.headDeadline = .milliseconds(50) }) { _ in
                let stream = EventStream()
                stream.send(event: "a", data: "b")
                return .events(stream)
            }
            for _ in 0..<20 {
                let silent = try RawClient(port: server.port)
                let stream = try RawClient(port: server.port)
                stream.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
                _ = stream.receive()
                #expect(silent.receiveAll() == "")
            }
            server.stop()
            #expect(server.cutCount == 20)
            #expect(eventually { descriptorCount() <= before })
        }
    }

    @Test func proxies_of_the_environment_are_used() async {
        await #expect(processExitsWith: .success) {
            let peer = Misbehaving.shared
            var options = HTTPClient.Options()
            options.pins = [try Certificate.pin(ofPEM: peer.bytes("good.pem"))]
            options.connectTimeout = .seconds(30)
            let request = HTTPClientRequest("GET", "https://hub.invalid/good")
            unsafe setenv("https_proxy", "http://127.0.0.1:\(peer.ports["proxy"]!)", 1)
            #expect(try HTTPClient(options).perform(request).text == "{}")
            // The proxy refuses this one.
            let refused = HTTPClientRequest("GET", "https://refused.invalid/")
            let error = #expect(throws: HTTPClientError.self) {
                try HTTPClient(options).perform(refused)
            }
            #expect(error?.kind == .connect && error!.description.contains("403"))
            unsafe setenv("no_proxy", "hub.invalid", 1)
            let direct = #expect(throws: HTTPClientError.self) {
                try HTTPClient(options).perform(request)
            }
            #expect(direct?.kind == .resolve)
            // Plain HTTP stays on this host.
            unsafe setenv("http_proxy", "http://127.0.0.1:1", 1)
            unsafe setenv("all_proxy", "http://127.0.0.1:1", 1)
            let plain = HTTPClientRequest("GET", peer.url("/good"))
            #expect(try HTTPClient(options).perform(plain).text == "{}")
        }
    }

    @Test func a_proxy_that_intercepts_TLS_is_named() async {
        await #expect(processExitsWith: .success) {
            let peer = Misbehaving.shared
            unsafe setenv("https_proxy", "http://127.0.0.1:\(peer.ports["proxy"]!)", 1)
            let error = #expect(throws: HTTPClientError.self) {
                try HTTPClient().perform(HTTPClientRequest("GET", "https://intercepted.invalid/"))
            }
            #expect(error!.description.contains("CN = Intercepting Proxy CA"))
        }
    }
}

/// On 10 threads 100 requests each, a tenth of them on new connections; how many were right.
/// No deadline is to cut a request short on a machine that has little time for this process.
private let patience = Duration.seconds(300)

private func askInParallel(_ url: String, pin: String) -> Int {
    let answered = Atomic<Int>(0)
    onThreads(10) { thread in
        var options = HTTPClient.Options()
        options.pins = [pin]
        options.connectTimeout = patience
        options.totalTimeout = patience
        guard let client = try? HTTPClient(options) else { return }
        for index in 0..<100 {
            if index % 10 == 0 { client.forgetConnections() }
            let body = Array("\(thread) \(index)".utf8)
            let response = try? client.perform(HTTPClientRequest("POST", url, body: body))
            if response?.status == 200, response?.body == body {
                answered.add(1, ordering: .relaxed)
            }
        }
    }
    return answered.load(ordering: .relaxed)
}
