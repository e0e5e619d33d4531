// SPDX-License-Identifier: Apache-2.0
// POST /api/v1/heartbeat: what a device reports, and what it is told.

/// How far a device's tunnel is.
public enum DeviceState: String, Codable, Sendable, CaseIterable {
    case disconnected, connecting, connected, failed
}

/// Who moves a device's packets.
public enum DeviceBackend: String, Codable, Sendable, CaseIterable {
    case kernel, userspace
}

/// One report. Counters are those of the tunnel since it exists.
public struct HeartbeatRequest: Codable, Equatable, Sendable {
    public var deviceId: String
    /// How often the agent has started, from a counter on disk: of two sessions the one with the
    /// higher boot is the newer (C76).
    public var boot: UInt64
    /// Random, new with each start of the agent.
    public var sessionId: String
    /// One up with each heartbeat of the session, from 1.
    public var sequence: UInt64
    public var agentVersion: String
    /// nil: 1.
    public var protocolVersion: Int? = ProtocolVersion.current
    /// Seconds since the agent started.
    public var uptimeSeconds: UInt64
    public var state: DeviceState
    public var tunnelUp: Bool
    /// nil while there is no tunnel.
    public var backend: DeviceBackend?
    /// nil: never.
    public var lastHandshake: Timestamp?
    public var rxBytes: UInt64
    public var txBytes: UInt64
    /// Of what is applied; nil: nothing yet.
    public var configHash: String?
    public var forwardsHash: String?
    /// A configuration that could not be applied, and the stable code of the reason: the hub does
    /// not send it again before it changes.
    public var rejectedHash: String?
    public var rejectedCode: String?
    /// The `commandId` of the latest command that was done; empty: none yet. nil: the agent does not tell,
    /// and gets `reset` once only.
    public var commandId: String?
    /// Stable codes of what is wrong now.
    public var problems: [String]?

    public init(
        deviceId: String, boot: UInt64, sessionId: String, sequence: UInt64, agentVersion: String,
        uptimeSeconds: UInt64 = 0, state: DeviceState = .disconnected, tunnelUp: Bool = false
    ) {
        self.deviceId = deviceId
        self.boot = boot
        self.sessionId = sessionId
        self.sequence = sequence
        self.agentVersion = agentVersion
        self.uptimeSeconds = uptimeSeconds
        self.state = state
        self.tunnelUp = tunnelUp
        rxBytes = 0
        txBytes = 0
    }
}

/// What the hub answers. Configuration and forwards come only where the device's hash differs.
public struct HeartbeatAnswer: Codable, Equatable, Sendable {
    /// What the hub calls the configuration the device should have.
    public var configHash: String
    public var forwardsHash: String
    public var serverTime: Timestamp
    /// Both or neither: a `WireGuardConfig`, sealed by `Envelope`.
    public var salt: String?
    public var encrypted: String?
    /// All forwards of the device; empty removes them, nil leaves them.
    public var forwards: [Forward]?
    /// As in `ProvisionAnswer`; nil: unchanged.
    public var heartbeatSeconds: Int?
    /// A certificate the hub will use: `sha256//…`, in curl's spelling. Accepted beside the present
    /// one.
    public var nextPin: String?
    /// It comes with each answer until the device has done it.
    public var command: DeviceCommand?
    /// Tells one command from the next; only with `command`.
    public var commandId: String?

    public init(configHash: String, forwardsHash: String, serverTime: Timestamp) {
        self.configHash = configHash
        self.forwardsHash = forwardsHash
        self.serverTime = serverTime
    }
}

/// Something the operator wants done once. As JSON an object whose `type` names it.
public enum DeviceCommand: Equatable, Sendable {
    /// Make a new handshake with the hub.
    case reset
    /// Enrol again, with a fresh token of one use.
    case reprovision(token: SecretText)
    /// Make a new key and tell it (`RotateRequest`).
    case rotateKey
    /// A newer hub's word; it is ignored.
    case unknown(String)
}

extension DeviceCommand: Codable {
    enum CodingKeys: String, CodingKey { case type, token }

    public init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        let type = try fields.decode(String.self, forKey: .type)
        self =
            switch type {
            case "reset": .reset
            case "reprovision":
                .reprovision(token: try fields.decode(SecretText.self, forKey: .token))
            case "rotateKey": .rotateKey
            default: .unknown(type)
            }
    }

    public func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        switch self {
        case .reset: try fields.encode("reset", forKey: .type)
        case .rotateKey: try fields.encode("rotateKey", forKey: .type)
        case .unknown(let type): try fields.encode(type, forKey: .type)
        case .reprovision(let token):
            try fields.encode("reprovision", forKey: .type)
            try fields.encode(token, forKey: .token)
        }
    }
}
