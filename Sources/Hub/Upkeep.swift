// SPDX-License-Identifier: Apache-2.0
// What time brings: alarms come and go, addresses are free again, old rows go. Called about once a
// second.
import ControlAPI
import WireGuard

/// How long the address of a device that has gone rests, in milliseconds: its peers may still send
/// there.
let quarantineLength: Int64 = 24 * 3_600_000
/// Void credentials and used tokens are remembered for so long, in milliseconds: who comes back with
/// one is told what it was.
private let remembrance: Int64 = 30 * 24 * 3_600_000
/// Alarms that are over are remembered up to this number.
private let alarmLimit = 2000
/// A tunnel without a handshake for so long is down, in milliseconds: a session ends after 180 s
/// (REJECT_AFTER_TIME of the WireGuard paper, section 6.1).
private let handshakeLife: Int64 = 180_000

extension HubCore {
    mutating func upkeep(at now: Milliseconds) throws(Refusal) {
        try commit(alarmChanges(at: now) + cleaning(at: now))
    }

    /// Rows of live state that changed since the last call.
    mutating func takeUnwritten() -> [(id: String, LiveDevice)] {
        var rows: [(id: String, LiveDevice)] = []
        for (id, device) in live where device.isUnwritten {
            rows.append((id, device))
            live[id]?.isUnwritten = false
        }
        return rows
    }

    /// They could not be written: they come with the next ones.
    mutating func putBack(_ rows: [(id: String, LiveDevice)]) {
        for (id, _) in rows { live[id]?.isUnwritten = true }
    }

    private func cleaning(at now: Milliseconds) -> [Change] {
        var changes: [Change] = []
        for (address, until) in model.quarantine where until <= now {
            changes.append(.endQuarantine(address))
        }
        for credential in model.credentials.values {
            guard let expires = credential.expires, expires + remembrance <= now else { continue }
            changes.append(.removeCredential(digest: credential.digest))
        }
        for token in model.tokens.values {
            guard let end = token.revoked ?? token.expires, end + remembrance <= now else {
                continue
            }
            changes.append(.removeToken(token.id))
        }
        return changes + forgottenAlarms()
    }

    /// The oldest of those that are over.
    private func forgottenAlarms() -> [Change] {
        let excess = model.alarms.count - alarmLimit
        guard excess > 0 else { return [] }
        let over = model.alarms.values.filter { $0.cleared != nil }.map(\.id).sorted()
        return over.prefix(excess).map { .removeAlarm($0) }
    }

    // MARK: alarms

    /// What should be raised, compared with what is.
    private func alarmChanges(at now: Milliseconds) -> [Change] {
        var changes: [Change] = []
        var next = model.lastAlarm + 1
        func set(_ kind: Alarm.Kind, _ device: String?, _ text: String?) {
            let open = model.openAlarm(kind, of: device)
            if let text, open == nil {
                changes.append(
                    .alarm(
                        Alarm(id: next, deviceId: device, kind: kind, text: text, raised: now)))
                next += 1
            } else if text == nil, var open {
                open.cleared = now
                changes.append(.alarm(open))
            }
        }
        set(.keeper, nil, keeper.problem)
        for device in model.devices.values where device.confirmed != nil || device.revoked != nil {
            let state = device.revoked == nil ? live[device.id] ?? LiveDevice() : nil
            for kind in Self.watched {
                // Without fresh data there is no verdict (C79): the alarm stays as it is.
                guard let state else {
                    set(kind, device.id, nil)
                    continue
                }
                guard let verdict = verdict(kind, device, state, at: now) else { continue }
                set(kind, device.id, verdict)
            }
        }
        return changes
    }

    /// Kinds that are derived from what is heard of a device.
    private static let watched: [Alarm.Kind] = [
        .silent, .duplicateIdentity, .rejectedConfiguration, .tunnelDown, .sameHardware,
    ]

    /// The text of an alarm; nil within: none; nil: cannot be told.
    private func verdict(
        _ kind: Alarm.Kind, _ device: Device, _ state: LiveDevice, at now: Milliseconds
    ) -> String?? {
        let isHeard = state.seen.map { now - $0 <= silence } ?? false
        switch kind {
        case .silent:
            if isHeard { return .some(nil) }
            guard now - started > silence else { return nil }
            return "\(device.name) has not reported for \(missedHeartbeats) intervals"
        case .duplicateIdentity:
            return .some(
                state.judge.isContested
                    ? "two machines use the identity of \(device.name)" : nil)
        case .rejectedConfiguration:
            guard isHeard else { return nil }
            guard let hash = state.rejectedHash, hash == state.prepared?.configHash else {
                return .some(nil)
            }
            return "\(device.name) cannot apply its configuration: "
                + visible(state.rejectedCode ?? "no reason given", limit: 64)
        case .tunnelDown:
            guard isHeard else { return nil }
            return .some(tunnelProblem(device, state, at: now))
        case .sameHardware: return .some(twinProblem(device))
        case .keeper: return nil
        }
    }

    /// The later one of two with one hardware id: a clone, or a machine that lost its memory (C73).
    private func twinProblem(_ device: Device) -> String? {
        let twins = (model.devicesByHardware[device.hwid] ?? []).compactMap { model.devices[$0] }
        let older = twins.filter {
            $0.revoked == nil && ($0.created, $0.id) < (device.created, device.id)
        }
        return older.min { ($0.created, $0.id) < ($1.created, $1.id) }.map {
            "\(device.name) has the hardware id of \($0.name) (\($0.id)); revoke the one that is gone"
        }
    }

    /// The control connection works; whether the tunnel does is another question (C112).
    private func tunnelProblem(
        _ device: Device, _ state: LiveDevice, at now: Milliseconds
    ) -> String? {
        if state.state == .failed { return "\(device.name) reports that its tunnel has failed" }
        // A device without keepalive makes no handshake while nothing is sent.
        guard model.settings.keepalive != nil, let seen = state.handshake, state.isTunnelUp,
            now - seen > 2 * handshakeLife
        else { return nil }
        return "\(device.name) has made no handshake for \(2 * handshakeLife / 1000) s"
    }
}
