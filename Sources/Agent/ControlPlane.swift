// SPDX-License-Identifier: Apache-2.0
// What the hub's answers mean for the agent. The class comes from the code in the answer, never from
// a bare status (docs/control-api.md): a proxy's 410 revokes nobody (C68, C69).

/// Why a request to the hub did not give what was asked.
public struct ControlFault: Error, Equatable, Sendable {
    public enum Kind: String, Equatable, Sendable {
        /// The network, TLS, a proxy, a busy hub, an answer that is none: it may pass.
        case transient
        /// The device token is too old.
        case authExpired
        /// The enrolment token is unknown, used up or too old.
        case tokenRefused
        /// The operator removed this device.
        case revoked
        /// The hub does not know this device. It may be the hub that lost its memory.
        case unknownDevice
        /// Another session has this identity.
        case duplicateIdentity
        case upgradeRequired
        /// The hub does not understand the request.
        case badRequest
    }

    public var kind: Kind
    /// A stable word: of the hub's answer, or of this program.
    public var code: String
    /// For people: what was tried, why it failed, what to do. Never with a secret.
    public var reason: String
    /// Milliseconds.
    public var retryAfter: Int64?

    public init(_ kind: Kind, code: String, _ reason: String, retryAfter: Int64? = nil) {
        self.kind = kind
        self.code = code
        self.reason = reason
        self.retryAfter = retryAfter
    }
}

/// How it stands with the hub, apart from how it stands with the tunnel (C112).
public struct ControlPlane: Equatable, Sendable {
    public enum Standing: String, Equatable, Sendable {
        /// Not asked yet.
        case unknown
        case connected
        /// It failed, once or twice.
        case retrying
        /// It fails; the tunnel goes on.
        case failed
        case authExpired
        /// Unknown to the hub.
        case unknownDevice
        case duplicateIdentity
        case upgradeRequired
        case revoked
    }

    /// 404s in a row, over at least so long, until "unknown to the hub" is said.
    public static let unknownCount = 3
    public static let unknownSpan: Int64 = 600_000

    public private(set) var standing = Standing.unknown
    public private(set) var since: Moment
    /// nil: connected.
    public private(set) var fault: ControlFault?
    /// Of the latest answer that was good.
    public private(set) var connectedAt: Moment?
    /// 404s in a row, with the time of the first.
    private var unknowns: (count: Int, since: Moment)?

    public init(at now: Moment) { since = now }

    public static func == (left: ControlPlane, right: ControlPlane) -> Bool {
        left.standing == right.standing && left.since == right.since && left.fault == right.fault
            && left.connectedAt == right.connectedAt
            && left.unknowns?.count == right.unknowns?.count
            && left.unknowns?.since == right.unknowns?.since
    }

    mutating func answered(at now: Moment) {
        unknowns = nil
        fault = nil
        connectedAt = now
        become(.connected, now)
    }

    /// `failures`: in a row, with this one.
    mutating func failed(_ fault: ControlFault, failures: Int, at now: Moment) {
        self.fault = fault
        if fault.kind != .unknownDevice { unknowns = nil }
        switch fault.kind {
        case .transient, .badRequest, .tokenRefused:
            become(failures >= HeartbeatSchedule.failuresUntilFailed ? .failed : .retrying, now)
        case .authExpired: become(.authExpired, now)
        case .duplicateIdentity: become(.duplicateIdentity, now)
        case .upgradeRequired: become(.upgradeRequired, now)
        case .revoked: become(.revoked, now)
        case .unknownDevice: noteUnknown(now)
        }
    }

    private mutating func noteUnknown(_ now: Moment) {
        let first = unknowns?.since ?? now
        let count = (unknowns?.count ?? 0) + 1
        unknowns = (count, first)
        let isSure = count >= Self.unknownCount && now - first >= Self.unknownSpan
        become(isSure ? .unknownDevice : .retrying, now)
    }

    private mutating func become(_ new: Standing, _ now: Moment) {
        guard new != standing else { return }
        standing = new
        since = now
    }
}
