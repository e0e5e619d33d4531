// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import HTTP
import Testing

@testable import Hub

struct RouterTests {
    @Test func aPathHasOneSpelling() throws {
        let test = try TestHub()
        #expect(test.operate("GET", "/counts").status == 200)
        for path in [
            "", "/", "//", "/api", "/api/v1/admin", "/api/v1/admin/", "/api/v1/admin/counts/",
            "/api/v1//admin/counts", "/api/v1/../v1/admin/counts", "/api/v1/admin/./counts",
            "/api/v1/admin/%63ounts", "/API/v1/admin/counts", "/api/v1/admin/counts%00",
            "/api/v1/admin/counts%2F", "api/v1/admin/counts", "/api/v1/admin/devices/%",
            "/api/v1/admin/devices/%zz", "/api/v1/admin/devices/%FF", "/%2e%2e/%2e%2e/etc/passwd",
            "http://other/api/v1/admin/counts", "*",
        ] {
            let answer = test.hub.answer(
                HTTPRequest(
                    method: "GET", path: path, origin: .unix(user: 0, group: 0, process: 1)))
            #expect(answer.status == 404, "\(path)")
            #expect(answer.code == "not_found")
        }
    }

    @Test func aMethodThatIsNotThereIsAnsweredWithThoseThatAre() throws {
        let test = try TestHub()
        for (method, path, allowed) in [
            ("GET", "/api/v1/provision", "POST"), ("PUT", "/api/v1/heartbeat", "POST"),
            ("POST", "/api/v1/openapi.json", "GET, HEAD"),
            ("PATCH", "/api/v1/admin/forwards/x", "GET, PUT, DELETE, HEAD"),
            ("TRACE", "/api/v1/admin/counts", "GET, HEAD"),
            ("nonsense", "/api/v1/admin/counts", "GET, HEAD"),
        ] {
            let answer = test.send(method, path)
            #expect(answer.status == 405, "\(method) \(path)")
            #expect(answer.headers["Allow"] == allowed)
        }
    }

    @Test func headHasNoBody() throws {
        let test = try TestHub()
        let answer = test.operate("HEAD", "/counts")
        #expect(answer.status == 200)
        #expect(answer.body.isEmpty)
    }

    @Test func aBodyOfAnotherKindIsRefused() throws {
        let test = try TestHub()
        for type in ["text/plain", "", "application/x-www-form-urlencoded", "application/jsonp"] {
            let answer = test.hub.answer(
                HTTPRequest(
                    method: "POST", path: "/api/v1/provision", headers: ["Content-Type": type],
                    body: Array("{}".utf8)))
            #expect(answer.status == 415, "\(type)")
        }
        let good = test.hub.answer(
            HTTPRequest(
                method: "POST", path: "/api/v1/provision",
                headers: ["content-type": "Application/JSON; charset=utf-8"],
                body: Array("{}".utf8)))
        #expect(good.code == "bad_request")
    }

    /// Whatever comes, there is an answer of ours, and nothing is remembered of it.
    @Test func nonsenseNeverGetsThrough() throws {
        let test = try TestHub()
        let device = try test.enrol()
        let before = test.hub.withCore { $0.model }
        var generator = SystemRandomNumberGenerator()
        let good = Wire.encode(
            HeartbeatRequest(
                deviceId: device.id, boot: 1, sessionId: "s1", sequence: 9, agentVersion: "1"))
        for round in 0..<1000 {
            var body = good
            for _ in 0..<Int.random(in: 1...8, using: &generator) where !body.isEmpty {
                let index = body.indices.randomElement(using: &generator)!
                switch Int.random(in: 0..<3, using: &generator) {
                case 0: body[index] = UInt8.random(in: 0...255, using: &generator)
                case 1: body.remove(at: index)
                default: body.insert(UInt8.random(in: 0x20...0x7E, using: &generator), at: index)
                }
            }
            let route = Hub.routes.randomElement(using: &generator)!
            let path = round % 2 == 0 ? "/api/v1/heartbeat" : route.path
            // Ends the device; never ends; takes 64 MiB and time.
            let left = ["/unenroll", "/events", "/login"]
            guard !left.contains(where: { path.hasSuffix($0) }) else { continue }
            let answer = test.send(
                round % 2 == 0 ? "POST" : route.method, path, bytes: body, bearer: device.token)
            #expect((200...429).contains(answer.status), "\(answer.status) \(path)")
        }
        let after = test.hub.withCore { $0.model }
        #expect(before.devices.keys == after.devices.keys)
        #expect(before.tokens == after.tokens)
        #expect(before.settings == after.settings)
    }

    @Test func deepJSONIsRefused() throws {
        let test = try TestHub()
        let device = try test.enrol()
        for (path, bearer, depth) in [
            ("/api/v1/provision", nil, 3000), ("/api/v1/heartbeat", device.token, 100_000),
        ] {
            for piece in ["[", "{\"a\":"] {
                let bytes = Array(String(repeating: piece, count: depth).utf8)
                let answer = test.send("POST", path, bytes: bytes, bearer: bearer)
                #expect(answer.code == "bad_request", "\(path) \(piece)")
            }
        }
    }
}
