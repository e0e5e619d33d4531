// SPDX-License-Identifier: Apache-2.0
// A device changes its key without losing a packet (POST /api/v1/device/rotate). One prefix belongs
// to one peer, so: the new key becomes a peer without prefixes; at its first handshake the prefixes
// move to it; when it has carried data the old key goes (C72).
import ControlAPI
import Crypto
import WireGuard

/// A new key that makes no handshake for so long is forgotten, in milliseconds: the device has gone
/// back to the old one after 30 s.
private let offerLife: Int64 = 10 * 60_000
/// How long the former token lives after a renewal, in milliseconds.
private let tokenOverlap: Int64 = 10 * 60_000
/// Former tokens of a device that are remembered. `deviceWrites` lets it have fewer within
/// `tokenOverlap`, so that none of these is still good.
private let formerTokenLimit = 64

extension HubCore {
    /// May be repeated with the same key.
    mutating func rotate(
        _ request: RotateRequest, of device: Device, at now: Milliseconds
    ) throws(Refusal) {
        let key = try usableKey(request.publicKey, for: device.id)
        if key == device.publicKey { return }
        if let rotation = device.rotation, rotation.phase == .offered, rotation.otherKey == key {
            return
        }
        try limitWrites(of: device.id, at: now)
        var changed = device
        changed.rotation = Rotation(otherKey: key, phase: .offered, since: now)
        try commit([
            .device(changed),
            .log(
                LogRecord(
                    time: now, level: "info", tag: "rotate",
                    message: "\(device.name) offers a new key", deviceId: device.id)),
        ])
    }

    /// The next token of the device; the one in use lives ten minutes more, all others end.
    mutating func renewToken(
        of device: Device, at now: Milliseconds
    ) throws(Refusal) -> TokenAnswer {
        try limitWrites(of: device.id, at: now)
        let bearer = BearerToken.generate()
        let new = Credential(digest: bearer.digest, deviceId: device.id, created: now)
        try commit([.credential(new)] + endCredentials(of: device.id, at: now + tokenOverlap))
        return TokenAnswer(deviceToken: SecretText(bearer))
    }

    /// All tokens of the device are void from `end` on. They are remembered for what they were, the
    /// oldest of very many excepted.
    func endCredentials(of id: String, at end: Milliseconds) -> [Change] {
        let newestFirst = (model.digestsByDevice[id] ?? []).compactMap { model.credentials[$0] }
            .sorted { ($0.created, $0.digest) > ($1.created, $1.digest) }
        var changes: [Change] = []
        for (index, credential) in newestFirst.enumerated() {
            if index >= formerTokenLimit {
                changes.append(.removeCredential(digest: credential.digest))
            } else if credential.expires ?? .max > end {
                var ended = credential
                ended.expires = end
                changes.append(.credential(ended))
            }
        }
        return changes
    }

    /// The device leaves; its address rests for a while.
    mutating func unenroll(_ device: Device, at now: Milliseconds) throws(Refusal) {
        try commit(
            removal(of: device, at: now) + [
                .log(
                    LogRecord(
                        time: now, level: "info", tag: "enrol",
                        message: "\(device.name) has left", deviceId: device.id))
            ])
    }

    func removal(of device: Device, at now: Milliseconds) -> [Change] {
        var changes: [Change] = []
        for alarm in model.alarms.values where alarm.deviceId == device.id && alarm.cleared == nil {
            var cleared = alarm
            cleared.cleared = now
            changes.append(.alarm(cleared))
        }
        if device.revoked == nil {
            changes += device.addresses.map { .quarantine($0, until: now + quarantineLength) }
        }
        return changes + [.removeDevice(device.id)]
    }

    // MARK: what the hub's interface shows

    /// Takes what the keeper knows of the peers, and moves rotations on.
    mutating func observe(
        _ peers: [PublicKey: PeerReport], at now: Milliseconds
    ) throws(Refusal) {
        for (key, report) in peers {
            guard let id = model.devicesByKey[key], model.devices[id]?.publicKey == key else {
                continue
            }
            live[id, default: LiveDevice()].peer = report
        }
        var changes: [Change] = []
        let rotating = model.devices.values.filter { $0.rotation != nil }
        for device in rotating.sorted(by: { $0.id < $1.id }) {
            guard let rotation = device.rotation else { continue }
            let other = peers[rotation.otherKey]
            let present = peers[device.publicKey]
            guard let next = rotation.next(other: other, present: present, at: now) else {
                continue
            }
            changes += step(device, next, at: now)
        }
        try commit(changes)
    }

    private func step(
        _ device: Device, _ next: Rotation.Step, at now: Milliseconds
    ) -> [Change] {
        var changed = device
        let text: String
        switch next {
        case .move(let received):
            changed.publicKey = device.rotation!.otherKey
            changed.rotation = Rotation(
                otherKey: device.publicKey, phase: .moved, since: now, receivedAtMove: received)
            text = "has moved to its new key"
        case .finish:
            changed.rotation = nil
            text = "has done with its old key"
        case .forget:
            changed.rotation = nil
            text = "did not use the key it offered"
        }
        return [
            .device(changed),
            .log(
                LogRecord(
                    time: now, level: "info", tag: "rotate", message: "\(device.name) \(text)",
                    deviceId: device.id)),
        ]
    }
}

extension Rotation {
    enum Step: Equatable {
        /// The other key has made a handshake; so many bytes had come from it.
        case move(received: UInt64)
        /// The new key carries data.
        case finish
        /// Nobody uses the new key.
        case forget
    }

    /// nil: nothing is to be done yet. `other`: of `otherKey`; `present`: of the device's key.
    func next(other: PeerReport?, present: PeerReport?, at now: Milliseconds) -> Step? {
        switch phase {
        case .offered:
            if let other, other.handshake != nil { return .move(received: other.received) }
            return now - since > offerLife ? .forget : nil
        case .moved:
            guard let present, present.received > receivedAtMove else { return nil }
            return .finish
        }
    }
}
