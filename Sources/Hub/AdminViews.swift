// SPDX-License-Identifier: Apache-2.0
// What the operator API answers, as JSON. docs/openapi.json describes it.
import ControlAPI
import WireGuard

public struct TokenView: Codable, Equatable, Sendable {
    public enum Status: String, Codable, Sendable, CaseIterable {
        case usable, used, expired, revoked
    }

    public var id: String
    public var label: String
    public var status: Status
    public var created: Timestamp
    public var expires: Timestamp?
    /// nil: any number.
    public var maximumUses: Int?
    public var uses: Int
    public var deviceId: String?
    /// The token itself: in the answer that makes it, and never again.
    public var token: SecretText?
}

public struct DeviceView: Codable, Equatable, Sendable {
    /// Whether it reports to the hub. Says nothing about the tunnel (C112).
    public enum Control: String, Codable, Sendable, CaseIterable {
        /// Enrolled, and not heard of since.
        case pending
        case reporting
        case silent
        case revoked
    }

    public var id: String
    public var name: String
    public var hwid: String
    public var platform: String
    public var agentVersion: String
    public var publicKey: String
    public var addresses: [String]
    public var networks: [String]
    /// nil: those of the network.
    public var allowedIps: [String]?
    public var control: Control
    public var lastSeen: Timestamp?
    public var created: Timestamp
    public var revoked: Timestamp?
    public var tunnel: TunnelView
    /// Whether it runs what it should.
    public var isInStep: Bool
    public var rejectedCode: String?
    public var problems: [String]
    /// A command that waits for its next heartbeat.
    public var command: String?
    /// `offered` or `moved` while its key changes.
    public var rotation: String?
    public var openAlarms: Int
    /// Of one that is asked for by itself; nil in lists.
    public var forwards: [ForwardView]?
}

/// The tunnel of a device as both ends see it.
public struct TunnelView: Codable, Equatable, Sendable {
    /// As the device reports it.
    public var state: DeviceState
    public var isUp: Bool
    public var backend: DeviceBackend?
    public var lastHandshake: Timestamp?
    public var rxBytes: UInt64
    public var txBytes: UInt64
    /// As the hub's own interface shows it; nil: not known.
    public var hub: HubSideView?
}

public struct HubSideView: Codable, Equatable, Sendable {
    public var endpoint: String?
    public var lastHandshake: Timestamp?
    public var rxBytes: UInt64
    public var txBytes: UInt64
}

public struct ForwardView: Codable, Equatable, Sendable {
    public var id: String
    public var deviceId: String
    public var `protocol`: String
    public var publicPort: Int
    public var publicPortEnd: Int?
    public var targetIp: String
    public var targetPort: Int
    public var description: String?
    public var keepsSource: Bool
    public var isEnabled: Bool
}

public struct AlarmView: Codable, Equatable, Sendable {
    public var id: Int64
    public var kind: String
    public var deviceId: String?
    public var text: String
    public var raised: Timestamp
    public var cleared: Timestamp?
    public var acknowledged: Timestamp?
}

public struct LogView: Codable, Equatable, Sendable {
    public var id: Int64
    public var time: Timestamp
    public var level: String
    public var tag: String
    public var message: String
    public var deviceId: String?
    public var actor: String
}

public struct CountsView: Codable, Equatable, Sendable {
    public var devices: Int
    public var pending: Int
    public var reporting: Int
    public var silent: Int
    public var revoked: Int
    /// Of those that report: with a tunnel that is up.
    public var tunnelsUp: Int
    public var tokens: Int
    public var forwards: Int
    public var openAlarms: Int
}

/// The hub itself.
public struct HubView: Codable, Equatable, Sendable {
    public var schemaVersion = 1
    public var version: String
    public var started: Timestamp
    public var isSetUp: Bool
    public var publicKey: String
    public var endpoint: String
    public var addresses: [String]
    /// What devices may pin; nil: plain HTTP.
    public var pin: String?
    /// When the certificate in use ends; nil: plain HTTP.
    public var certificateExpires: Timestamp?
    public var interface: String
    /// nil: peers and forwards are applied.
    public var keeperProblem: String?
    public var keeperApplied: Timestamp?
    /// How the hub's secrets are kept.
    public var protection: String
    /// Why what devices report is not on disk; nil: it is.
    public var storageProblem: String?
}

public struct OperatorView: Codable, Equatable, Sendable {
    public var name: String
    public var created: Timestamp
}

/// A part of a list. `total` counts what the question fits, not what is on this page.
public struct Page<Item: Codable & Sendable>: Codable, Sendable {
    public var items: [Item]
    public var total: Int
    public var offset: Int
}

// MARK: making them

extension Timestamp {
    init(_ time: Milliseconds) { self.init(unixSeconds: time / 1000) }
}

extension TokenView {
    init(_ token: EnrolToken, at now: Milliseconds, text: SecretText? = nil) {
        let status: Status =
            if token.revoked != nil {
                .revoked
            } else if let limit = token.maximumUses, token.uses >= limit {
                .used
            } else if let expires = token.expires, expires <= now {
                .expired
            } else {
                .usable
            }
        self.init(
            id: token.id, label: token.label, status: status, created: Timestamp(token.created),
            expires: token.expires.map { Timestamp($0) }, maximumUses: token.maximumUses,
            uses: token.uses, deviceId: token.deviceId, token: text)
    }
}

extension ForwardView {
    init(_ rule: ForwardRule) {
        let wire = rule.wire
        self.init(
            id: rule.id, deviceId: rule.deviceId, protocol: wire.protocol,
            publicPort: wire.publicPort, publicPortEnd: wire.publicPortEnd, targetIp: wire.targetIp,
            targetPort: wire.targetPort, description: wire.description,
            keepsSource: rule.keepsSource, isEnabled: rule.isEnabled)
    }
}

extension AlarmView {
    init(_ alarm: Alarm) {
        self.init(
            id: alarm.id, kind: alarm.kind.rawValue, deviceId: alarm.deviceId, text: alarm.text,
            raised: Timestamp(alarm.raised), cleared: alarm.cleared.map { Timestamp($0) },
            acknowledged: alarm.acknowledged.map { Timestamp($0) })
    }
}

extension HubCore {
    func control(_ device: Device, at now: Milliseconds) -> DeviceView.Control {
        if device.revoked != nil { return .revoked }
        if device.confirmed == nil { return .pending }
        return isLive(device, at: now) ? .reporting : .silent
    }

    mutating func view(_ device: Device, at now: Milliseconds) -> DeviceView {
        let state = live[device.id] ?? LiveDevice()
        // Of one that has told nothing, nothing is compared: to make hashes takes long.
        let isAsked = device.revoked == nil && state.configHash != nil
        let wanted = isAsked ? wantedHashes(of: device) : nil
        return DeviceView(
            id: device.id, name: device.name, hwid: device.hwid, platform: device.platform,
            agentVersion: device.agentVersion, publicKey: device.publicKey.base64,
            addresses: device.addresses.map(\.description),
            networks: device.networks.map(\.description),
            allowedIps: device.routes?.map(\.description), control: control(device, at: now),
            lastSeen: state.seen.map { Timestamp($0) }, created: Timestamp(device.created),
            revoked: device.revoked.map { Timestamp($0) }, tunnel: TunnelView(state),
            isInStep: wanted != nil && state.configHash == wanted?.configuration
                && state.forwardsHash == wanted?.forwards,
            rejectedCode: state.rejectedHash == nil ? nil : state.rejectedCode,
            problems: state.problems, command: device.command?.text,
            rotation: device.rotation?.phase.rawValue,
            openAlarms: Alarm.Kind.allCases.count {
                model.openAlarm($0, of: device.id) != nil
            })
    }
}

extension TunnelView {
    init(_ state: LiveDevice) {
        self.init(
            state: state.state, isUp: state.isTunnelUp, backend: state.backend,
            lastHandshake: state.handshake.map { Timestamp($0) }, rxBytes: state.received,
            txBytes: state.sent,
            hub: state.peer.map { peer in
                HubSideView(
                    endpoint: peer.endpoint, lastHandshake: peer.handshake.map { Timestamp($0) },
                    rxBytes: peer.received, txBytes: peer.sent)
            })
    }
}
