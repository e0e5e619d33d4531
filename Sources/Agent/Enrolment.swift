// SPDX-License-Identifier: Apache-2.0
// From an enrolment token to an identity: POST /api/v1/provision. Blocking.
import ControlAPI
import Crypto
import HostProcess
import WireGuard

/// What somebody who enrols this host says.
public struct EnrolmentOrder: Sendable {
    public var url: HubURL
    /// As the operator of the hub handed it out.
    public var token: SecretText
    /// `sha256//…`; with a pin, nothing else is asked of the hub's certificate.
    public var pins: [String] = []
    /// Trusted beside the system's.
    public var caFile: String?
    /// What the hub's operator sees.
    public var name: String?

    public init(url: HubURL, token: SecretText) {
        self.url = url
        self.token = token
    }

    var target: HubTarget { HubTarget(url: url, pins: pins, caFile: caFile) }
}

/// What an enrolment gave.
struct Enrolled: Sendable {
    var identity: Identity
    var configuration: UsableConfiguration
}

struct Enrolment: Sendable {
    let order: EnrolmentOrder
    /// Made before the request, and the same in each: a lost answer costs nothing (C72).
    let key: SecretKey
    let hwid: String
    let agentVersion: String

    func perform(_ hub: HubConnection) throws(ControlFault) -> Enrolled {
        var request = ProvisionRequest(token: order.token, hwid: hwid)
        request.publicKey = key.publicKey.base64
        request.name = order.name
        request.platform = Self.platform
        request.agentVersion = agentVersion
        var bytes = Wire.encode(request)
        defer { erase(&bytes) }
        var body = try hub.call(.provision, bytes, token: nil, deviceId: nil)
        defer { erase(&body) }
        let answer = try decoded(ProvisionAnswer.self, body, "the answer to provision")
        var identity = identity(answer)
        guard identity.bearer != nil else {
            throw ControlFault(.transient, code: "bad_answer", "the hub's device token is none")
        }
        let config = try openedConfig(
            answer.encrypted, salt: answer.salt, hwid: hwid, deviceId: answer.deviceId)
        try takeKey(config, &identity)
        return Enrolled(identity: identity, configuration: try usable(config))
    }

    private func identity(_ answer: ProvisionAnswer) -> Identity {
        Identity(
            url: order.url.description, pins: order.pins, caFile: order.caFile, name: order.name,
            deviceId: answer.deviceId, hwid: hwid, token: answer.deviceToken,
            tokenIssued: Host.wallClock().seconds, privateKey: SecretText(key),
            heartbeatSeconds: answer.heartbeatSeconds)
    }

    /// A hub may be told to make the keys; this device gave its own, so none is expected.
    private func takeKey(
        _ config: WireGuardConfig, _ identity: inout Identity
    ) throws(ControlFault) {
        guard let made = config.privateKey, !made.isEmpty else { return }
        identity.privateKey = made
        guard identity.key(.current) != nil else {
            throw ControlFault(.transient, code: "bad_answer", "the hub's private key is none")
        }
    }

    private func usable(_ config: WireGuardConfig) throws(ControlFault) -> UsableConfiguration {
        var config = config
        config.privateKey = nil
        let stored = StoredConfiguration(
            configHash: config.configHash ?? "", forwardsHash: config.forwardsHash ?? "",
            config: config, forwards: [])
        do throws(ConfigRefusal) {
            return try UsableConfiguration(stored)
        } catch {
            throw ControlFault(
                .transient, code: "configuration_invalid",
                "the hub's configuration cannot be used: \(error)")
        }
    }

    private static var platform: String {
        #if arch(x86_64)
            "linux/amd64"
        #elseif arch(arm64)
            "linux/arm64"
        #else
            "linux"
        #endif
    }
}

func decoded<Value: Decodable>(
    _ type: Value.Type, _ bytes: [UInt8], _ what: String
) throws(ControlFault) -> Value {
    do throws(WireError) {
        return try Wire.decode(type, from: bytes)
    } catch {
        throw ControlFault(
            .transient, code: "bad_answer",
            "\(what) is not understood: \(error); the last good configuration stays")
    }
}

/// An envelope that does not open costs nothing but this answer: what works stays (C69).
func openedConfig(
    _ envelope: String, salt: String, hwid: String, deviceId: String
) throws(ControlFault) -> WireGuardConfig {
    var plaintext: [UInt8]
    do throws(EnvelopeError) {
        plaintext = try Envelope.open(envelope, hwid: hwid, salt: salt)
    } catch {
        throw ControlFault(
            .transient, code: "envelope_damaged",
            "the hub's configuration does not open: \(error); the last good configuration stays")
    }
    defer { erase(&plaintext) }
    let config = try decoded(WireGuardConfig.self, plaintext, "the hub's configuration")
    guard config.deviceId == deviceId else {
        throw ControlFault(
            .transient, code: "wrong_device",
            "the hub's configuration is for another device; the last good configuration stays")
    }
    return config
}
