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
/// Devices that are looked at under one lock.
private let devicesAtOnce = 500
/// Alarms that are over are remembered up to this number.
private let alarmLimit = 2000
/// A tunnel without a handshake for so long is down, in milliseconds: a session ends after 180 s
/// (REJECT_AFTER_TIME of the WireGuard paper, section 6.1).
private let handshakeLife: Int64 = 180_000

extension HubCore {
    /// The next part of a round over all devices; whether the round goes on. Requests are answered
    /// between two parts.
    mutating func upkeepPart(at now: Milliseconds) throws(Refusal) -> Bool {
        if unvisited.isEmpty {
            unvisited = Array(model.devices.keys)
            try commit(hubAlarmChanges(at: now) + cleaning(at: now))
        }
        let part = unvisited.suffix(devicesAtOnce)
        unvisited.removeLast(part.count)
        try commit(alarmChanges(of: part, at: now))
        return !unvisited.isEmpty
    }

    /// Rows of live state that changed since the last call.
    mutating func takeUnwritten() -> [(id: String, LiveDevice)] {
        defer { unwritten = [] }
        return unwritten.compactMap { id in live[id].map { (id, $0) } }
    }

    /// They could not be written: they come with the next ones.
    mutating func putBack(_ rows: [(id: String, LiveDevice)]) {
        unwritten.formUnion(rows.map(\.id))
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

    private func hubAlarmChanges(at now: Milliseconds) -> [Change] {
        var changes: [Change] = []
        set(.keeper, nil, keeper.problem, at: now, in: &changes)
        return changes
    }

    /// What should be raised, compared with what is.
    private func alarmChanges(of ids: ArraySlice<String>, at now: Milliseconds) -> [Change] {
        var changes: [Change] = []
        for id in ids {
            guard let device = model.devices[id], device.confirmed != nil || device.revoked != nil
            else { continue }
            let state = device.revoked == nil ? live[id] ?? LiveDevice() : nil
            for kind in Self.watched {
                // Without fresh data there is no verdict (C79): the alarm stays as it is.
                guard let state else {
                    set(kind, id, nil, at: now, in: &changes)
                    continue
                }
                guard let verdict = verdict(kind, device, state, at: now) else { continue }
                set(kind, id, verdict, at: now, in: &changes)
            }
        }
        return changes
    }

    /// Raises or clears one alarm; numbers go on after those of `changes`.
    private func set(
        _ kind: Alarm.Kind, _ device: String?, _ text: String?, at now: Milliseconds,
        in changes: inout [Change]
    ) {
        let open = model.openAlarm(kind, of: device)
        if let text, open == nil {
            let id = model.lastAlarm + 1 + Int64(changes.count)
            changes.append(
                .alarm(Alarm(id: id, deviceId: device, kind: kind, text: text, raised: now)))
        } else if text == nil, var open {
            open.cleared = now
            changes.append(.alarm(open))
        }
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
            guard let hash = state.rejectedHash, hash == state.wanted?.configuration else {
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
