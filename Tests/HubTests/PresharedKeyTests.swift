// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import Crypto
import Testing
import WireGuard

@testable import Hub

/// A device and the hub's interface have the same preshared key, and nobody else sees it.
@Suite struct PresharedKeyTests {
    /// What the hub's own interface uses with each key of a device.
    private func peers(_ test: TestHub) -> [PublicKey: PresharedKey] {
        test.hub.withCore { core in
            Dictionary(
                uniqueKeysWithValues: core.desiredConfiguration().peers.compactMap { peer in
                    peer.presharedKey.map { (peer.publicKey, $0) }
                })
        }
    }

    private func key(_ text: SecretText?) throws -> PresharedKey {
        try PresharedKey(base64: Array(try #require(text).exposed.utf8).span)
    }

    @Test func aDeviceGetsOneThatTheHubUsesToo() throws {
        let test = try TestHub()
        let device = try test.enrol()
        let made = try key(device.configuration.presharedKey)
        #expect(!made.isZero)
        #expect(peers(test) == [device.key: made])
        let other = try test.enrol(2)
        #expect(try key(other.configuration.presharedKey) != made)
        #expect(try peers(test)[other.key] == key(other.configuration.presharedKey))
        // The hash is of the whole configuration: a device that has it gets nothing new.
        let hash = try device.configuration.configHash
        let answer = try test.heartbeat(device) { $0.configHash = hash }
            .decoded(HeartbeatAnswer.self)
        #expect(answer.encrypted == nil)
        // One that has lost it gets the same again.
        let again = try test.heartbeat(device).decoded(HeartbeatAnswer.self)
        #expect(try key(device.open(again.salt, again.encrypted).presharedKey) == made)
        try test.expectStored()
    }

    @Test func aLostAnswerChangesNothing() throws {
        let test = try TestHub()
        let token = try test.makeToken()
        let mine = SecretKey.generate().publicKey
        let keys = try (0..<3).map { _ in
            let answer = try test.provision(token, key: mine).decoded(ProvisionAnswer.self)
            return try key(TestDevice(answer, hwid: hwid(1), key: mine).configuration.presharedKey)
        }
        #expect(keys[1] == keys[0] && keys[2] == keys[0])
        #expect(peers(test) == [mine: keys[0]])
    }

    @Test func whoEnrolsAnewGetsAnotherOne() throws {
        let test = try TestHub()
        let device = try test.enrol()
        let token = try test.makeToken { $0.deviceId = device.id }
        let mine = SecretKey.generate().publicKey
        let answer = try test.provision(token, key: mine).decoded(ProvisionAnswer.self)
        let made = try key(TestDevice(answer, hwid: hwid(1), key: mine).configuration.presharedKey)
        #expect(try made != key(device.configuration.presharedKey))
        #expect(peers(test) == [mine: made])
        #expect(test.hub.takeTunnelDirty())
    }

    @Test func bothKeysOfARotationHaveIt() throws {
        let test = try TestHub()
        let device = try test.enrol()
        let next = SecretKey.generate().publicKey
        let answer = test.send(
            "POST", "/api/v1/device/rotate", ["publicKey": next.base64], bearer: device.token)
        #expect(answer.status == 200)
        let made = try key(device.configuration.presharedKey)
        #expect(peers(test) == [device.key: made, next: made])
    }

    @Test func withoutTheSettingThereIsNone() throws {
        let test = try TestHub { $0.presharedKeys = false }
        let device = try test.enrol()
        #expect(try device.configuration.presharedKey == nil)
        #expect(peers(test).isEmpty)
    }

    @Test func case_C93_neitherTablesNorOperatorsSeeIt() throws {
        let test = try TestHub()
        let device = try test.enrol()
        let text = try #require(device.configuration.presharedKey).exposed
        let raw = try key(device.configuration.presharedKey).withBytes { bytes in
            bytes.indices.map { bytes[$0] }
        }
        let kept = try test.hub.locked { (core) throws(Refusal) in
            core.model.devices[device.id]?.sealedPresharedKey
        }
        let sealed = try #require(kept)
        #expect(sealed.count == 32 + 12 + 16)
        #expect(!(0...sealed.count - 32).contains { Array(sealed[$0..<$0 + 32]) == raw })
        for path in ["/devices/\(device.id)/config", "/devices/\(device.id)", "/devices", "/log"] {
            let shown = String(decoding: test.operate("GET", path).body, as: UTF8.self)
            #expect(!shown.contains(text), "\(path)")
        }
    }

    /// Sealed for one purpose and one device.
    @Test func oneCannotBePutInAnothersPlace() throws {
        let test = try TestHub { $0.allowsHubKeys = true }
        let one = try test.enrol(1)
        let two = try test.enrol(2)
        try test.hub.locked { (core) throws(Refusal) in
            let first = core.model.devices[one.id]!
            var second = core.model.devices[two.id]!
            second.sealedPresharedKey = first.sealedPresharedKey
            #expect(core.presharedKey(of: second) == nil)
            var swapped = first
            swapped.sealedKey = first.sealedPresharedKey
            #expect(core.sealedKey(of: swapped) == nil)
        }
    }
}
