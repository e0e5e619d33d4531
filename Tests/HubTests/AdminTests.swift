// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import Crypto
import HTTP
import Testing
import WireGuard

@testable import Hub

struct AdminTests {
    @Test func devicesAreFoundByWhatPeopleKnowOfThem() throws {
        let test = try TestHub()
        let (one, two) = (try test.enrol(1), try test.enrol(2))
        var patch = DevicePatchRequest()
        patch.name = "Berlin gate"
        patch.networks = ["172.16.5.0/24"]
        #expect(test.operate("PATCH", "/devices/\(two.id)", patch).status == 200)
        func found(_ search: String) throws -> [String] {
            try test.operate("GET", "/devices", query: ["search": search])
                .decoded(Page<DeviceView>.self).items.map(\.id)
        }
        for search in ["berlin", "GATE", "172.16.5", "10.99.0.3", two.hwid, two.key.base64, two.id]
        {
            #expect(try found(search).contains(two.id), "\(search)")
        }
        #expect(try found("10.99.0.2") == [one.id])
        #expect(try found("nothing like it") == [])
        // Not across two fields.
        #expect(try found("gate\n") == [])
    }

    @Test func aListComesByPageInOneOrder() throws {
        let test = try TestHub()
        for number in 1...7 {
            let device = try test.enrol(number)
            var patch = DevicePatchRequest()
            patch.name = "device \(8 - number)"
            #expect(test.operate("PATCH", "/devices/\(device.id)", patch).status == 200)
        }
        var names: [String] = []
        for offset in stride(from: 0, to: 9, by: 3) {
            let page = try test.operate(
                "GET", "/devices", query: ["offset": "\(offset)", "limit": "3"]
            ).decoded(Page<DeviceView>.self)
            #expect(page.total == 7)
            #expect(page.items.count == min(3, 7 - offset))
            names += page.items.map(\.name)
        }
        #expect(names == (1...7).map { "device \($0)" })
        for query in [["limit": "0"], ["limit": "501"], ["offset": "-1"], ["control": "what"]] {
            #expect(test.operate("GET", "/devices", query: query).code == "bad_request")
        }
        let pending = try test.operate("GET", "/devices", query: ["control": "pending"])
            .decoded(Page<DeviceView>.self)
        #expect(pending.total == 0)
    }

    @Test func networksBelongToOneDevice() throws {
        let test = try TestHub()
        let (one, two) = (try test.enrol(1), try test.enrol(2))
        func put(_ device: TestDevice, _ networks: [String]) -> HTTPResponse {
            var patch = DevicePatchRequest()
            patch.networks = networks
            return test.operate("PATCH", "/devices/\(device.id)", patch)
        }
        #expect(put(one, ["10.1.0.0/16"]).status == 200)
        #expect(put(two, ["10.1.2.0/24"]).code == "conflict")
        #expect(put(two, ["10.99.0.0/30"]).code == "conflict")
        #expect(put(two, ["10.2.0.0/16", "10.2.3.0/24"]).code == "conflict")
        #expect(put(two, ["10.2.0.0/33"]).code == "bad_request")
        #expect(put(two, ["10.2.0.0/16"]).status == 200)
        // Each reaches what is behind the other.
        #expect(try routes(test, one) == "10.99.0.0/24,fd99::/64,10.2.0.0/16")
        #expect(try routes(test, two) == "10.99.0.0/24,fd99::/64,10.1.0.0/16")
        #expect(test.operate("POST", "/devices/\(one.id)/revoke").status == 204)
        #expect(try routes(test, two) == "10.99.0.0/24,fd99::/64")
        #expect(put(two, ["10.1.2.0/24"]).status == 200)
        try test.expectStored()
    }

    private func routes(_ test: TestHub, _ device: TestDevice) throws -> String {
        let answer = try test.heartbeat(device).decoded(HeartbeatAnswer.self)
        return try device.open(answer.salt, answer.encrypted).allowedIps
    }

    @Test func aRevokedMachineComesBackOnlyWhenItIsForgotten() throws {
        let test = try TestHub()
        let device = try test.enrol()
        #expect(test.operate("DELETE", "/devices/\(device.id)").code == "conflict")
        #expect(test.operate("POST", "/devices/\(device.id)/revoke").status == 204)
        #expect(test.operate("POST", "/devices/\(device.id)/revoke").status == 204)
        #expect(test.operate("PATCH", "/devices/\(device.id)", DevicePatchRequest()).status == 409)
        #expect(test.operate("POST", "/devices/\(device.id)/reset").status == 409)
        #expect(test.operate("DELETE", "/devices/\(device.id)").status == 204)
        #expect(test.provision(try test.makeToken()).status == 200)
        try test.expectStored()
    }

    @Test func settingsGoAllOrNone() throws {
        let test = try TestHub()
        _ = try test.enrol()
        let before = try test.operate("GET", "/settings").decoded([String: String].self)
        for values in [
            ["mtu": "1400", "listenPort": "x"], ["nonsense": "1"], ["pools": "10.98.0.0/24"],
            ["pools": "10.99.0.1/32,fd99::/64"], ["pools": ""],
        ] {
            let answer = test.operate("PATCH", "/settings", values)
            #expect([400, 409].contains(answer.status), "\(values)")
        }
        #expect(try test.operate("GET", "/settings").decoded([String: String].self) == before)
        // A pool may be added, and one that nobody is in may go.
        let more = "10.99.0.0/24,fd99::/64,10.100.0.0/24"
        #expect(test.operate("PATCH", "/settings", ["pools": more]).status == 200)
        #expect(
            test.operate("PATCH", "/settings", ["pools": "10.99.0.0/24,fd99::/64"]).status == 200)
        try test.expectStored()
    }

    @Test func operatorsLogInOverTheNetwork() throws {
        let test = try TestHub()
        let request = OperatorRequest(name: "ada", password: SecretText("correct horse battery"))
        #expect(test.operate("POST", "/operators", request).status == 201)
        let path = "/api/v1/admin/login"
        let wrong = LoginRequest(name: "ada", password: SecretText("wrong"))
        #expect(test.send("POST", path, wrong).status == 401)
        let nobody = LoginRequest(name: "bob", password: SecretText("correct horse battery"))
        #expect(test.send("POST", path, nobody).status == 401)
        let right = LoginRequest(name: "ada", password: SecretText("correct horse battery"))
        let session = try test.send("POST", path, right).decoded(LoginAnswer.self).session.exposed
        #expect(test.send("GET", "/api/v1/admin/devices", bearer: session).status == 200)
        // A device's token is none of an operator, and the other way round.
        let device = try test.enrol()
        #expect(test.send("GET", "/api/v1/admin/devices", bearer: device.token).status == 401)
        #expect(test.send("POST", "/api/v1/heartbeat", bearer: session).status == 404)
        #expect(
            test.send(
                "POST", "/api/v1/admin/backup",
                BackupRequest(passphrase: SecretText("long enough for it")), bearer: session
            ).status == 403)
        #expect(test.send("POST", "/api/v1/admin/logout", bearer: session).status == 204)
        #expect(test.send("GET", "/api/v1/admin/devices", bearer: session).status == 401)
        let again = try test.send("POST", path, right).decoded(LoginAnswer.self).session.exposed
        #expect(test.operate("DELETE", "/operators/ada").status == 204)
        #expect(test.send("GET", "/api/v1/admin/devices", bearer: again).status == 401)
        #expect(test.send("POST", path, right).status == 401)
        try test.expectStored()
    }

    @Test func wrongLoginsAreLimitedByAddress() throws {
        let test = try TestHub()
        let wrong = LoginRequest(name: "ada", password: SecretText("wrong"))
        let path = "/api/v1/admin/login"
        let statuses = (0..<6).map { _ in test.send("POST", path, wrong).status }
        #expect(statuses == [401, 401, 401, 401, 401, 429])
        #expect(test.send("POST", path, wrong, from: "192.0.2.9").status == 401)
        // Whoever guesses does not learn by the status which one was right.
        let request = OperatorRequest(name: "ada", password: SecretText("correct horse battery"))
        #expect(test.operate("POST", "/operators", request).status == 201)
        let right = LoginRequest(name: "ada", password: SecretText("correct horse battery"))
        let limited = test.send("POST", path, right)
        #expect(limited.status == 429)
        #expect(limited.headers["Retry-After"] != nil)
        #expect(test.send("POST", path, right, from: "192.0.2.9").status == 200)
        test.clock.advance(seconds: 11)
        #expect(test.send("POST", path, right).status == 200)
    }

    @Test func whatWasDoneIsInTheLog() throws {
        let test = try TestHub()
        let device = try test.enrol()
        #expect(test.operate("POST", "/devices/\(device.id)/revoke").status == 204)
        let page = try test.operate("GET", "/logs", query: ["deviceId": device.id])
            .decoded(Page<LogView>.self)
        #expect(page.items.map(\.tag) == ["device", "enrol", "enrol"])
        #expect(page.items.first?.actor == "uid 0")
        let older = try test.operate(
            "GET", "/logs", query: ["before": "\(page.items[0].id)", "limit": "1"]
        ).decoded(Page<LogView>.self)
        #expect(older.items.map(\.id) == [page.items[1].id])
    }

    @Test func case_C94_noAnswerShowsASecretTwice() throws {
        let test = try TestHub()
        let token = try test.makeToken()
        let answer = try test.provision(token).decoded(ProvisionAnswer.self)
        for path in ["/tokens", "/devices", "/logs", "/status", "/settings", "/alarms"] {
            let text = String(decoding: test.operate("GET", path).body, as: UTF8.self)
            #expect(!text.contains(token))
            #expect(!text.contains(answer.deviceToken.exposed))
        }
        let rows = try test.hub.locked { (core) throws(Refusal) in
            String(describing: core.model)
        }
        #expect(!rows.contains(token))
        #expect(!rows.contains(answer.deviceToken.exposed))
    }
}
