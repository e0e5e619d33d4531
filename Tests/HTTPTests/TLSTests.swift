// SPDX-License-Identifier: Apache-2.0
import Glibc
import HostProcess
import Testing

@testable import HTTP

@Suite struct TLSTests {
    private let peer = Misbehaving.shared

    private func ask(
        _ server: String, host: String = "127.0.0.1", _ change: (inout HTTPClient.Options) -> Void
    ) throws -> HTTPClientResponse {
        var options = HTTPClient.Options()
        change(&options)
        return try HTTPClient(options).perform(
            HTTPClientRequest("GET", peer.url("/good", server, host: host)))
    }

    private func failure(
        _ server: String, _ change: (inout HTTPClient.Options) -> Void = { _ in }
    ) -> HTTPClientError? {
        do {
            _ = try ask(server, change)
            return nil
        } catch { return error as? HTTPClientError }
    }

    private func pin(_ name: String) throws -> String {
        try Certificate.pin(ofPEM: HostFile.read(peer.file(name), limit: 65536).bytes)
    }

    // ---- trust

    @Test func an_extra_CA_is_trusted_beside_the_systems() throws {
        let ca = peer.file("ca.pem")
        let other = peer.file("other.pem")
        // Stand-in for the system's trust: "other". Both are good with the extra file, one alone
        // without it.
        for server in ["good", "intercepted"] {
            let answer = try ask(server) {
                $0.systemBundle = other
                $0.extraCAFile = ca
            }
            #expect(answer.text == "{}", "\(server)")
        }
        #expect(try ask("intercepted") { $0.systemBundle = other }.text == "{}")
        #expect(failure("good") { $0.systemBundle = other } != nil)
        #expect(failure("good") != nil, "the real trust of the system does not know it")
        #expect(try ask("good", host: "localhost") { $0.extraCAFile = ca }.text == "{}")
        #expect(try ask("tls12") { $0.extraCAFile = ca }.text == "{}")
    }

    @Test func case_C70_who_signed_what_is_named() throws {
        let error = try #require(failure("intercepted") { $0.extraCAFile = peer.file("ca.pem") })
        guard case .tls(let seen?) = error.kind else {
            Issue.record("\(error)")
            return
        }
        #expect(seen.issuer == "O = Tests, CN = Intercepting Proxy CA")
        #expect(seen.subject == "CN = intercepted.example")
        #expect(seen.problem == "unable to get local issuer certificate")
        #expect(seen.pin == (try pin("intercepted.pem")))
        #expect(error.description.contains(seen.issuer))
        #expect(error.description.contains(seen.problem))
    }

    @Test func case_C71_the_next_try_can_succeed() throws {
        let scratch = Scratch()
        let ca = try HostFile.read(peer.file("ca.pem"), limit: 65536).bytes
        let wrong = try HostFile.read(peer.file("other.pem"), limit: 65536).bytes
        let path = scratch.write("extra.pem", wrong)
        #expect(failure("good") { $0.extraCAFile = path } != nil)
        _ = scratch.write("extra.pem", ca)
        #expect(try ask("good") { $0.extraCAFile = path }.text == "{}")
    }

    @Test func expired_misnamed_and_old_servers_are_refused() throws {
        let expectations = [
            ("expired", "certificate has expired"), ("wrongname", "wrongname.example"),
            ("tls11", "TLS 1.2"),
        ]
        for (server, text) in expectations {
            let error = try #require(failure(server) { $0.extraCAFile = peer.file("ca.pem") })
            guard case .tls = error.kind else {
                Issue.record("\(server): \(error.kind)")
                continue
            }
            #expect(error.description.contains(text), "\(error)")
        }
        let noise = try HTTPClient()
        #expect(throws: HTTPClientError.self) {
            try noise.perform(
                HTTPClientRequest("GET", "https://127.0.0.1:\(peer.ports["noise"]!)/"))
        }
    }

    @Test func a_CA_file_that_is_none_is_refused_at_once() throws {
        let scratch = Scratch()
        for path in [
            scratch.path + "/absent", scratch.write("empty", []), scratch.write("x", [1, 2]),
        ] {
            #expect(throws: HTTPError.self) {
                var options = HTTPClient.Options()
                options.extraCAFile = path
                _ = try HTTPClient(options)
            }
        }
    }

    // ---- pins

    @Test func a_pin_alone_decides() throws {
        let good = try pin("good.pem")
        let expired = try pin("expired.pem")
        let nobody = "sha256//" + String(repeating: "A", count: 43) + "="
        #expect(try ask("good") { $0.pins = [good] }.text == "{}")
        #expect(try ask("good") { $0.pins = [nobody, good] }.text == "{}", "one of several")
        #expect(try ask("expired") { $0.pins = [expired] }.text == "{}")
        for pins in [[expired], [nobody], [nobody, expired]] {
            let error = try #require(failure("good") { $0.pins = pins })
            guard case .pinMismatch(let seen?) = error.kind else {
                Issue.record("\(error.kind)")
                continue
            }
            #expect(seen.pin == good)
            #expect(error.description.contains(good))
        }
        // The right chain does not help against the wrong key.
        #expect(
            failure("good") {
                $0.pins = [nobody]
                $0.extraCAFile = peer.file("ca.pem")
            } != nil)
        #expect(failure("tls11") { $0.pins = [good] } != nil, "a pin allows no old TLS")
    }

    @Test func malformed_pins_are_refused() {
        for pin in [
            "", "sha256//", "/etc/passwd", "sha256//AAAA",
            "sha1//" + String(repeating: "A", count: 44),
        ] {
            #expect(throws: HTTPError.self) {
                var options = HTTPClient.Options()
                options.pins = [pin]
                _ = try HTTPClient(options)
            }
        }
    }

    // ---- our own server

    private func tlsServer(
        _ made: Certificate.Made, _ change: (inout HTTPServer.Options) -> Void = { _ in }
    ) throws -> HTTPServer {
        var options = HTTPServer.Options(
            .tls(
                address: "127.0.0.1", port: 0, certificatePEM: made.certificatePEM, key: made.key))
        change(&options)
        return try HTTPServer(options) { request in
            HTTPResponse(status: 200, body: Array("\(request.isSecure) \(request.path)".utf8))
        }
    }

    @Test func our_client_and_curl_accept_a_self_made_certificate_by_its_pin() throws {
        let made = try Certificate.selfSigned(
            commonName: "hub", addresses: ["127.0.0.1", "::1", "localhost"], days: 30)
        let pin = try Certificate.pin(ofPEM: made.certificatePEM)
        let server = try tlsServer(made)
        let url = "https://127.0.0.1:\(server.port)/x"
        var options = HTTPClient.Options()
        options.pins = [pin]
        let client = try HTTPClient(options)
        #expect(try client.perform(HTTPClientRequest("GET", url)).text == "true /x")
        #expect(try client.perform(HTTPClientRequest("GET", url)).text == "true /x")
        #expect(server.connectionCount == 1, "the same connection")
        #expect(throws: HTTPClientError.self) {
            try HTTPClient().perform(HTTPClientRequest("GET", url))
        }
        let scratch = Scratch()
        let file = scratch.write("hub.pem", made.certificatePEM)
        for trust in [["-k", "--pinnedpubkey", pin], ["--cacert", file]] {
            let curl = try run("/usr/bin/curl", ["-sS", url] + trust)
            #expect(curl.end == .exited(0) && curl.output == "true /x", "\(curl.output)")
        }
        let byName = try run(
            "/usr/bin/curl", ["-sS", "--cacert", file, "https://localhost:\(server.port)/n"])
        #expect(byName.output == "true /n", "\(byName.output)")
    }

    @Test func only_TLS_1_2_and_newer_is_spoken() throws {
        let made = try Certificate.selfSigned(commonName: "hub", addresses: ["127.0.0.1"], days: 1)
        let server = try tlsServer(made)
        func connects(_ version: String) throws -> Bool {
            let arguments = ["s_client", "-connect", "127.0.0.1:\(server.port)", version]
            // OpenSSL 3 itself forbids the old ones otherwise.
            let result = try run(
                "/usr/bin/openssl", arguments + ["-cipher", "ALL:@SECLEVEL=0"])
            return result.end == .exited(0) && !result.output.contains("Cipher is (NONE)")
        }
        #expect(try connects("-tls1_2"))
        #expect(try connects("-tls1_3"))
        #expect(try !connects("-tls1_1"))
        #expect(try !connects("-tls1"))
    }

    @Test func plain_text_and_dribbled_handshakes_do_no_harm() throws {
        let made = try Certificate.selfSigned(commonName: "hub", addresses: ["127.0.0.1"], days: 1)
        let server = try tlsServer(made) { $0.headDeadline = .milliseconds(200) }
        let plain = try RawClient(port: server.port)
        plain.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(!plain.receiveAll().contains("HTTP/1.1 200"))
        // The beginning of a ClientHello record (RFC 8446 section 5.1) that says 512 bytes follow.
        let slow = try RawClient(port: server.port)
        slow.send([0x16, 3, 1, 2, 0, 1])
        #expect(eventually { !slow.send([0]) || slow.isClosed() })
        #expect(eventually { server.connectionCount == 0 })
    }

    @Test func one_address_has_a_share_of_the_connections() throws {
        let made = try Certificate.selfSigned(commonName: "hub", addresses: ["127.0.0.1"], days: 1)
        let server = try tlsServer(made) { $0.addressLimit = 3 }
        var held: [RawClient] = []
        for _ in 0..<3 { held.append(try RawClient(port: server.port)) }
        #expect(eventually { server.connectionCount == 3 })
        let fourth = try RawClient(port: server.port)
        #expect(fourth.receiveAll() == "")
        #expect(eventually { server.connectionCount == 3 })
        #expect(server.cutCount == 1)
        held = []
        #expect(eventually { server.connectionCount == 0 })
        var options = HTTPClient.Options()
        options.pins = [try Certificate.pin(ofPEM: made.certificatePEM)]
        let response = try HTTPClient(options).perform(
            HTTPClientRequest("GET", "https://127.0.0.1:\(server.port)/"))
        #expect(response.status == 200)
    }

    @Test func an_IPv6_client_has_64_bits_and_a_mapped_one_is_IPv4() throws {
        func network(_ address: String) -> ClientNetwork? {
            unsafe withAddress(address, 0) { pointer, _ in unsafe ClientNetwork(pointer) } ?? nil
        }
        #expect(network("2001:db8:1:2::3") == network("2001:db8:1:2:ffff::9"))
        #expect(network("2001:db8:1:2::3") != network("2001:db8:1:3::3"))
        #expect(network("192.0.2.1") == network("::ffff:192.0.2.1"))
        #expect(network("192.0.2.1") != network("192.0.2.2"))
        #expect(network("::c000:201") != network("192.0.2.1"))
    }

    @Test func one_socket_serves_both_families() throws {
        let made = try Certificate.selfSigned(commonName: "hub", addresses: [], days: 1)
        let options = HTTPServer.Options(
            .tls(address: "*", port: 0, certificatePEM: made.certificatePEM, key: made.key))
        let server = try HTTPServer(options) { request in
            guard case .ip(let address) = request.origin else { return HTTPResponse(status: 400) }
            return HTTPResponse(status: 200, body: Array(address.utf8))
        }
        var client = HTTPClient.Options()
        client.pins = [try Certificate.pin(ofPEM: made.certificatePEM)]
        for (host, address) in [("127.0.0.1", "127.0.0.1"), ("[::1]", "::1")] {
            let response = try HTTPClient(client).perform(
                HTTPClientRequest("GET", "https://\(host):\(server.port)/"))
            #expect(response.text == address)
        }
    }

    @Test func certificate_and_key_must_belong_together() throws {
        let one = try Certificate.selfSigned(commonName: "one", addresses: [], days: 1)
        let two = try Certificate.selfSigned(commonName: "two", addresses: [], days: 1)
        #expect(throws: HTTPError.self) {
            _ = try tlsServer(.init(certificatePEM: one.certificatePEM, key: two.key))
        }
        #expect(throws: HTTPError.self) {
            _ = try tlsServer(.init(certificatePEM: [], key: two.key))
        }
        #expect(throws: HTTPError.self) {
            _ = try tlsServer(
                .init(certificatePEM: one.certificatePEM, key: ConnectionSecret(copying: [1])))
        }
        #expect("\(one)".contains("(hidden)") && !"\(one.key)".contains("PRIVATE"))
    }

    @Test func what_is_in_a_self_made_certificate() throws {
        let made = try Certificate.selfSigned(
            commonName: "hub.example", addresses: ["hub.example", "192.0.2.1", "2001:db8::1"],
            days: 10)
        let scratch = Scratch()
        let file = scratch.write("hub.pem", made.certificatePEM)
        let text = try run("/usr/bin/openssl", ["x509", "-in", file, "-noout", "-text"]).output
        for part in [
            "Subject: CN = hub.example", "Issuer: CN = hub.example", "ASN1 OID: prime256v1",
            "DNS:hub.example, IP Address:192.0.2.1, IP Address:2001:DB8:0:0:0:0:0:1", "CA:FALSE",
            "Digital Signature", "TLS Web Server Authentication", "ecdsa-with-SHA256", "Version: 3",
        ] {
            #expect(text.contains(part), "\(part)")
        }
        let expiry = try Certificate.expiry(ofPEM: made.certificatePEM)
        #expect(abs(expiry - Int64(time(nil)) - 10 * 86400) < 3600)
        // The pin, made by others.
        let key = try run(
            "/bin/sh",
            [
                "-c",
                "openssl x509 -in \(file) -pubkey -noout | openssl pkey -pubin -outform der"
                    + " | openssl dgst -sha256 -binary | base64",
            ]
        ).output
        #expect(try Certificate.pin(ofPEM: made.certificatePEM) == "sha256//" + key)
    }
}
