// SPDX-License-Identifier: Apache-2.0
// What a device with a good token may not do to the hub and to the others.
import ControlAPI
import HTTP
import SQLite
import Testing
import WireGuard

@testable import Hub

struct DeviceLimitTests {
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
