// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import Crypto
import Testing
import WireGuard

@testable import Hub

struct ProvisionTests {
    @Test func aTokenBecomesADevice() throws {
        let test = try TestHub()
        let device = try test.enrol()
        let configuration = try device.configuration
        #expect(configuration.internalIp == "10.99.0.2/32,fd99::2/128")
        #expect(configuration.allowedIps == "10.99.0.0/24,fd99::/64")
        #expect(configuration.serverWgIp == "10.99.0.1")
        #expect(configuration.endpoint == "vpn.example.org:51820")
        #expect(configuration.privateKey == nil)
        _ = try configuration.validated()
        try test.expectStored()
    }

    @Test func case_C72_aLostAnswerCostsNeitherTokenNorAddress() throws {
        let test = try TestHub()
        let token = try test.makeToken()
        let first = try test.provision(token).decoded(ProvisionAnswer.self)
        test.clock.advance(seconds: 14 * 60)
        let second = try test.provision(token).decoded(ProvisionAnswer.self)
        #expect(second.deviceId == first.deviceId)
        #expect(second.deviceToken != first.deviceToken)
        #expect(second.salt != first.salt)
        let devices = try test.operate("GET", "/devices").decoded(Page<DeviceView>.self)
        #expect(devices.total == 1)
        // The former token is void.
        let old = TestDevice(first, hwid: hwid(1), key: SecretKey.generate().publicKey)
        let refused = test.heartbeat(old)
        #expect(refused.status == 401)
        #expect(refused.code == "auth_expired")
        #expect(refused.problem?.deviceId == first.deviceId)
        let new = TestDevice(second, hwid: hwid(1), key: old.key)
        #expect(test.heartbeat(new).status == 200)
        try test.expectStored()
    }

    @Test func case_C72_aLostAnswerMayBeAskedForAfterTheTokensEnd() throws {
        let test = try TestHub()
        let token = try test.makeToken { $0.lifeSeconds = 60 }
        let first = try test.provision(token).decoded(ProvisionAnswer.self)
        test.clock.advance(seconds: 61)
        #expect(try test.provision(token).decoded(ProvisionAnswer.self).deviceId == first.deviceId)
        #expect(test.provision(token, hwid: hwid(2)).code == "token_expired")
        try test.expectStored()
    }

    @Test func aTokenIsUsedUpWithTheFirstHeartbeat() throws {
        let test = try TestHub()
        let token = try test.makeToken { $0.maximumUses = 0 }
        let answer = try test.provision(token).decoded(ProvisionAnswer.self)
        let device = TestDevice(answer, hwid: hwid(1), key: SecretKey.generate().publicKey)
        #expect(test.heartbeat(device).status == 200)
        let again = test.provision(token)
        #expect(again.status == 403)
        #expect(again.code == "token_refused")
        // Another machine may use it.
        #expect(test.provision(token, hwid: hwid(2)).status == 200)
    }

    @Test func aTokenIsUsedUpAfterFifteenMinutes() throws {
        let test = try TestHub()
        let token = try test.makeToken()
        #expect(test.provision(token).status == 200)
        test.clock.advance(seconds: 15 * 60 + 1)
        #expect(test.provision(token).code == "token_refused")
    }

    @Test func aTokenOfOneUseMakesOneDevice() throws {
        let test = try TestHub()
        let token = try test.makeToken()
        #expect(test.provision(token, hwid: hwid(1)).status == 200)
        #expect(test.provision(token, hwid: hwid(2)).code == "token_refused")
    }

    @Test func parallelRequestsOfOneTokenMakeOneDevice() async throws {
        let test = try TestHub()
        let token = try test.makeToken()
        let statuses = await withTaskGroup(of: (Int, Int).self) { group in
            for number in 0..<32 {
                group.addTask {
                    (number % 2, test.provision(token, hwid: hwid(number % 2)).status)
                }
            }
            return await group.reduce(into: [:]) { $0[$1.0, default: []] += [$1.1] }
        }
        let winners = statuses.filter { $0.value.contains(200) }
        #expect(winners.count == 1)
        #expect(Set(winners.first?.value ?? []) == [200])
        #expect(Set(statuses.values.flatMap { $0 }) == [200, 403])
        let devices = try test.operate("GET", "/devices").decoded(Page<DeviceView>.self)
        #expect(devices.total == 1)
    }

    @Test func expiredAndRevokedTokensAreToldApart() throws {
        let test = try TestHub()
        let expired = try test.makeToken { $0.lifeSeconds = 60 }
        test.clock.advance(seconds: 61)
        let answer = test.provision(expired)
        #expect(answer.status == 401)
        #expect(answer.code == "token_expired")
        let revoked = try test.makeToken()
        let tokens = try test.operate("GET", "/tokens").decoded(Page<TokenView>.self)
        #expect(tokens.items.allSatisfy { $0.token == nil })
        #expect(test.operate("DELETE", "/tokens/\(tokens.items[1].id)").status == 204)
        #expect(test.provision(revoked).code == "token_refused")
    }

    @Test func wrongTokensAreLimitedAndNobodyElseIsLockedOut() throws {
        let test = try TestHub()
        let device = try test.enrol()
        let good = try test.makeToken()
        var codes: [String?] = []
        for _ in 0..<15 {
            codes.append(test.provision(SecretText(.generate()).exposed, hwid: hwid(7)).code)
        }
        #expect(codes.prefix(10).allSatisfy { $0 == "token_refused" })
        #expect(codes.suffix(5).allSatisfy { $0 == "too_many_requests" })
        let limited = test.provision("nonsense", hwid: hwid(7))
        #expect(limited.status == 429)
        #expect(Int(limited.headers["Retry-After"] ?? "") ?? 0 > 0)
        // Same address: a device and a good token.
        #expect(test.heartbeat(device).status == 200)
        #expect(test.provision(good, hwid: hwid(8)).status == 200)
        // Another address.
        #expect(test.provision("nonsense", from: "192.0.2.2").code == "token_refused")
        test.clock.advance(seconds: 10)
        #expect(test.provision("nonsense").code == "token_refused")
    }

    @Test func keysAreMadeByTheHubOnlyWhereAllowed() throws {
        let strict = try TestHub()
        let refused = strict.provision(try strict.makeToken(), key: nil)
        #expect(refused.status == 400)
        #expect(refused.code == "public_key_required")

        let test = try TestHub { $0.allowsHubKeys = true }
        let token = try test.makeToken()
        let first = try test.provision(token, key: nil).decoded(ProvisionAnswer.self)
        let second = try test.provision(token, key: nil).decoded(ProvisionAnswer.self)
        let key = SecretKey.generate().publicKey
        let device = TestDevice(second, hwid: hwid(1), key: key)
        let configuration = try device.configuration
        let text = try #require(configuration.privateKey)
        #expect(try TestDevice(first, hwid: hwid(1), key: key).configuration.privateKey == text)
        let made = try SecretKey(base64: Array(text.exposed.utf8).span)
        #expect(try test.view(device.id).publicKey == made.publicKey.base64)
        // Gone with the first heartbeat, and never sent again.
        let answer = try test.heartbeat(device).decoded(HeartbeatAnswer.self)
        #expect(try device.open(answer.salt, answer.encrypted).privateKey == nil)
        #expect(answer.configHash == configuration.configHash)
        try test.hub.locked { (core) throws(Refusal) in
            #expect(core.model.devices[device.id]?.sealedKey == nil)
        }
        try test.expectStored()
    }

    @Test func badRequestsAreNamed() throws {
        let test = try TestHub()
        let token = try test.makeToken()
        for id in ["", "0", String(repeating: "0", count: 31) + "G", hwid(1) + "0"] {
            #expect(test.provision(token, hwid: id).code == "bad_request")
        }
        let path = "/api/v1/provision"
        #expect(test.send("POST", path, bytes: Array("{".utf8)).code == "bad_request")
        #expect(test.send("POST", path, bytes: []).code == "bad_request")
        #expect(test.send("POST", path, bytes: Array("[]".utf8)).code == "bad_request")
        #expect(test.send("POST", path, ["token": 1]).code == "bad_request")
        let key = PublicKey(bytes: InlineArray(repeating: 0))
        #expect(test.provision(token, key: key).code == "bad_request")
        // Nothing of that has used the token.
        #expect(test.provision(token).status == 200)
    }

    @Test func oneKeyBelongsToOneDevice() throws {
        let test = try TestHub()
        let device = try test.enrol(1)
        let answer = test.provision(try test.makeToken(), hwid: hwid(2), key: device.key)
        #expect(answer.status == 409)
        #expect(answer.code == "conflict")
    }

    @Test func case_C73_aCloneOfALiveMachineGetsNoIdentity() throws {
        let test = try TestHub()
        let device = try test.enrol(1)
        let clone = test.provision(try test.makeToken(), hwid: hwid(1))
        #expect(clone.status == 409)
        #expect(clone.code == "duplicate_identity")
        #expect(clone.problem?.deviceId == device.id)
        // When the other one is silent it is a new device, and the operator is told.
        test.clock.advance(seconds: 3600)
        let answer = try test.provision(try test.makeToken(), hwid: hwid(1))
            .decoded(ProvisionAnswer.self)
        #expect(answer.deviceId != device.id)
        let second = TestDevice(answer, hwid: hwid(1), key: device.key)
        #expect(test.heartbeat(second).status == 200)
        try test.hub.upkeep()
        let alarms = try test.operate("GET", "/alarms").decoded(Page<AlarmView>.self)
        #expect(alarms.items.contains { $0.kind == "same_hardware" && $0.deviceId == second.id })
    }

    @Test func aTokenForADeviceKeepsItsIdentity() throws {
        let test = try TestHub()
        let device = try test.enrol(1)
        let token = try test.makeToken { $0.deviceId = device.id }
        let key = SecretKey.generate().publicKey
        let answer = try test.provision(token, hwid: hwid(9), key: key)
            .decoded(ProvisionAnswer.self)
        #expect(answer.deviceId == device.id)
        let new = TestDevice(answer, hwid: hwid(9), key: key)
        #expect(try new.configuration.internalIp == device.configuration.internalIp)
        #expect(test.heartbeat(new).status == 200)
        #expect(test.heartbeat(device).code == "auth_expired")
        #expect(try test.view(device.id).publicKey == key.base64)
        try test.expectStored()
    }

    @Test func aHubThatIsNotSetUpSaysSo() throws {
        let test = try TestHub { $0.endpoint = "" }
        let answer = test.provision(try test.makeToken())
        #expect(answer.status == 503)
        #expect(answer.headers["Retry-After"] != nil)
    }

    @Test func anEmptyPoolIsNoError500() throws {
        let test = try TestHub { $0.pools = [Prefix("10.99.0.0/30")!] }
        _ = try test.enrol(1)
        let answer = test.provision(try test.makeToken(), hwid: hwid(2))
        #expect(answer.code == "unavailable")
        // A device that leaves gives its address back, a day later.
        let devices = try test.operate("GET", "/devices").decoded(Page<DeviceView>.self)
        #expect(test.operate("POST", "/devices/\(devices.items[0].id)/revoke").status == 204)
        #expect(test.provision(try test.makeToken(), hwid: hwid(2)).code == "unavailable")
        test.clock.advance(seconds: 24 * 3600 + 1)
        try test.hub.upkeep()
        #expect(test.provision(try test.makeToken(), hwid: hwid(2)).status == 200)
        try test.expectStored()
    }
}
