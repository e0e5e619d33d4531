// SPDX-License-Identifier: Apache-2.0
// When to look for what others removed, and which of the differences to mend. Mending is not
// applying: what others added stays, and so does what `wg set` did to the peers.
import TunnelPlan
import WireGuard

struct Healer: Equatable, Sendable {
    /// Milliseconds. Who removes one thing removes the next a moment later.
    static let settlingTime: Int64 = 100
    /// So many in a row are mended at once; then one each `refillTime`, so that two programs that
    /// undo each other do not spin.
    static let burst: Int64 = 8
    static let refillTime: Int64 = 10_000
    /// After a step that failed.
    static let retryTime: Int64 = 5_000
    /// The same warning is not repeated for so long.
    static let silence: Int64 = 60_000

    /// When to look; nil: nothing was heard.
    private(set) var dueAt: Int64?
    private var tokens = burst
    private var refilledAt: Int64 = 0
    /// What was said when.
    private var said: [String: Int64] = [:]

    mutating func mark(now: Int64) { markAt(now + Self.settlingTime, now: now) }

    mutating func markFailed(now: Int64) { markAt(now + Self.retryTime, now: now) }

    private mutating func markAt(_ time: Int64, now: Int64) {
        refill(now: now)
        let allowed = tokens > 0 ? time : max(time, refilledAt + Self.refillTime)
        dueAt = min(dueAt ?? allowed, allowed)
    }

    /// The look has begun.
    mutating func take() { dueAt = nil }

    /// Something was mended. True when it is time to say that somebody keeps undoing it.
    mutating func spend(now: Int64) -> Bool {
        refill(now: now)
        tokens = max(0, tokens - 1)
        return tokens == 0
    }

    private mutating func refill(now: Int64) {
        guard tokens < Self.burst else {
            refilledAt = now
            return
        }
        let periods = max(0, now - refilledAt) / Self.refillTime
        guard periods > 0 else { return }
        tokens = min(Self.burst, tokens + periods)
        refilledAt += periods * Self.refillTime
    }

    /// Whether to say it now.
    mutating func isNews(_ line: String, now: Int64) -> Bool {
        said = said.filter { now - $0.value < Self.silence }
        guard said[line] == nil else { return false }
        said[line] = now
        return true
    }
}

/// The part of `changes` that mends a tunnel: what belongs to it comes back; what `previous` had and
/// `desired` has no more goes; the rest stays as others made it.
func mending(
    _ changes: [Change], desired: DesiredTunnel, previous: DesiredTunnel?
) -> [Change] {
    changes.compactMap { change in
        switch change {
        case .addAddress, .addRoute, .addRule, .setMTU, .setUp(true), .setDNS(.some),
            .setFirewall(.some), .setSetting(_, .some):
            return change
        case .removeAddress(let address):
            // One in the way of its own with another length (IPv6) goes too.
            let isInTheWay = desired.host.addresses.contains { $0.address == address.address }
            return isInTheWay || previous?.host.addresses.contains(address) == true ? change : nil
        case .removeRoute(let route):
            return previous?.host.routes.contains(route) == true ? change : nil
        case .removeRule(let rule):
            // The exemption that a plan adds for its own duration goes with it.
            let isOurs =
                previous?.host.rules.contains(rule) == true || changes.contains(.addRule(rule))
            return isOurs ? change : nil
        // None is wanted once a change is over: a keeper that died within an exchange left it.
        case .removeBarrier: return change
        case .setDNS(nil): return previous?.host.dns != nil ? change : nil
        case .setFirewall(nil): return previous?.host.firewall != nil ? change : nil
        case .setSetting(let setting, nil):
            return previous?.host.settings[setting] != nil ? change : nil
        case .setDevice(let device):
            // Without its mark a full tunnel's own packets loop (C37).
            return device.fwmark.map { .setDevice(DeviceChange(fwmark: $0)) }
        case .createLink, .createReplacement, .exchangeLink, .greetPeers, .removeLink, .addBarrier,
            .setUp(false), .addPeer, .changePeer, .removePeer:
            return nil
        }
    }
}
