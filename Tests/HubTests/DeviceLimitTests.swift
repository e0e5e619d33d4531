// SPDX-License-Identifier: Apache-2.0
// What a device with a good token may not do to the hub and to the others.
import ControlAPI
import HTTP
import SQLite
import Testing
import WireGuard

@testable import Hub

struct DeviceLimitTests {
    @Test func oneThatRunsWildIsHeldBackAndNoOther() throws {
        let test = try TestHub()
        let device = try test.enrol()
        let other = try test.enrol(2)
        let answers = (0..<500).map { _ in test.heartbeat(device) }
        #expect(answers.count { $0.status == 200 } == 299)
        let refused = try #require(answers.last)
        #expect(refused.code == "too_many_requests")
        #expect(refused.problem?.deviceId == device.id)
        #expect(refused.headers["Retry-After"] == "1")
        #expect(test.heartbeat(other).status == 200)
        test.clock.advance(seconds: 1)
        #expect((0..<10).count { _ in test.heartbeat(device).status == 200 } == 5)
    }

    /// What turns the direction of text, breaks its line, or cannot be seen, would let one device
    /// look like another in an operator's list.
    @Test(arguments: [
        "a\u{1B}[2Jb", "a\u{9B}2Jb", "a\u{7F}b", "a\tb", "a\nb", "a\u{0}b", "a\u{202E}b",
        "a\u{2066}b\u{2069}", "a\u{200B}b", "a\u{200D}b", "a\u{FEFF}b", "a\u{AD}b", "a\u{2028}b",
        "a\u{2029}b", "a\u{3164}b", "a\u{34F}b", "a\u{E0041}b", "a\u{E000}b", "a\u{FFFE}b", " a",
    ])
    func aNameThatIsNotWhatItLooksLikeIsRefused(_ name: String) throws {
        let test = try TestHub()
        for field in 0..<3 {
            var request = ProvisionRequest(
                token: SecretText(try test.makeToken()), hwid: hwid(1),
                publicKey: SecretKey.generate().publicKey.base64)
            switch field {
            case 0: request.name = name
            case 1: request.platform = name
            default: request.agentVersion = name
            }
            let answer = test.send("POST", "/api/v1/provision", request)
            #expect(answer.code == "bad_request", "field \(field)")
        }
        let device = try test.enrol()
        #expect(test.heartbeat(device) { $0.agentVersion = name }.code == "bad_request")
        var patch = DevicePatchRequest()
        patch.name = name
        #expect(test.operate("PATCH", "/devices/\(device.id)", patch).code == "bad_request")
        #expect(try test.view(device.id).name == "gate")
    }

    @Test(arguments: ["Büro Köln", "東京", "e\u{301}", "😀", "gate 1", "--help", "../x"])
    func namesOfAllLanguagesAreTaken(_ name: String) throws {
        let test = try TestHub()
        let device = try test.enrol()
        var patch = DevicePatchRequest()
        patch.name = name
        #expect(test.operate("PATCH", "/devices/\(device.id)", patch).status == 200)
        #expect(try test.view(device.id).name == name)
    }

    @Test func whatIsReadForAnybodyIsSmall() throws {
        let test = try TestHub()
        let device = try test.enrol()
        for (path, bearer, code) in [
            ("/api/v1/provision", nil, "too_large"), ("/api/v1/admin/login", nil, "too_large"),
            ("/api/v1/heartbeat", nil, "auth_expired"),
            ("/api/v1/admin/tokens", nil, "auth_expired"),
            ("/api/v1/heartbeat", device.token, "bad_request"),
        ] {
            let body = Array("{\"x\":\"\(String(repeating: "x", count: 20000))\"}".utf8)
            #expect(test.send("POST", path, bytes: body, bearer: bearer).code == code, "\(path)")
        }
    }

    @Test func renewalsWithoutEndAreLimitedAndForgotten() throws {
        let test = try TestHub()
        let device = try test.enrol()
        var token = device.token
        var renewals = 0
        for _ in 0..<200 {
            let answer = test.send("POST", "/api/v1/device/token", bearer: token)
            if answer.status == 429 {
                #expect(answer.headers["Retry-After"] != nil)
                test.clock.advance(seconds: 31)
            } else {
                token = try answer.decoded(TokenAnswer.self).deviceToken.exposed
                renewals += 1
            }
        }
        #expect((65..<150).contains(renewals))
        #expect(test.hub.withCore { $0.model.credentials.count } <= 65)
        try test.expectStored()
    }

    @Test func newKeysAndVersionsWithoutEndDoNotFillTheLog() throws {
        let test = try TestHub()
        let device = try test.enrol()
        var rotations: [Int] = []
        for number in 0..<100 {
            let request = RotateRequest(publicKey: SecretKey.generate().publicKey.base64)
            rotations.append(
                test.send("POST", "/api/v1/device/rotate", request, bearer: device.token).status)
            #expect(test.heartbeat(device) { $0.agentVersion = "1.\(number)" }.status == 200)
        }
        #expect(Set(rotations) == [200, 429])
        let logs = try test.operate("GET", "/logs").decoded(Page<LogView>.self)
        #expect(logs.items.count < 40)
        // Another device is not concerned.
        let other = try test.enrol(2)
        #expect(test.send("POST", "/api/v1/device/token", bearer: other.token).status == 200)
        try test.expectStored()
    }

    @Test func aReportIsHeardWhileNothingCanBeWritten() throws {
        let test = try TestHub()
        let device = try test.enrol()
        #expect(test.operate("POST", "/devices/\(device.id)/reset").status == 204)
        try execute(
            "CREATE TRIGGER no_room BEFORE UPDATE ON devices BEGIN SELECT RAISE(ABORT, 'full'); END",
            test)
        let answer = try test.heartbeat(device) { $0.agentVersion = "0.2.0" }
            .decoded(HeartbeatAnswer.self)
        #expect(answer.command == nil)
        #expect(try test.view(device.id).agentVersion == "0.1.0")
        try execute("DROP TRIGGER no_room", test)
        // What could not be done is done later.
        let next = try test.heartbeat(device) { $0.agentVersion = "0.2.0" }
            .decoded(HeartbeatAnswer.self)
        #expect(next.command == .reset)
        #expect(try test.view(device.id).agentVersion == "0.2.0")
        try test.expectStored()
    }

    private func execute(_ statement: String, _ test: TestHub) throws {
        try test.hub.locked { (core) throws(Refusal) in
            do throws(SQLiteError) {
                try core.store.database.execute(statement)
            } catch {
                throw Refusal(.internalError, error.description)
            }
        }
    }
}
