// SPDX-License-Identifier: Apache-2.0
import WireGuard

/// Whether a peer is told the endpoint that is configured for it. A peer that roamed is reached
/// where it was heard last, and that must not be undone while its session lives (pitfall 56).
public struct EndpointPolicy: Sendable {
    /// Seconds. Without a handshake for that long no session is left: REJECT_AFTER_TIME, section
    /// 6.1 of the WireGuard paper (C27, C28).
    public static let staleAge: Int64 = 180

    private let previous: [PublicKey: DesiredPeer]?
    private let now: Int64?

    /// - Parameters:
    ///   - previous: what was applied last; nil: unknown.
    ///   - now: wall clock, seconds; nil: unknown, then only a peer that never had a handshake
    ///     counts as stale.
    public init(previous: DesiredTunnel? = nil, now: Int64? = nil) {
        self.previous = previous.map { tunnel in
            Dictionary(tunnel.peers.map { ($0.publicKey, $0) }, uniquingKeysWith: { $1 })
        }
        self.now = now
    }

    /// The endpoint to send; nil: leave the peer's.
    public func endpoint(for peer: DesiredPeer, having actual: PeerSnapshot) -> Endpoint? {
        guard let wanted = peer.endpoint, wanted != actual.endpoint else { return nil }
        guard actual.endpoint != nil else { return wanted }
        return hasChanged(peer) || isStale(actual) ? wanted : nil
    }

    /// 0 is "never" (C79); a handshake in the future is a clock that was set, not an old session.
    public func isStale(_ peer: PeerSnapshot) -> Bool {
        guard peer.lastHandshakeSeconds > 0 else { return true }
        guard let now else { return false }
        return now - peer.lastHandshakeSeconds > Self.staleAge
    }

    private func hasChanged(_ peer: DesiredPeer) -> Bool {
        guard let previous else { return false }
        guard let before = previous[peer.publicKey] else { return true }
        if before.endpointSource != nil || peer.endpointSource != nil {
            return before.endpointSource != peer.endpointSource
        }
        return before.endpoint != peer.endpoint
    }
}
