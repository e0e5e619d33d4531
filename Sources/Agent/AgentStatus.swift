// SPDX-License-Identifier: Apache-2.0
// What `status` tells: both planes apart, so that neither hides the other (C112). Members may be
// added; those that are here keep their meaning within a schema version.
import ControlAPI

public struct AgentStatus: Codable, Equatable, Sendable {
    public static let schemaVersion = 1

    public struct Device: Codable, Equatable, Sendable {
        public var deviceId: String?
        public var name: String?
        /// The six of the status card: these, `deviceId`, and `tunnel.lastHandshake`.
        public var ipAddress: String?
        public var adminWeb: String?
        public var allowedIps: String?
        public var transport: String?
    }

    public struct Tunnel: Codable, Equatable, Sendable {
        /// `none`, `applying`, `up`, `failed`, `down`.
        public var standing: String
        public var since: Timestamp
        public var reason: String?
        /// `disconnected`, `connecting`, `connected`, `failed`.
        public var connection: String
        /// What the counters say: `unknown`, `connecting`, `alive`, `quiet`, `dead`.
        public var liveness: String
        public var livenessSince: Timestamp
        /// `kernel`, `userspace`.
        public var backend: String?
        /// Absent: never.
        public var lastHandshake: Timestamp?
        public var receivedBytes: UInt64?
        public var sentBytes: UInt64?
        public var publicKey: String?
        public var endpoint: String?
    }

    public struct Control: Codable, Equatable, Sendable {
        /// `unknown`, `connected`, `retrying`, `failed`, `authExpired`, `unknownDevice`,
        /// `duplicateIdentity`, `upgradeRequired`, `revoked`.
        public var standing: String
        public var since: Timestamp
        public var code: String?
        public var reason: String?
        /// Of the latest good answer.
        public var connectedAt: Timestamp?
        /// In a row.
        public var failures: Int
        public var nextHeartbeat: Timestamp?
        public var hasEvents: Bool
    }

    public struct Sync: Codable, Equatable, Sendable {
        public var configHash: String?
        public var forwardsHash: String?
        public var rejectedHash: String?
        public var rejectedCode: String?
        public var rejectedReason: String?
    }

    public var schemaVersion = AgentStatus.schemaVersion
    public var version: String
    public var process: Int32
    public var interface: String
    /// `boot`, `appInit`, `provision`, `appRetry`, `tunnelUp`, `heartbeat`, `tunnelRebuild`, `ended`.
    public var phase: String
    public var phaseSince: Timestamp
    public var code: String?
    public var reason: String?
    public var isEnrolled: Bool
    public var device: Device
    public var tunnel: Tunnel
    public var control: Control
    public var sync: Sync
    public var forwards: [Forward]
    /// What guards the secrets on disk.
    public var storage: String?
    /// Why something that is in force is not on disk, and since when; absent: all is.
    public var storageProblem: String?
    public var storageProblemSince: Timestamp?
    /// Stable codes of what is wrong now.
    public var problems: [String]
}

/// Moments of this boot as times of the wall clock.
struct Calendar {
    let now: Now

    func time(_ moment: Moment) -> Timestamp {
        Timestamp(unixSeconds: now.wallSeconds - (now.moment - moment) / 1000)
    }
}

extension AgentStatus.Tunnel {
    init(_ state: AgentState, _ facts: TunnelFacts?, _ calendar: Calendar) {
        standing = state.tunnel.standing.rawValue
        since = calendar.time(state.tunnel.since)
        reason = state.tunnel.reason
        connection = state.connection.rawValue
        liveness = state.tunnel.verdict.rawValue
        livenessSince = calendar.time(state.tunnel.verdictSince)
        backend = facts?.backend.rawValue
        let reading = facts?.reading
        lastHandshake = reading?.lastHandshake.map { Timestamp(unixSeconds: $0) }
        receivedBytes = reading?.receivedBytes
        sentBytes = reading?.sentBytes
        publicKey = facts?.publicKey?.base64
        endpoint = facts?.endpoint
    }
}

extension AgentStatus.Control {
    init(_ state: AgentState, hasEvents: Bool, _ calendar: Calendar) {
        standing = state.control.standing.rawValue
        since = calendar.time(state.control.since)
        code = state.control.fault?.code
        reason = state.control.fault?.reason
        connectedAt = state.control.connectedAt.map { calendar.time($0) }
        failures = state.schedule.failures
        nextHeartbeat = state.schedule.nextAt.map { calendar.time($0) }
        self.hasEvents = hasEvents
    }
}

extension AgentStatus.Sync {
    init(_ sync: Sync) {
        configHash = sync.applied?.configHash
        forwardsHash = sync.applied?.forwardsHash
        rejectedHash = sync.rejectedHash
        rejectedCode = sync.rejection?.code
        rejectedReason = sync.rejection?.reason
    }
}

extension AgentStatus.Device {
    init(_ identity: Identity?, _ usable: UsableConfiguration?, _ facts: TunnelFacts?) {
        deviceId = identity?.deviceId
        name = identity?.name
        adminWeb = identity?.url
        ipAddress = usable?.config.addresses.map(\.description).joined(separator: ", ")
        allowedIps = usable?.config.hub.allowedIPs.map(\.description).joined(separator: ", ")
        transport = facts.map { facts in
            "WireGuard (\(facts.backend.rawValue)), UDP"
                + (facts.endpoint.map { " to \($0)" } ?? "")
        }
    }
}
