// SPDX-License-Identifier: Apache-2.0
// A device changes its key without losing a packet (POST /api/v1/device/rotate, C72). One prefix belongs
// to one peer, and what comes from another one is dropped. So the prefixes move when the device has
// begun to use the new key, which sends nothing before a handshake; and the hub begins that handshake,
// after they have moved. When the new key has carried data the old one goes. A device that does not say
// when it begins is a peer without prefixes until its first handshake shows it.
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
        if request.isInUse == true { return try use(key, of: device, at: now) }
        if key == device.publicKey { return }
        if let rotation = device.rotation, rotation.phase != .moved, rotation.otherKey == key {
            return
        }
        try limitWrites(of: device.id, at: now)
        var changed = device
        changed.rotation = Rotation(
            otherKey: key, phase: request.isInUse == nil ? .offered : .promised, since: now)
        // What it was told to do, it does.
        if changed.command == .rotateKey { changed.command = nil }
        try commit([
            .device(changed),
            .log(
                LogRecord(
                    time: now, level: "info", tag: "rotate",
                    message: "\(device.name) offers a new key", deviceId: device.id)),
        ])
    }

    /// The device uses `key` from now on. Each change was offered before, so these need no limit.
    private mutating func use(
        _ key: PublicKey, of device: Device, at now: Milliseconds
    ) throws(Refusal) {
        guard key != device.publicKey else { return }
        guard let rotation = device.rotation, rotation.otherKey == key else {
            throw Refusal(
                .badRequest, "this key was not offered, or not used in time; offer it first",
                deviceId: device.id)
        }
        try commit(step(device, rotation.phase == .moved ? .moveBack : .move(received: 0), at: now))
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

    /// As the hub's interface knew it when it was looked at last.
    private func endpoint(of device: Device) -> Endpoint? {
        live[device.id]?.peer?.endpoint.flatMap { Endpoint($0) }
    }

    private mutating func step(
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
            // One that has made its handshake is where that came from.
            let former = endpoint(of: device)
            if received == 0 { live[device.id]?.movedEndpoint = former }
        case .prove(let received):
            changed.rotation?.receivedAtMove = received
            return [.device(changed)]
        case .moveBack:
            changed.publicKey = device.rotation!.otherKey
            changed.rotation = nil
            live[device.id]?.movedEndpoint = nil
            text = "has gone back to its old key"
        case .finish:
            changed.rotation = nil
            live[device.id]?.movedEndpoint = nil
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
        /// The other key is in use; so many bytes had come from it.
        case move(received: UInt64)
        /// The new key has made its first handshake after it had moved.
        case prove(received: UInt64)
        /// The old key is in use again.
        case moveBack
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
        case .promised: return now - since > offerLife ? .forget : nil
        case .moved:
            guard receivedAtMove == 0 else {
                guard let present, present.received > receivedAtMove else { return nil }
                return .finish
            }
            if let present, present.handshake != nil { return .prove(received: present.received) }
            // Handshakes are told in whole seconds.
            guard let again = other?.handshake, again > since + 1000 else { return nil }
            return .moveBack
        }
    }
}
