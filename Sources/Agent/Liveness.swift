// SPDX-License-Identifier: Apache-2.0
// Whether a tunnel carries data, from what its device counts. No verdict comes from old data, and a
// handshake that never was is not one of just now (C79); bytes that go out while none come in show a
// dead path within seconds (C80).

/// What the device said about the peer that is the hub.
public struct TunnelReading: Equatable, Sendable {
    public var at: Moment
    /// Seconds since 1970; nil: never.
    public var lastHandshake: Int64?
    public var receivedBytes: UInt64
    public var sentBytes: UInt64
    /// Persistent keepalive in seconds; 0: none.
    public var keepalive: UInt16

    public init(
        at: Moment, lastHandshake: Int64?, receivedBytes: UInt64, sentBytes: UInt64,
        keepalive: UInt16 = 0
    ) {
        self.keepalive = keepalive
        self.at = at
        self.lastHandshake = lastHandshake == 0 ? nil : lastHandshake
        self.receivedBytes = receivedBytes
        self.sentBytes = sentBytes
    }
}

public struct Liveness: Equatable, Sendable {
    public enum Verdict: String, Equatable, Sendable {
        /// Nothing was read lately.
        case unknown
        /// No handshake yet.
        case connecting
        case alive
        /// The session is over and nobody has sent anything: it cannot be told without a packet.
        case quiet
        /// Bytes go out, none come in; or no handshake is answered.
        case dead
    }

    /// REJECT_AFTER_TIME of the WireGuard paper (section 6.1): no session lives longer. Seconds.
    public static let sessionLimit: Int64 = 180
    /// Bytes may go out for so long without an answer: KEEPALIVE_TIMEOUT + REKEY_TIMEOUT (section
    /// 6.1), after which an implementation begins a new handshake itself, and one try of that.
    /// Milliseconds.
    public static let silenceLimit: Int64 = 20_000
    /// A reading that is older says nothing. Milliseconds.
    public static let freshness: Int64 = 15_000
    /// One packet to a quiet peer in so many milliseconds is enough to tell.
    public static let probeInterval: Int64 = 180_000

    private var latest: TunnelReading?
    /// Since when bytes go out and none come in.
    private var silentSince: Moment?
    private var probedAt: Moment?

    public init() {}

    /// Another device, or another key: what was counted before means nothing.
    public mutating func reset() { self = Liveness() }

    public mutating func note(_ reading: TunnelReading) {
        defer { latest = reading }
        guard let latest, latest.at < reading.at else { return }
        // A device that was made anew counts from 0.
        let isNew =
            reading.receivedBytes < latest.receivedBytes || reading.sentBytes < latest.sentBytes
        let hasReceived =
            reading.receivedBytes > latest.receivedBytes
            || reading.lastHandshake != latest.lastHandshake
        if isNew || hasReceived {
            silentSince = nil
        } else if reading.asks(since: latest), silentSince == nil {
            silentSince = latest.at
        }
    }

    /// `wallSeconds`: seconds since 1970.
    public func verdict(at now: Moment, wallSeconds: Int64) -> Verdict {
        guard let latest, now - latest.at <= Self.freshness else { return .unknown }
        let isSilent = silentSince.map { latest.at - $0 >= Self.silenceLimit } ?? false
        guard let handshake = latest.lastHandshake else { return isSilent ? .dead : .connecting }
        if isSilent { return .dead }
        // A clock that was set back makes it look as if it came from the future: it is recent.
        return wallSeconds - handshake < Self.sessionLimit ? .alive : .quiet
    }

    /// Whether to send one packet through the tunnel now, so that `quiet` becomes something else.
    public mutating func takeProbe(at now: Moment, wallSeconds: Int64) -> Bool {
        guard verdict(at: now, wallSeconds: wallSeconds) == .quiet else { return false }
        if let probedAt, now - probedAt < Self.probeInterval { return false }
        probedAt = now
        return true
    }
}

extension TunnelReading {
    /// Bytes of a keepalive: a data message (WireGuard paper, section 5.4.6) around nothing.
    private static let keepaliveLength: UInt64 = 32

    /// Whether something went out since `earlier` that a live peer answers. Keepalives are not: one
    /// answers received data (section 6.5), and a persistent one comes in each interval.
    fileprivate func asks(since earlier: TunnelReading) -> Bool {
        guard sentBytes > earlier.sentBytes else { return false }
        let (sent, milliseconds) = (sentBytes - earlier.sentBytes, UInt64(max(0, at - earlier.at)))
        let persistent = keepalive == 0 ? 0 : milliseconds / (1000 * UInt64(keepalive))
        let isOfKeepalives =
            sent.isMultiple(of: Self.keepaliveLength)
            && sent / Self.keepaliveLength <= persistent + 1
        return !isOfKeepalives
    }
}
