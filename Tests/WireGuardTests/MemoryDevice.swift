// SPDX-License-Identifier: Apache-2.0
import WireGuard

/// A device that is nothing but its state: the rules of tunnel.h in their plainest form.
final class MemoryDevice: UAPIDevice {
    var state = DeviceSnapshot()
    /// Every change, in order.
    var deviceChanges: [DeviceChange] = []
    var peerChanges: [PeerChange] = []
    /// Setting one of these fails with EADDRINUSE.
    var portsInUse: Set<UInt16> = []
    /// The n-th peer change from now fails with this error.
    var failure: (after: Int, error: UAPIError)?
    var commits = 0
    var aborts = 0
    private var named: Set<PublicKey>?
    private var positions: [PublicKey: Int] = [:]

    var isReplacingPeers: Bool { named != nil }

    func snapshot() throws(UAPIError) -> DeviceSnapshot { state }

    func set(device change: DeviceChange) throws(UAPIError) {
        deviceChanges.append(change)
        if let port = change.listenPort {
            guard !portsInUse.contains(port) else { throw UAPIError(errno: 98) }
            state.listenPort = port
        }
        if let key = change.privateKey { state.privateKey = key.isZero ? nil : key }
        if let mark = change.fwmark { state.fwmark = mark }
    }

    func set(peer change: PeerChange) throws(UAPIError) {
        if let due = failure {
            failure = due.after == 0 ? nil : (due.after - 1, due.error)
            if due.after == 0 { throw due.error }
        }
        peerChanges.append(change)
        guard change.publicKey != state.publicKey else { return }
        if change.remove { return remove { $0 == change.publicKey } }
        if positions[change.publicKey] == nil {
            guard !change.updateOnly else { return }
            positions[change.publicKey] = state.peers.count
            state.peers.append(PeerSnapshot(publicKey: change.publicKey))
        }
        named?.insert(change.publicKey)
        apply(change, at: positions[change.publicKey]!)
    }

    func beginReplacePeers() throws(UAPIError) {
        guard named == nil else { throw .busy }
        named = []
    }

    func commitReplacePeers() throws(UAPIError) {
        let kept = named!
        named = nil
        commits += 1
        remove { !kept.contains($0) }
    }

    func abortReplacePeers() {
        named = nil
        aborts += 1
    }

    private func remove(_ isRemoved: (PublicKey) -> Bool) {
        state.peers.removeAll { isRemoved($0.publicKey) }
        positions = [:]
        for (position, peer) in state.peers.enumerated() { positions[peer.publicKey] = position }
    }

    private func apply(_ change: PeerChange, at position: Int) {
        if let key = change.presharedKey {
            state.peers[position].presharedKey = key.isZero ? nil : key
        }
        if let endpoint = change.endpoint { state.peers[position].endpoint = endpoint }
        if let keepalive = change.keepalive { state.peers[position].keepalive = keepalive }
        if change.replaceAllowedIPs { state.peers[position].prefixes = [] }
        for entry in change.prefixes {
            // A prefix has one holder: adding it takes it from whoever had it.
            let holders = entry.remove ? [position] : Array(state.peers.indices)
            for holder in holders where state.peers[holder].prefixes.contains(entry.prefix) {
                state.peers[holder].prefixes.removeAll { $0 == entry.prefix }
            }
            if !entry.remove { state.peers[position].prefixes.append(entry.prefix) }
        }
    }
}
