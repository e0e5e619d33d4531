// SPDX-License-Identifier: Apache-2.0
import WireGuard

/// Changes for a device that cannot take single prefixes away, only replace a peer's whole list.
/// The price is a moment in which the peer has none.
struct PrefixRemoval {
    static func isUsed(in changes: [PeerChange]) -> Bool {
        changes.contains { !$0.remove && $0.prefixes.contains(where: \.remove) }
    }

    /// The same outcome without removals, for a device that is `actual` now. Peers of which nothing
    /// is removed stay as they are. No change may name a prefix twice.
    static func avoided(in changes: [PeerChange], actual: DeviceSnapshot) -> [PeerChange] {
        var device = PrefixRemoval(actual)
        return changes.map { device.follow($0) }
    }

    private var holders: [Prefix: PublicKey] = [:]
    /// What each peer was given, in order; what another took meanwhile is still in it, and what
    /// went and came is in it twice.
    private var lists: [PublicKey: [Prefix]] = [:]

    private init(_ device: DeviceSnapshot) {
        for peer in device.peers {
            lists[peer.publicKey] = peer.prefixes
            for prefix in peer.prefixes { holders[prefix] = peer.publicKey }
        }
    }

    private mutating func follow(_ change: PeerChange) -> PeerChange {
        let key = change.publicKey
        if change.remove || change.replaceAllowedIPs {
            for prefix in lists[key] ?? [] where holders[prefix] == key { holders[prefix] = nil }
        }
        guard !change.remove else {
            lists[key] = nil
            return change
        }
        guard lists[key] != nil || !change.updateOnly else { return PeerChange.updating(key) }
        var list = change.replaceAllowedIPs ? [] : lists[key] ?? []
        for entry in change.prefixes {
            if !entry.remove {
                if holders.updateValue(key, forKey: entry.prefix) != key {
                    list.append(entry.prefix)
                }
            } else if holders[entry.prefix] == key {
                holders[entry.prefix] = nil
            }
        }
        lists[key] = list
        guard change.prefixes.contains(where: \.remove) else { return change }
        var known: Set<Prefix> = []
        let held = list.filter { holders[$0] == key && known.insert($0).inserted }
        lists[key] = held
        var rewritten = change
        rewritten.replaceAllowedIPs = true
        rewritten.prefixes = held.map { PrefixChange($0) }
        return rewritten
    }
}

extension PeerChange {
    /// Nothing for a peer that is not there.
    fileprivate static func updating(_ key: PublicKey) -> PeerChange {
        var change = PeerChange(publicKey: key)
        change.updateOnly = true
        return change
    }
}
