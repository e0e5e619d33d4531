// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import Crypto
import HTTP
import SQLite
import Testing
import WireGuard

@testable import Hub

struct HeartbeatTests {
    @Test func theConfigurationComesOnlyWhereTheHashDiffers() throws {
        let test = try TestHub()
        let device = try test.enrol()
        let first = try test.heartbeat(device).decoded(HeartbeatAnswer.self)
        #expect(first.configHash == (try device.configuration.configHash))
        #expect(first.encrypted != nil)
        #expect(first.forwards == [])
        let second = try test.heartbeat(device) {
            $0.configHash = first.configHash
            $0.forwardsHash = first.forwardsHash
        }.decoded(HeartbeatAnswer.self)
        #expect(second.encrypted == nil)
        #expect(second.salt == nil)
        #expect(second.forwards == nil)
        #expect(second.configHash == first.configHash)
        #expect(second.serverTime.unixSeconds == test.clock.now / 1000)
    }

    @Test func aChangeOfSettingsReachesEveryDevice() throws {
        let test = try TestHub()
        let device = try test.enrol()
        let before = try test.heartbeat(device).decoded(HeartbeatAnswer.self).configHash
        #expect(test.operate("PATCH", "/settings", ["mtu": "1380"]).status == 200)
        let after = try test.heartbeat(device) { $0.configHash = before }
            .decoded(HeartbeatAnswer.self)
        #expect(after.configHash != before)
        #expect(try device.open(after.salt, after.encrypted).mtu == 1380)
    }

    @Test func aRejectedConfigurationIsNotSentAgain() throws {
        let test = try TestHub()
        let device = try test.enrol()
        let hash = try device.configuration.configHash
        let answer = try test.heartbeat(device) {
            $0.rejectedHash = hash
            $0.rejectedCode = "address_in_use"
        }.decoded(HeartbeatAnswer.self)
        #expect(answer.encrypted == nil)
        try test.hub.upkeep()
        #expect(try test.alarms().map(\.kind) == ["rejected_configuration"])
        #expect(test.operate("PATCH", "/settings", ["keepalive": "30"]).status == 200)
        let next = try test.heartbeat(device) { $0.rejectedHash = hash }
            .decoded(HeartbeatAnswer.self)
        #expect(next.encrypted != nil)
        try test.hub.upkeep()
        #expect(try test.alarms().isEmpty)
    }

    @Test func case_C68_revokedUnknownAndExpiredAreThreeThings() throws {
        let test = try TestHub()
        let device = try test.enrol(1)
        let other = try test.enrol(2)
        #expect(test.operate("POST", "/devices/\(device.id)/revoke").status == 204)
        let revoked = test.heartbeat(device)
        #expect(revoked.status == 410)
        #expect(revoked.code == "revoked")
        #expect(revoked.problem?.deviceId == device.id)
        for (method, path) in [
            ("POST", "/api/v1/device/token"), ("GET", "/api/v1/device/events"),
            ("POST", "/api/v1/unenroll"),
        ] {
            #expect(test.send(method, path, bearer: device.token).code == "revoked")
        }
        // A machine that was revoked does not come back with any token.
        let back = test.provision(try test.makeToken { $0.maximumUses = 0 }, hwid: hwid(1))
        #expect(back.code == "revoked")
        #expect(back.problem?.deviceId == device.id)

        let unknown = test.send(
            "POST", "/api/v1/heartbeat", bearer: SecretText(.generate()).exposed)
        #expect(unknown.status == 404)
        #expect(unknown.code == "unknown_device")

        let renewed = try test.send("POST", "/api/v1/device/token", bearer: other.token)
            .decoded(TokenAnswer.self)
        test.clock.advance(seconds: 599)
        #expect(test.heartbeat(other).status == 200)
        test.clock.advance(seconds: 2)
        let expired = test.heartbeat(other)
        #expect(expired.status == 401)
        #expect(expired.code == "auth_expired")
        #expect(expired.problem?.deviceId == other.id)
        let next = test.send(
            "POST", "/api/v1/device/token", bearer: renewed.deviceToken.exposed)
        #expect(next.status == 200)
        try test.expectStored()
    }

    @Test func whatADeviceSaysIsCutToSize() throws {
        let test = try TestHub()
        let device = try test.enrol()
        let long = String(repeating: "x", count: 100_000)
        let answer = test.heartbeat(device) {
            $0.configHash = long
            $0.forwardsHash = long
            $0.rejectedHash = long
            $0.rejectedCode = long
            $0.problems = Array(
                repeating: "\n<b>" + String(repeating: "y", count: 200), count: 1000)
        }
        #expect(answer.status == 200)
        let view = try test.view(device.id)
        #expect(view.problems.count == 16)
        #expect(view.problems.allSatisfy { $0.utf8.count <= 64 })
        // An escape sequence for the operator's terminal.
        let escape = test.heartbeat(device) {
            $0.rejectedHash = "h"
            $0.rejectedCode = "\u{1B}]0;bad_code\u{07}"
        }
        #expect(escape.status == 200)
        #expect(try test.view(device.id).rejectedCode == "0bad_code")
        #expect(test.heartbeat(device) { $0.sessionId = long }.code == "bad_request")
        #expect(test.heartbeat(device) { $0.agentVersion = long }.code == "bad_request")
        let size = test.hub.withCore { "\($0.live[device.id]!)".utf8.count }
        #expect(size < 8000)
    }

    @Test func aNewAgentIsShown() throws {
        let test = try TestHub()
        let device = try test.enrol()
        #expect(test.heartbeat(device) { $0.agentVersion = "0.2.0" }.status == 200)
        #expect(try test.view(device.id).agentVersion == "0.2.0")
        try test.expectStored()
    }

    @Test func whatIsOverIsForgottenInTime() throws {
        let test = try TestHub()
        let device = try test.enrol()
        _ = try test.makeToken { $0.lifeSeconds = 60 }
        for _ in 0..<2010 {
            for state in [DeviceState.failed, .connected] {
                test.clock.advance(seconds: 1)
                #expect(test.heartbeat(device) { $0.state = state }.status == 200)
                try test.hub.upkeep()
            }
        }
        let alarms = test.hub.withCore { $0.model.alarms.count }
        #expect(alarms <= 2001)
        try test.expectStored()
        _ = test.send("POST", "/api/v1/device/token", bearer: device.token)
        test.clock.advance(seconds: 40 * 24 * 3600)
        try test.hub.upkeep()
        let (tokens, credentials) = test.hub.withCore {
            ($0.model.tokens.count, $0.model.credentials.count)
        }
        #expect(tokens == 1)
        #expect(credentials == 1)
        try test.expectStored()
    }

    @Test func anAgentThatSpeaksTooLittleIsToldToUpgrade() throws {
        let test = try TestHub()
        let device = try test.enrol()
        #expect(test.heartbeat(device) { $0.protocolVersion = nil }.status == 200)
        #expect(test.heartbeat(device) { $0.protocolVersion = 0 }.code == "upgrade_required")
        test.hub.withCore { $0.oldestProtocol = 2 }
        test.clock.advance(seconds: 60)
        for version in [nil, 1] {
            let answer = test.heartbeat(device) { $0.protocolVersion = version }
            #expect(answer.status == 426)
            #expect(answer.code == "upgrade_required")
            #expect(answer.problem?.deviceId == device.id)
            #expect(answer.problem?.detail?.contains("0.1.0 speaks version 1") == true)
        }
        #expect(try test.view(device.id).problems == ["upgrade_required"])
        #expect(try test.view(device.id).control == .reporting)
        #expect(test.provision(try test.makeToken(), hwid: hwid(2)).code == "upgrade_required")
        #expect(test.heartbeat(device) { $0.protocolVersion = 2 }.status == 200)
        #expect(try test.view(device.id).problems == [])
        // Nothing of it takes the peer away.
        #expect(test.hub.withCore { $0.desiredConfiguration().peers.count } == 1)
    }

    @Test func nothingIsAnsweredWithoutAToken() throws {
        let test = try TestHub()
        let answer = test.send("POST", "/api/v1/heartbeat")
        #expect(answer.status == 401)
        #expect(answer.headers["WWW-Authenticate"] == "Bearer")
        #expect(test.operateFromOutside("GET", "/devices").status == 401)
    }

    @Test func wrongBearersNeverBlockADevice() throws {
        let test = try TestHub()
        let device = try test.enrol()
        for _ in 0..<100 {
            _ = test.send("POST", "/api/v1/heartbeat", bearer: SecretText(.generate()).exposed)
        }
        let limited = test.send(
            "POST", "/api/v1/heartbeat", bearer: SecretText(.generate()).exposed)
        #expect(limited.status == 429)
        #expect(test.heartbeat(device).status == 200)
    }

    @Test func case_C76_aLateHeartbeatOfAnOldSessionChangesNothing() throws {
        let test = try TestHub()
        let device = try test.enrol()
        #expect(
            test.heartbeat(device, boot: 2, session: "s2") { $0.state = .connected }.status == 200)
        let late = test.heartbeat(device, boot: 1, session: "s1") { $0.state = .disconnected }
        #expect(late.status == 200)
        #expect(try test.view(device.id).tunnel.state == .connected)
        #expect(test.heartbeat(device, boot: 2, session: "s2") { $0.state = .failed }.status == 200)
        #expect(try test.view(device.id).tunnel.state == .failed)
    }

    @Test func aRepeatedSequenceIsAnsweredAndNotCounted() throws {
        let test = try TestHub()
        let device = try test.enrol()
        #expect(
            test.heartbeat(device) {
                $0.sequence = 50
                $0.rxBytes = 9
            }.status == 200)
        #expect(
            test.heartbeat(device) {
                $0.sequence = 50
                $0.rxBytes = 1
            }.status == 200)
        #expect(try test.view(device.id).tunnel.rxBytes == 9)
    }

    @Test func case_C73_twoMachinesWithOneIdentityAreNoticed() throws {
        let test = try TestHub()
        let device = try test.enrol()
        var statuses: [Int] = []
        for _ in 0..<4 {
            statuses.append(test.heartbeat(device, boot: 1, session: "s1").status)
            statuses.append(test.heartbeat(device, boot: 2, session: "clone").status)
            test.clock.advance(seconds: 30)
        }
        // The one that was there first goes on.
        #expect(statuses == [200, 200, 200, 200, 200, 409, 200, 409])
        let refused = test.heartbeat(device, boot: 2, session: "clone")
        #expect(refused.code == "duplicate_identity")
        #expect(refused.problem?.deviceId == device.id)
        try test.hub.upkeep()
        #expect(try test.alarms().map(\.kind) == ["duplicate_identity"])
        // The operator decides.
        #expect(test.operate("POST", "/devices/\(device.id)/reset").status == 204)
        #expect(test.heartbeat(device, boot: 2, session: "clone").status == 200)
        try test.hub.upkeep()
        #expect(try test.alarms().isEmpty)
    }

    @Test func case_C79_silenceNeedsEvidence() throws {
        let test = try TestHub()
        let device = try test.enrol()
        #expect(try test.view(device.id).tunnel.lastHandshake == nil)
        try test.hub.upkeep()
        #expect(try test.alarms().isEmpty)
        test.clock.advance(seconds: 91)
        try test.hub.upkeep()
        #expect(try test.alarms().map(\.kind) == ["silent"])
        #expect(try test.view(device.id).control == .silent)
        #expect(test.heartbeat(device).status == 200)
        try test.hub.upkeep()
        #expect(try test.alarms().isEmpty)
        try test.expectStored()
    }

    @Test func case_C112_bothPlanesAreShownApart() throws {
        let test = try TestHub()
        let device = try test.enrol()
        #expect(test.heartbeat(device) { $0.state = .failed }.status == 200)
        let view = try test.view(device.id)
        #expect(view.control == .reporting)
        #expect(view.tunnel.state == .failed)
        #expect(!view.tunnel.isUp)
        try test.hub.upkeep()
        #expect(try test.alarms().map(\.kind) == ["tunnel_down"])
    }

    /// An answer may be lost on its way.
    @Test func aResetComesUntilTheDeviceHasDoneIt() throws {
        let test = try TestHub()
        let device = try test.enrol()
        var former = ""
        for _ in 0..<2 {
            #expect(test.operate("POST", "/devices/\(device.id)/reset").status == 204)
            var ids: Set<String?> = []
            for _ in 0..<3 {
                let answer = try test.heartbeat(device) { $0.commandId = former }
                    .decoded(HeartbeatAnswer.self)
                #expect(answer.command == .reset)
                ids.insert(answer.commandId)
            }
            #expect(ids.count == 1)
            #expect(try test.view(device.id).command == "reset")
            let id = try #require(ids.first ?? nil)
            #expect(id != former)
            for _ in 0..<2 {
                let answer = try test.heartbeat(device) { $0.commandId = id }
                    .decoded(HeartbeatAnswer.self)
                #expect(answer.command == nil)
                #expect(answer.commandId == nil)
            }
            #expect(try test.view(device.id).command == nil)
            former = id
        }
        let said = try test.operate("GET", "/logs").decoded(Page<LogView>.self).items
        #expect(said.filter { $0.message.hasSuffix("was told: reset") }.count == 2)
        try test.expectStored()
    }

    @Test func aRotationComesUntilTheDeviceOffersItsKey() throws {
        let test = try TestHub()
        let device = try test.enrol()
        #expect(test.operate("POST", "/devices/\(device.id)/rotate").status == 204)
        for _ in 0..<2 {
            #expect(
                try test.heartbeat(device).decoded(HeartbeatAnswer.self).command == .rotateKey)
        }
        let offer = RotateRequest(publicKey: SecretKey.generate().publicKey.base64)
        #expect(
            test.send("POST", "/api/v1/device/rotate", offer, bearer: device.token).status == 200)
        #expect(try test.heartbeat(device).decoded(HeartbeatAnswer.self).command == nil)
        try test.expectStored()
    }

    @Test func aReprovisionComesWithAFreshTokenUntilOneIsUsed() throws {
        let test = try TestHub()
        let device = try test.enrol()
        #expect(test.operate("POST", "/devices/\(device.id)/reprovision").status == 204)
        var tokens: [String] = []
        for _ in 0..<3 {
            let answer = try test.heartbeat(device).decoded(HeartbeatAnswer.self)
            guard case .reprovision(let token) = answer.command else {
                Issue.record("no token")
                return
            }
            tokens.append(token.exposed)
        }
        #expect(Set(tokens).count == 3)
        #expect(test.hub.withCore { $0.model.tokens.count } == 2)
        #expect(test.provision(tokens[0], hwid: hwid(1)).code == "token_refused")
        #expect(test.provision(tokens[2], hwid: hwid(1)).status == 200)
        #expect(test.hub.withCore { $0.model.devices[device.id]?.command } == nil)
        try test.expectStored()
    }

    /// It would reset with each of its heartbeats.
    @Test func anAgentThatDoesNotTellGetsAResetOnce() throws {
        let test = try TestHub()
        let device = try test.enrol()
        #expect(test.operate("POST", "/devices/\(device.id)/reset").status == 204)
        #expect(try test.heartbeat(device).decoded(HeartbeatAnswer.self).command == .reset)
        #expect(try test.heartbeat(device).decoded(HeartbeatAnswer.self).command == nil)
        try test.expectStored()
    }

    @Test func commandsAreSaid() throws {
        let test = try TestHub()
        let device = try test.enrol()
        #expect(test.operate("POST", "/devices/\(device.id)/reprovision").status == 204)
        let answer = try test.heartbeat(device).decoded(HeartbeatAnswer.self)
        guard case .reprovision(let token) = answer.command else {
            Issue.record("no token")
            return
        }
        let again = try test.provision(token.exposed, hwid: hwid(1)).decoded(ProvisionAnswer.self)
        #expect(again.deviceId == device.id)
        try test.expectStored()
    }

    @Test func unenrolTakesEverythingAway() throws {
        let test = try TestHub()
        let device = try test.enrol()
        #expect(try test.forward(device, port: 8443).status == 201)
        #expect(test.send("POST", "/api/v1/unenroll", bearer: device.token).status == 204)
        #expect(test.operate("GET", "/devices/\(device.id)").status == 404)
        #expect(test.heartbeat(device).code == "unknown_device")
        #expect(try test.operate("GET", "/forwards").decoded(Page<ForwardView>.self).total == 0)
        // It may come back.
        #expect(test.provision(try test.makeToken(), hwid: hwid(1)).status == 200)
        try test.expectStored()
    }

    @Test func liveStateSurvivesARestart() throws {
        let path = try temporaryPath()
        let keys = HubKeys.generate()
        let test = try TestHub(database: Database(path), keys: keys)
        let device = try test.enrol()
        #expect(
            test.heartbeat(device) {
                $0.state = .connected
                $0.rxBytes = 77
            }.status == 200)
        let flusher = try Database(path)
        try test.hub.flush(to: flusher)
        let next = try TestHub(database: Database(path), keys: keys)
        let view = try next.view(device.id)
        #expect(view.tunnel.rxBytes == 77)
        #expect(view.control == .reporting)
        #expect(next.heartbeat(device).status == 200)
    }
}

extension TestHub {
    func alarms() throws -> [AlarmView] {
        try operate("GET", "/alarms", query: ["state": "open"]).decoded(Page<AlarmView>.self).items
    }

    func operateFromOutside(_ method: String, _ path: String) -> HTTPResponse {
        send(method, "/api/v1/admin" + path)
    }

    func forward(
        _ device: TestDevice, port: Int, _ change: (inout ForwardRequest) -> Void = { _ in }
    ) throws -> HTTPResponse {
        var request = ForwardRequest(deviceId: device.id, protocol: "tcp", publicPort: port)
        change(&request)
        return operate("POST", "/forwards", request)
    }
}
