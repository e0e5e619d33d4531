// SPDX-License-Identifier: Apache-2.0
// POST /api/v1/heartbeat, and who may call as a device at all. A heartbeat writes nothing but the
// first one: what it says is kept in memory and written with many others.
import ControlAPI
import Crypto

extension HubCore {
    /// The device whose token `authorization` (the field of the request) is. Failures count against
    /// `source`; a good token is never refused because of them.
    mutating func authenticate(
        _ authorization: String?, from source: String, at now: Milliseconds
    ) throws(Refusal) -> Device {
        guard let text = bearerText(authorization) else {
            throw Refusal(.authExpired, "show the device's token: Authorization: Bearer …")
        }
        let digest = SecretText(text).bearerToken?.digest ?? ""
        guard let credential = model.credentials[digest],
            let device = model.devices[credential.deviceId]
        else {
            if let seconds = bearerFailures.fail(rateLimitKey(source), at: now) {
                throw Refusal(
                    .tooManyRequests, "too many wrong tokens from this address",
                    retryAfter: seconds)
            }
            throw Refusal(.unknownDevice, "the hub knows no device with this token")
        }
        if device.revoked != nil {
            throw Refusal(.revoked, "the operator has removed this device", deviceId: device.id)
        }
        if let expires = credential.expires, expires <= now {
            throw Refusal(
                .authExpired, "the device has a newer token, or this one was not renewed",
                deviceId: device.id)
        }
        return device
    }

    mutating func heartbeat(
        _ request: HeartbeatRequest, of device: Device, at now: Milliseconds
    ) throws(Refusal) -> HeartbeatAnswer {
        guard request.deviceId == device.id else {
            throw Refusal(
                .badRequest, "deviceId is not that of the token's device", deviceId: device.id)
        }
        do throws(Refusal) {
            try requireProtocol(
                request.protocolVersion, of: request.agentVersion, device: device.id)
        } catch {
            // It is not silent, and the operator sees why it has nothing new.
            live[device.id, default: LiveDevice()].refused(error, at: now)
            unwritten.insert(device.id)
            throw error
        }
        guard 1...64 ~= request.sessionId.utf8.count else {
            throw Refusal(.badRequest, "sessionId has 1 to 64 bytes", deviceId: device.id)
        }
        let device = try confirm(device, agentVersion: request.agentVersion, at: now)
        let isCurrent = try hear(request, of: device, at: now)
        var answer = answer(request, of: device, at: now)
        // One that cannot be written waits for the next heartbeat.
        if isCurrent, let told = try? handOut(device, done: request.commandId, at: now) {
            (answer.command, answer.commandId) = (told.0, told.id)
        }
        return answer
    }

    /// The first heartbeat says that the answer to provision has arrived. Of later ones only a new
    /// version of the agent is written.
    private mutating func confirm(
        _ device: Device, agentVersion: String, at now: Milliseconds
    ) throws(Refusal) -> Device {
        var changed = device
        changed.agentVersion = try line(agentVersion, "agentVersion")
        var changes: [Change] = []
        if device.confirmed == nil {
            changed.confirmed = now
            changed.sealedKey = nil
            changes.append(
                .log(
                    LogRecord(
                        time: now, level: "info", tag: "enrol",
                        message: "\(device.name) reports for the first time",
                        deviceId: device.id)))
        }
        guard changed != device else { return device }
        if device.confirmed == nil {
            try commit([.device(changed)] + changes)
            return changed
        }
        // A report counts for more than the version in it: not for that is it refused.
        guard deviceWrites.fail(device.id, at: now) == nil else { return device }
        do throws(Refusal) {
            try commit([.device(changed)])
            return changed
        } catch {
            return device
        }
    }

    /// Whether it is the one that is believed, and what it says if so.
    private mutating func hear(
        _ request: HeartbeatRequest, of device: Device, at now: Milliseconds
    ) throws(Refusal) -> Bool {
        var known = live[device.id] ?? LiveDevice()
        let mark = SessionMark(
            boot: request.boot, session: request.sessionId, sequence: request.sequence)
        let verdict = known.judge.hear(mark, at: now, quiet: silence)
        if verdict == .current {
            known.take(request, at: now)
            unwritten.insert(device.id)
        }
        live[device.id] = known
        if verdict == .duplicate {
            throw Refusal(
                .duplicateIdentity,
                "another machine was here first with this identity; enrol this one with a token of "
                    + "its own", deviceId: device.id)
        }
        return verdict == .current
    }

    private mutating func answer(
        _ request: HeartbeatRequest, of device: Device, at now: Milliseconds
    ) -> HeartbeatAnswer {
        let wanted = wantedHashes(of: device)
        var answer = HeartbeatAnswer(
            configHash: wanted.configuration, forwardsHash: wanted.forwards,
            serverTime: Timestamp(unixSeconds: now / 1000))
        if request.configHash != wanted.configuration,
            request.rejectedHash != wanted.configuration
        {
            let (salt, encrypted) = Self.seal(configuration(of: device), hwid: device.hwid)
            answer.salt = salt
            answer.encrypted = encrypted
        }
        if request.forwardsHash != wanted.forwards, request.rejectedHash != wanted.forwards {
            answer.forwards = wantedForwards(of: device)
        }
        answer.heartbeatSeconds = model.settings.heartbeatSeconds
        answer.nextPin = model.settings.nextPin
        return answer
    }
}

extension LiveDevice {
    mutating func refused(_ refusal: Refusal, at now: Milliseconds) {
        seen = now
        problems = refusal.problem.code.map { [$0] } ?? []
    }

    mutating func take(_ request: HeartbeatRequest, at now: Milliseconds) {
        seen = now
        state = request.state
        isTunnelUp = request.tunnelUp
        backend = request.backend
        handshake = request.lastHandshake.map { $0.unixSeconds * 1000 }
        received = request.rxBytes
        sent = request.txBytes
        // Hashes are short too; what is longer is none of ours.
        configHash = request.configHash.map { short($0, 128) }
        forwardsHash = request.forwardsHash.map { short($0, 128) }
        rejectedHash = request.rejectedHash.map { short($0, 128) }
        rejectedCode = request.rejectedCode.map { word($0) }
        problems = (request.problems ?? []).prefix(16).map { word($0) }
    }
}

/// The first scalars: a character may have any number of them.
private func short(_ text: String, _ limit: Int) -> String {
    guard text.utf8.count > limit else { return text }
    return String(String.UnicodeScalarView(text.unicodeScalars.prefix(limit)))
}

/// Codes are short words; what else comes is cut, for they are kept for every device and shown on
/// terminals.
private func word(_ code: String) -> String {
    String(code.unicodeScalars.prefix(64).filter { isCodeCharacter($0) }.map(Character.init))
}

private func isCodeCharacter(_ scalar: Unicode.Scalar) -> Bool {
    "a"..."z" ~= scalar || "A"..."Z" ~= scalar || "0"..."9" ~= scalar
        || "_.-".unicodeScalars
            .contains(scalar)
}

/// The token of `Bearer TOKEN` (RFC 6750 section 2.1); the scheme has no case (RFC 9110 section
/// 11.1).
func bearerText(_ authorization: String?) -> String? {
    guard let parts = authorization?.split(separator: " ", maxSplits: 1), parts.count == 2,
        parts[0].lowercased() == "bearer"
    else { return nil }
    return String(parts[1])
}
