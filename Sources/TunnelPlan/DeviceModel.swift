// SPDX-License-Identifier: Apache-2.0
import WireGuard

/// A WireGuard device in memory, strict as `TunnelModel`.
public struct DeviceModel: Sendable {
    /// Without its peers, which are in `slots`: nil where one was removed.
    private var device: DeviceSnapshot
    private var slots: [PeerSnapshot?]
    private var positions: [PublicKey: Int] = [:]
    private var holders: [Prefix: PublicKey] = [:]

    /// A peer's prefixes are held once each, as a device reports them.
    public init(_ snapshot: DeviceSnapshot) {
        device = snapshot
        device.peers = []
        slots = snapshot.peers
        for (position, peer) in snapshot.peers.enumerated() {
            positions[peer.publicKey] = position
            for prefix in peer.prefixes { holders[prefix] = peer.publicKey }
        }
    }

    /// Its `publicKey` stays what it was: nothing here computes one.
    public var snapshot: DeviceSnapshot {
        var snapshot = device
        snapshot.peers = slots.compactMap { $0 }
        return snapshot
    }

    /// nil: there is none.
    public func peer(_ key: PublicKey) -> PeerSnapshot? { positions[key].flatMap { slots[$0] } }

    /// After an error the state is as it was. Changes of the host are errors.
    public mutating func apply(_ change: Change) throws(ModelError) {
        switch change {
        case .setDevice(let change): try set(change)
        case .addPeer(let change):
            try require(positions[change.publicKey] == nil, "\(change.publicKey) exists")
            try require(
                !change.updateOnly && !change.remove && !change.replaceAllowedIPs,
                "a new peer is neither updated nor removed")
            try check(change)
            positions[change.publicKey] = slots.count
            slots.append(PeerSnapshot(publicKey: change.publicKey))
            update(change)
        case .changePeer(let change):
            try require(positions[change.publicKey] != nil, "there is no \(change.publicKey)")
            try require(change.updateOnly && !change.remove, "a change creates and removes nobody")
            try check(change)
            update(change)
        case .removePeer(let key): try remove(key)
        default: throw ModelError("not a change of the device")
        }
    }

    private mutating func set(_ change: DeviceChange) throws(ModelError) {
        try require(change != DeviceChange(), "the change is empty")
        if let key = change.privateKey {
            let key = key.isZero ? nil : key
            try require(key != device.privateKey, "the private key is set already")
        }
        if let port = change.listenPort {
            try require(port != device.listenPort, "the port is \(port) already")
        }
        if let mark = change.fwmark {
            try require(mark != device.fwmark, "the mark is \(mark) already")
        }
        if let key = change.privateKey { device.privateKey = key.isZero ? nil : key }
        if let port = change.listenPort { device.listenPort = port }
        if let mark = change.fwmark { device.fwmark = mark }
    }

    /// Every part of it says something new.
    private func check(_ change: PeerChange) throws(ModelError) {
        let peer =
            peer(change.publicKey) ?? PeerSnapshot(publicKey: change.publicKey)
        if let key = change.presharedKey {
            try require(
                (key.isZero ? nil : key) != peer.presharedKey, "the preshared key is set already")
        }
        if let endpoint = change.endpoint {
            try require(endpoint != peer.endpoint, "the endpoint is \(endpoint) already")
        }
        if let keepalive = change.keepalive {
            try require(keepalive != peer.keepalive, "the keepalive is \(keepalive) already")
        }
        for entry in change.prefixes where !change.replaceAllowedIPs {
            let isHeld = holders[entry.prefix] == change.publicKey
            try require(
                isHeld == entry.remove,
                "\(entry.prefix) is \(isHeld ? "held already" : "not held")")
        }
        try require(
            Set(change.prefixes.map(\.prefix)).count == change.prefixes.count,
            "a prefix is named twice")
    }

    private mutating func update(_ change: PeerChange) {
        let position = positions[change.publicKey]!
        var peer = slots[position] ?? PeerSnapshot(publicKey: change.publicKey)
        if let key = change.presharedKey { peer.presharedKey = key.isZero ? nil : key }
        if let endpoint = change.endpoint { peer.endpoint = endpoint }
        if let keepalive = change.keepalive { peer.keepalive = keepalive }
        if change.replaceAllowedIPs {
            for prefix in peer.prefixes { holders[prefix] = nil }
            peer.prefixes = []
        }
        let removed = Set(change.prefixes.filter(\.remove).map(\.prefix))
        for prefix in removed { holders[prefix] = nil }
        if !removed.isEmpty { peer.prefixes.removeAll { removed.contains($0) } }
        for entry in change.prefixes where !entry.remove {
            take(entry.prefix, for: peer.publicKey)
            peer.prefixes.append(entry.prefix)
        }
        slots[position] = peer
    }

    /// Adding a prefix takes it from its holder.
    private mutating func take(_ prefix: Prefix, for key: PublicKey) {
        guard let before = holders.updateValue(key, forKey: prefix), before != key,
            let loser = positions[before]
        else { return }
        slots[loser]?.prefixes.removeAll { $0 == prefix }
    }

    private mutating func remove(_ key: PublicKey) throws(ModelError) {
        guard let position = positions.removeValue(forKey: key) else {
            throw ModelError("there is no \(key)")
        }
        for prefix in slots[position]?.prefixes ?? [] { holders[prefix] = nil }
        slots[position] = nil
    }
}
