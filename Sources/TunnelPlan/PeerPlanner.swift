// SPDX-License-Identifier: Apache-2.0
import WireGuard

/// The changes of a device's peers. Linear in peers and prefixes (C99); a peer that is as it should
/// be appears in none (C57).
struct PeerPlanner {
    /// Peers and prefixes that were looked at: what the work is proportional to.
    private(set) var visits = 0
    private let policy: EndpointPolicy
    private var actual: [PublicKey: PeerSnapshot] = [:]
    /// Who shall have a prefix.
    private var holder: [Prefix: PublicKey] = [:]

    init(policy: EndpointPolicy) { self.policy = policy }

    /// `set` creates and changes, `removed` removes what is left over.
    mutating func plan(
        from device: DeviceSnapshot, to desired: [DesiredPeer]
    ) -> (set: [Change], removed: [Change]) {
        let wanted = unique(desired, butNot: device.publicKey)
        actual = Dictionary(device.peers.map { ($0.publicKey, $0) }, uniquingKeysWith: { $1 })
        for peer in wanted {
            for prefix in peer.prefixes { holder[prefix] = peer.publicKey }
        }
        var changes: [Change] = []
        for peer in wanted {
            if let before = actual.removeValue(forKey: peer.publicKey) {
                if let change = change(before, into: peer) { changes.append(.changePeer(change)) }
            } else {
                changes.append(.addPeer(addition(of: peer)))
            }
        }
        visits += device.peers.count
        let removed = device.peers.filter { actual[$0.publicKey] != nil }
        return (changes, removed.map { .removePeer($0.publicKey) })
    }

    /// Of two entries with one key the later counts. A device ignores itself (pitfall 57).
    private mutating func unique(_ peers: [DesiredPeer], butNot own: PublicKey?) -> [DesiredPeer] {
        var positions: [PublicKey: Int] = [:]
        positions.reserveCapacity(peers.count)
        var result: [DesiredPeer] = []
        for peer in peers where peer.publicKey != own {
            visits += 1
            if let position = positions[peer.publicKey] {
                result[position] = peer
            } else {
                positions[peer.publicKey] = result.count
                result.append(peer)
            }
        }
        return result
    }

    private mutating func addition(of peer: DesiredPeer) -> PeerChange {
        var change = PeerChange(publicKey: peer.publicKey)
        change.presharedKey = peer.presharedKey.flatMap { $0.isZero ? nil : $0 }
        change.endpoint = peer.endpoint
        change.keepalive = peer.keepalive == 0 ? nil : peer.keepalive
        change.prefixes = prefixes(of: peer).sorted(by: Prefix.precedes).map { PrefixChange($0) }
        return change
    }

    /// nil: nothing to do.
    private mutating func change(_ before: PeerSnapshot, into peer: DesiredPeer) -> PeerChange? {
        var change = PeerChange(publicKey: peer.publicKey)
        change.presharedKey = presharedKey(before, peer)
        change.endpoint = policy.endpoint(for: peer, having: before)
        change.keepalive = before.keepalive == peer.keepalive ? nil : peer.keepalive
        change.prefixes = prefixChanges(before, peer)
        guard change != PeerChange(publicKey: peer.publicKey) else { return nil }
        // Who was removed meanwhile shall not come back with half of its settings.
        change.updateOnly = true
        return change
    }

    /// A key that vanished from the configuration is taken from the peer.
    private func presharedKey(_ before: PeerSnapshot, _ peer: DesiredPeer) -> PresharedKey? {
        let had = before.presharedKey.flatMap { $0.isZero ? nil : $0 }
        let wanted = peer.presharedKey.flatMap { $0.isZero ? nil : $0 }
        guard had != wanted else { return nil }
        return wanted ?? PresharedKey(copying: [UInt8](repeating: 0, count: keyLength).span)
    }

    /// First what comes, then what goes. A prefix that moves to another peer goes with that peer's
    /// change: adding takes it from its holder, so it is never nobody's.
    private mutating func prefixChanges(
        _ before: PeerSnapshot, _ peer: DesiredPeer
    ) -> [PrefixChange] {
        visits += before.prefixes.count
        let has = Set(before.prefixes)
        let wants = prefixes(of: peer)
        if wants.count == has.count, wants.allSatisfy({ has.contains($0) }) { return [] }
        let added = wants.filter { !has.contains($0) }
        let removed = has.filter { holder[$0] == nil }
        return added.sorted(by: Prefix.precedes).map { PrefixChange($0) }
            + removed.sorted(by: Prefix.precedes).map { PrefixChange($0, remove: true) }
    }

    private mutating func prefixes(of peer: DesiredPeer) -> [Prefix] {
        visits += peer.prefixes.count
        return peer.prefixes.filter { holder[$0] == peer.publicKey }
    }
}
