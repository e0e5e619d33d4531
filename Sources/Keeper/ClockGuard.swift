// SPDX-License-Identifier: Apache-2.0
// A machine that begins with a clock of long ago (C78): its peers have seen later TAI64N labels under
// the same key and refuse its handshakes (the WireGuard paper, section 5.1) until the clock has passed
// them. So the latest label is kept beyond the machine's life. An engine is told never to go below it;
// the kernel cannot be told: it gets its peers' endpoints, without which it initiates nothing, when the
// clock is right or the time for that is over.
import TunnelPlan
import WireGuard

/// What is kept of the labels of one tunnel.
public struct ClockRecord: Equatable, Sendable {
    /// Peers remember labels by the key that signed them: those of another key mean nothing.
    public var publicKey: PublicKey
    /// Of the latest label that was seen, since 1970.
    public var seconds: Int64

    public init(publicKey: PublicKey, seconds: Int64) {
        self.publicKey = publicKey
        self.seconds = seconds
    }
}

/// Of an engine's state document (docs/engine-state.md), in seconds since 1970; nil: it has sent no
/// initiation and was told no floor, or the document is of another kind.
public func latestLabel(ofStateDocument text: [UInt8]) -> Int64? {
    var reader = JSONReader(text)
    do throws(JSONError) {
        try reader.beginObject()
        while let key = try reader.nextKey() {
            guard key == "timestamp_floor" else {
                try reader.skip()
                continue
            }
            let seconds = try reader.word().prefix { $0 != "." }
            return Int64(seconds).flatMap { $0 > 0 ? $0 : nil }
        }
    } catch {
        return nil
    }
    return nil
}

/// What is done about a clock that is behind when a device is made. Policy without I/O.
struct ClockGuard: Equatable, Sendable {
    /// Between looks at the labels. Milliseconds.
    static let lookInterval: Int64 = 60_000
    /// A record is replaced when the label is so much later: a tunnel in use writes no more often.
    /// Seconds.
    static let recordStep: Int64 = 240
    /// Labels may have come so long after the record: a step of it, a look, and the seconds that
    /// both take. Seconds.
    static let margin: Int64 = 320
    /// The kernel's first initiation waits so long at most: the time may come through this very tunnel,
    /// and a peer that has begun anew remembers nothing. Milliseconds.
    static let longestHold: Int64 = 120_000
    /// Between looks at the clock meanwhile. Milliseconds.
    static let holdInterval: Int64 = 2_000

    enum Measure: Equatable, Sendable {
        case none
        /// The engine that is about to be made gets this floor, in seconds since 1970.
        case raiseFloor(Int64)
        /// The kernel's peers get their endpoints later.
        case holdEndpoints
    }

    struct Hold: Equatable, Sendable {
        var until: Int64
        var lookAt: Int64
    }

    /// As it was kept, or written last.
    private(set) var record: ClockRecord?
    /// The key of the tunnel as it was decided last.
    private(set) var ownKey: PublicKey?
    private(set) var lookAt: Int64?
    private(set) var hold: Hold?

    mutating func start(_ kept: ClockRecord?) { record = kept }

    // MARK: labels

    /// The tunnel is there, under this key.
    mutating func begin(_ key: PublicKey?, _ now: Moment) {
        ownKey = key
        lookAt = key == nil ? nil : lookAt ?? now.milliseconds + Self.lookInterval
    }

    mutating func end() { (lookAt, hold) = (nil, nil) }

    var nextTime: Int64? { [lookAt, hold?.lookAt].compactMap { $0 }.min() }

    mutating func takeLook(_ now: Moment) -> Bool {
        guard let lookAt, lookAt <= now.milliseconds else { return false }
        self.lookAt = now.milliseconds + Self.lookInterval
        return true
    }

    /// `seconds`: the latest label's; nil: none yet. What is to be written; nil: what is there is good.
    /// `isLast`: nobody looks again.
    mutating func saw(_ seconds: Int64?, isLast: Bool) -> ClockRecord? {
        guard let seconds, let ownKey else { return nil }
        let new = ClockRecord(publicKey: ownKey, seconds: seconds)
        if let record, record.publicKey == ownKey {
            let step = isLast ? 1 : Self.recordStep
            guard seconds >= record.seconds + step else { return nil }
        }
        record = new
        return new
    }

    /// Seconds that the clock is behind the latest label; nil: it is not.
    func behind(_ now: Moment) -> Int64? { behind(ownKey, now) }

    private func behind(_ key: PublicKey?, _ now: Moment) -> Int64? {
        guard let record, record.publicKey == key, now.wallSeconds < record.seconds else {
            return nil
        }
        return record.seconds - now.wallSeconds
    }

    // MARK: a new device

    /// `key`: the new device's.
    func measure(for backend: BackendKind?, key: PublicKey?, _ now: Moment) -> Measure {
        guard let record, behind(key, now) != nil else { return .none }
        return backend == .kernel ? .holdEndpoints : .raiseFloor(record.seconds + Self.margin)
    }

    mutating func beginHold(_ now: Moment) {
        hold = Hold(
            until: now.milliseconds + Self.longestHold,
            lookAt: now.milliseconds + Self.holdInterval)
    }

    /// True: it is time to give the endpoints, whichever way it ended.
    mutating func isHoldOver(_ now: Moment) -> Bool {
        guard let hold, hold.lookAt <= now.milliseconds else { return false }
        self.hold?.lookAt = now.milliseconds + Self.holdInterval
        return behind(now) == nil || hold.until <= now.milliseconds
    }

    mutating func endHold() { hold = nil }

    /// Without endpoints for peers that have none yet; `state`: as it was found.
    func withoutEndpoints(_ changes: [Change], _ state: TunnelState?) -> [Change] {
        let reached = Set(
            (state?.device.peers ?? []).filter { $0.endpoint != nil }.map(\.publicKey))
        return changes.compactMap { change in
            switch change {
            case .addPeer(var peer):
                peer.endpoint = nil
                return .addPeer(peer)
            case .changePeer(var peer) where !reached.contains(peer.publicKey):
                guard peer.endpoint != nil else { return change }
                peer.endpoint = nil
                var nothing = PeerChange(publicKey: peer.publicKey)
                nothing.updateOnly = peer.updateOnly
                return peer == nothing ? nil : .changePeer(peer)
            default: return change
            }
        }
    }
}
