// SPDX-License-Identifier: Apache-2.0
// POST /api/v1/provision: a token becomes a device. Nothing is answered that is not on disk, and a
// lost answer costs neither token nor address.
import ControlAPI
import Crypto
import WireGuard

/// For so long the same token may ask again for the same machine, in milliseconds.
let provisionWindow: Int64 = 15 * 60_000
/// A device that misses so many heartbeats is silent.
let missedHeartbeats: Int64 = 3

extension HubCore {
    /// `source`: where the request comes from, for the limit of failures.
    mutating func provision(
        _ request: ProvisionRequest, from source: String, at now: Milliseconds
    ) throws(Refusal) -> ProvisionAnswer {
        try requireProtocol(request.protocolVersion, of: request.agentVersion)
        let details = try MachineDetails(request)
        let token = try enrolToken(request.token, from: source, at: now)
        guard isSetUp else {
            throw Refusal(
                .unavailable, "the hub has no endpoint or no addresses yet; its operator sets them",
                retryAfter: 60)
        }
        let claim = try claim(token, hwid: request.hwid, at: now)
        if case .again(let known) = claim { try limitWrites(of: known.id, at: now) }
        var device = try self.device(claim, token, details, at: now)
        let privateKey = try setKey(of: &device, request.publicKey)
        setPresharedKey(of: &device)
        let bearer = BearerToken.generate()
        try commit(
            changes(device, token: token, claim, digest: bearer.digest, from: source, at: now))
        return answer(device, bearer: bearer, privateKey: privateKey)
    }

    // MARK: the token

    /// A token that there is, expired or not. Only what is no token at all counts as a failure of `source`.
    private mutating func enrolToken(
        _ text: SecretText, from source: String, at now: Milliseconds
    ) throws(Refusal) -> EnrolToken {
        let digest = text.bearerToken?.digest ?? ""
        guard let id = model.tokensByDigest[digest], let token = model.tokens[id],
            token.revoked == nil
        else {
            if let seconds = tokenFailures.fail(rateLimitKey(source), at: now) {
                throw Refusal(
                    .tooManyRequests, "too many wrong tokens from this address",
                    retryAfter: seconds)
            }
            throw Refusal(.tokenRefused, "the token is unknown or revoked; ask for a new one")
        }
        return token
    }

    /// For whom a token is used.
    private enum Claim {
        /// The answer of this token for this machine may be lost.
        case again(Device)
        /// A token made for a device that exists.
        case bound(Device)
        case new
    }

    private func claim(
        _ token: EnrolToken, hwid: String, at now: Milliseconds
    ) throws(Refusal) -> Claim {
        let known = (model.devicesByHardware[hwid] ?? []).compactMap { model.devices[$0] }
        let own = known.first { $0.tokenId == token.id && $0.revoked == nil }
        // What the token has bought already: neither its own end nor that of a twin takes it away.
        if let own, own.confirmed == nil, now - own.provisioned <= provisionWindow {
            return .again(own)
        }
        if let expires = token.expires, expires <= now {
            throw Refusal(.tokenExpired, "the token has expired; ask for a new one")
        }
        if let gone = known.first(where: { $0.revoked != nil }), token.deviceId == nil {
            throw Refusal(.revoked, "this machine was revoked", deviceId: gone.id)
        }
        if let device = own {
            throw Refusal(
                .tokenRefused, "the token is used up for this machine", deviceId: device.id)
        }
        if let limit = token.maximumUses, token.uses >= limit {
            throw Refusal(.tokenRefused, "the token is used up; ask for a new one")
        }
        if let id = token.deviceId {
            guard let device = model.devices[id] else {
                throw Refusal(.tokenRefused, "the device of this token is gone")
            }
            guard device.revoked == nil else {
                throw Refusal(.revoked, "the device of this token was revoked", deviceId: id)
            }
            return .bound(device)
        }
        if let twin = known.first(where: { isLive($0, at: now) }) {
            throw Refusal(
                .duplicateIdentity,
                "a device with this hardware id is connected; its operator revokes it, or makes a "
                    + "token for it", deviceId: twin.id)
        }
        return .new
    }

    /// Heard of within the last intervals.
    func isLive(_ device: Device, at now: Milliseconds) -> Bool {
        guard let seen = live[device.id]?.seen else { return false }
        return now - seen <= silence
    }

    /// Milliseconds without a heartbeat that make a device silent.
    var silence: Int64 { missedHeartbeats * Int64(model.settings.heartbeatSeconds) * 1000 }

    // MARK: the device

    private func device(
        _ claim: Claim, _ token: EnrolToken, _ details: MachineDetails, at now: Milliseconds
    ) throws(Refusal) -> Device {
        var device: Device
        switch claim {
        case .again(let known):
            device = known
            // The key that comes now may be the one it had offered: one peer for each key.
            device.rotation = nil
        case .bound(let known):
            device = known
            device.provisioned = now
            device.confirmed = nil
            device.rotation = nil
            device.command = nil
            device.sealedKey = nil
            device.sealedPresharedKey = nil
        case .new:
            guard let addresses = model.freeAddresses() else {
                throw Refusal(
                    .unavailable, "the hub has no free address; its operator adds a pool",
                    retryAfter: 300)
            }
            // The key follows in `setKey`.
            device = Device(
                id: Random.uuid(), hwid: details.hwid, name: details.name, publicKey: publicKey,
                addresses: addresses, tokenId: token.id, created: now, provisioned: now)
        }
        device.hwid = details.hwid
        device.tokenId = token.id
        device.platform = details.platform
        device.agentVersion = details.agentVersion
        return device
    }

    /// The key that the machine made, or one made here. Returns the private half of the latter.
    private func setKey(of device: inout Device, _ text: String?) throws(Refusal) -> SecretKey? {
        guard let text, !text.isEmpty else { return try makeKey(of: &device) }
        device.publicKey = try usableKey(text, for: device.id)
        device.sealedKey = nil
        return nil
    }

    /// A public key that no other device and not the hub itself has.
    func usableKey(_ text: String, for device: String) throws(Refusal) -> PublicKey {
        guard let key = try? PublicKey(base64: text), !key.isZero else {
            throw Refusal(.badRequest, "publicKey is no key: 44 characters of base64")
        }
        let holder = model.devicesByKey[key]
        guard key != publicKey, holder == nil || holder == device else {
            throw Refusal(.conflict, "this key belongs to another device; make a new one")
        }
        return key
    }

    private func makeKey(of device: inout Device) throws(Refusal) -> SecretKey? {
        guard model.settings.allowsHubKeys else {
            throw Refusal(.publicKeyRequired, "make a key and send its public half")
        }
        // A repeated request must not be answered with another key: the first answer may have come.
        if let key = sealedKey(of: device) { return key }
        let key = SecretKey.generate()
        device.publicKey = key.publicKey
        device.sealedKey = sealed(key, .privateKey, of: device)
        return key
    }

    // MARK: what is kept and answered

    private func changes(
        _ device: Device, token: EnrolToken, _ claim: Claim, digest: String, from source: String,
        at now: Milliseconds
    ) -> [Change] {
        var changes = [Change.device(device)] + endCredentials(of: device.id, at: now)
        changes.append(
            .credential(Credential(digest: digest, deviceId: device.id, created: now)))
        var what = "asked again"
        if case .again = claim {
        } else {
            var used = token
            used.uses += 1
            changes.append(.token(used))
            what = "enrolled"
        }
        changes.append(
            .log(
                LogRecord(
                    time: now, level: "info", tag: "enrol",
                    message: "\(device.name) \(what) with token \(token.id) from \(source)",
                    deviceId: device.id)))
        return changes
    }

    private mutating func answer(
        _ device: Device, bearer: BearerToken, privateKey: SecretKey?
    ) -> ProvisionAnswer {
        // A former life of the device says nothing about this one.
        live[device.id] = LiveDevice()
        var configuration = configuration(of: device)
        configuration.privateKey = privateKey.map { SecretText(base64Of: $0) }
        let (salt, encrypted) = Self.seal(configuration, hwid: device.hwid)
        return ProvisionAnswer(
            deviceId: device.id, deviceToken: SecretText(bearer), salt: salt,
            encrypted: encrypted, heartbeatSeconds: model.settings.heartbeatSeconds)
    }
}

/// What a machine says of itself, checked.
struct MachineDetails {
    let hwid: String
    let name: String
    let platform: String
    let agentVersion: String

    init(_ request: ProvisionRequest) throws(Refusal) {
        let isDigest =
            request.hwid.utf8.count == 32
            && request.hwid.utf8.allSatisfy { 0x30...0x39 ~= $0 || 0x61...0x66 ~= $0 }
        guard isDigest else {
            throw Refusal(.badRequest, "hwid is not 32 hexadecimal digits in lower case")
        }
        hwid = request.hwid
        platform = try line(request.platform ?? "", "platform")
        agentVersion = try line(request.agentVersion ?? "", "agentVersion")
        let given = try line(request.name ?? "", "name")
        name = given.isEmpty ? "device-\(request.hwid.prefix(8))" : given
    }
}

/// Text of one line, at most 64 characters, all of them visible: names stand in lists, logs and
/// comments, where none shall turn the direction of the rest, break its line or look like another.
func line(_ text: String, _ field: String) throws(Refusal) -> String {
    let isLine =
        text.isEmpty
        || text.unicodeScalars.count <= 64 && ConfigurationText(text) != nil
            && text.unicodeScalars.allSatisfy(isVisible)
    guard isLine else {
        throw Refusal(
            .badRequest, "\(field) is not text of one line of at most 64 visible characters")
    }
    return text
}

/// Not a control of terminals or of the direction of text (UAX #9 section 2), no end of a line, and
/// nothing that has no shape (Default_Ignorable_Code_Point of UAX #44).
private func isVisible(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate,
        .unassigned:
        false
    default: !scalar.properties.isDefaultIgnorableCodePoint
    }
}

extension PublicKey {
    /// The point of order 1: a key that nobody has, and that makes no secret.
    var isZero: Bool {
        for index in bytes.indices where bytes[index] != 0 { return false }
        return true
    }
}
