// SPDX-License-Identifier: Apache-2.0
import TunnelPlan
import WireGuard

/// Devices in memory, for tests: what a real back-end does with the same calls.
public final class MemoryBackend: Backend {
    public let kind: BackendKind
    private var devices: [InterfaceName: DeviceModel] = [:]
    /// What `availability` answers.
    public var isAvailable = true

    public init(kind: BackendKind) { self.kind = kind }

    public func availability() -> BackendAvailability {
        isAvailable
            ? .available : .unavailable(BackendError(.unavailable, "there is no \(kind) back-end"))
    }

    public func names() throws(BackendError) -> [InterfaceName] {
        devices.keys.sorted { $0.description < $1.description }
    }

    public func create(_ name: InterfaceName) throws(BackendError) {
        guard devices[name] == nil else {
            throw BackendError(.taken, "cannot make \(name): there is one already")
        }
        devices[name] = DeviceModel(DeviceSnapshot())
    }

    public func snapshot(_ name: InterfaceName) throws(BackendError) -> DeviceSnapshot {
        guard let device = devices[name] else { throw missing(name) }
        return device.snapshot
    }

    public func apply(
        _ name: InterfaceName, device: DeviceChange, peers: [PeerChange], replacePeers: Bool
    ) throws(BackendError) {
        guard var model = devices[name] else { throw missing(name) }
        do throws(ModelError) {
            let before = model.snapshot
            if let change = news(in: device, for: before) { try model.apply(.setDevice(change)) }
            for peer in peers { try apply(peer, &model) }
            if replacePeers {
                let named = Set(peers.map(\.publicKey))
                for peer in before.peers where !named.contains(peer.publicKey) {
                    try model.apply(.removePeer(peer.publicKey))
                }
            }
        } catch {
            throw BackendError(.refused, "cannot configure \(name): \(error)")
        }
        devices[name] = model
    }

    public func isFree(_ name: InterfaceName) -> Bool { devices[name] == nil }

    public func rename(_ name: InterfaceName, to other: InterfaceName) throws(BackendError) {
        guard let device = devices.removeValue(forKey: name) else { return }
        devices[other] = device
    }

    public func remove(_ name: InterfaceName) throws(BackendError) { devices[name] = nil }

    private func missing(_ name: InterfaceName) -> BackendError {
        BackendError(.notRunning, "there is no \(name)")
    }

    /// The model takes nothing that says nothing new; a device does. nil: nothing is new.
    private func news(in change: DeviceChange, for device: DeviceSnapshot) -> DeviceChange? {
        var news = change
        if let key = change.privateKey, (key.isZero ? nil : key) == device.privateKey {
            news.privateKey = nil
        }
        if change.listenPort == device.listenPort { news.listenPort = nil }
        if change.fwmark == device.fwmark { news.fwmark = nil }
        return news == DeviceChange() ? nil : news
    }

    private func apply(_ change: PeerChange, _ model: inout DeviceModel) throws(ModelError) {
        let key = change.publicKey
        if change.remove {
            if model.peer(key) != nil { try model.apply(.removePeer(key)) }
            return
        }
        if model.peer(key) == nil {
            guard !change.updateOnly else { return }
            try model.apply(.addPeer(PeerChange(publicKey: key)))
        }
        guard let peer = model.peer(key) else { return }
        try model.apply(.changePeer(news(in: change, for: peer)))
    }

    private func news(in change: PeerChange, for peer: PeerSnapshot) -> PeerChange {
        var news = PeerChange(publicKey: change.publicKey)
        news.updateOnly = true
        if let key = change.presharedKey, (key.isZero ? nil : key) != peer.presharedKey {
            news.presharedKey = key
        }
        if change.endpoint != peer.endpoint { news.endpoint = change.endpoint }
        if change.keepalive != peer.keepalive { news.keepalive = change.keepalive }
        var held = Set(peer.prefixes)
        if change.replaceAllowedIPs { held = [] }
        for entry in change.prefixes {
            if entry.remove { held.remove(entry.prefix) } else { held.insert(entry.prefix) }
        }
        let before = Set(peer.prefixes)
        let order = change.prefixes.map(\.prefix) + peer.prefixes
        var told: Set<Prefix> = []
        for prefix in order where told.insert(prefix).inserted {
            guard held.contains(prefix) != before.contains(prefix) else { continue }
            news.prefixes.append(PrefixChange(prefix, remove: !held.contains(prefix)))
        }
        return news
    }
}
