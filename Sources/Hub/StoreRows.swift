// SPDX-License-Identifier: Apache-2.0
// Records as rows. `columns` and `values` are in one order; the first column is the key.
import SQLite
import WireGuard

extension Device {
    static let columns = [
        "id", "hwid", "name", "platform", "agent_version", "public_key", "other_key",
        "rotation_phase", "rotation_since", "rotation_received", "addresses", "networks", "routes",
        "token_id", "created", "provisioned", "confirmed", "revoked", "sealed_key", "command",
        "sealed_psk",
    ]

    var values: [Value] {
        [
            .text(id), .text(hwid), .text(name), .text(platform), .text(agentVersion),
            .text(publicKey.base64), Value(rotation?.otherKey.base64),
            Value(rotation?.phase.rawValue), Value(rotation?.since),
            Value(rotation.map { Int64(clamping: $0.receivedAtMove) }), .text(joined(addresses)),
            .text(joined(networks)), Value(routes.map { joined($0) }), .text(tokenId),
            .integer(created), .integer(provisioned), Value(confirmed), Value(revoked),
            Value(sealedKey), Value(command?.text), Value(sealedPresharedKey),
        ]
    }

    init?(_ row: Row) {
        guard let id = row.text("id"), let hwid = row.text("hwid"), let name = row.text("name"),
            let key = row.text("public_key").flatMap({ try? PublicKey(base64: $0) }),
            let addresses = split(row.text("addresses"), IPAddress.init),
            let networks = split(row.text("networks"), Prefix.init),
            let tokenId = row.text("token_id"), let created = row.integer("created"),
            let provisioned = row.integer("provisioned")
        else { return nil }
        self.init(
            id: id, hwid: hwid, name: name, platform: row.text("platform") ?? "",
            agentVersion: row.text("agent_version") ?? "", publicKey: key,
            rotation: Rotation(row), addresses: addresses, networks: networks, tokenId: tokenId,
            created: created, provisioned: provisioned)
        if let text = row.text("routes") {
            guard let routes = split(text, Prefix.init) else { return nil }
            self.routes = routes
        }
        confirmed = row.integer("confirmed")
        revoked = row.integer("revoked")
        sealedKey = row.blob("sealed_key")
        sealedPresharedKey = row.blob("sealed_psk")
        command = row.text("command").flatMap { PendingCommand(text: $0) }
    }
}

extension Rotation {
    init?(_ row: Row) {
        guard let key = row.text("other_key").flatMap({ try? PublicKey(base64: $0) }),
            let phase = row.text("rotation_phase").flatMap({ Phase(rawValue: $0) }),
            let since = row.integer("rotation_since"),
            let received = row.integer("rotation_received")
        else { return nil }
        self.init(
            otherKey: key, phase: phase, since: since,
            receivedAtMove: UInt64(max(0, received)))
    }
}

extension PendingCommand {
    var text: String {
        switch self {
        case .reset: "reset"
        case .rotateKey: "rotateKey"
        case .reprovision: "reprovision"
        }
    }

    init?(text: String) {
        switch text {
        case "reset": self = .reset
        case "rotateKey": self = .rotateKey
        case "reprovision": self = .reprovision
        default: return nil
        }
    }
}

extension EnrolToken {
    static let columns = [
        "id", "digest", "label", "created", "expires", "maximum_uses", "uses", "device_id",
        "revoked",
    ]

    var values: [Value] {
        [
            .text(id), .text(digest), .text(label), .integer(created), Value(expires),
            Value(maximumUses.map { Int64($0) }), .integer(Int64(uses)), Value(deviceId),
            Value(revoked),
        ]
    }

    init?(_ row: Row) {
        guard let id = row.text("id"), let digest = row.text("digest"),
            let created = row.integer("created")
        else { return nil }
        self.init(id: id, digest: digest, label: row.text("label") ?? "", created: created)
        expires = row.integer("expires")
        maximumUses = row.integer("maximum_uses").map { Int($0) }
        uses = Int(row.integer("uses") ?? 0)
        deviceId = row.text("device_id")
        revoked = row.integer("revoked")
    }
}

extension Credential {
    static let columns = ["digest", "device_id", "created", "expires"]

    var values: [Value] {
        [.text(digest), .text(deviceId), .integer(created), Value(expires)]
    }

    init?(_ row: Row) {
        guard let digest = row.text("digest"), let device = row.text("device_id"),
            let created = row.integer("created")
        else { return nil }
        self.init(
            digest: digest, deviceId: device, created: created, expires: row.integer("expires"))
    }
}

extension ForwardRule {
    static let columns = [
        "id", "device_id", "transport", "port", "port_end", "target", "target_port", "description",
        "keeps_source", "is_enabled",
    ]

    var values: [Value] {
        [
            .text(id), .text(deviceId), .text(transport.rawValue),
            .integer(Int64(ports.lowerBound)), .integer(Int64(ports.upperBound)),
            .text("\(target)"), .integer(Int64(targetPort)), .text(description),
            Value(keepsSource), Value(isEnabled),
        ]
    }

    init?(_ row: Row) {
        guard let id = row.text("id"), let device = row.text("device_id"),
            let transport = row.text("transport").flatMap({ Transport(rawValue: $0) }),
            let first = row.integer("port").flatMap({ UInt16(exactly: $0) }),
            let last = row.integer("port_end").flatMap({ UInt16(exactly: $0) }), first <= last,
            let target = row.text("target").flatMap({ IPAddress($0) }),
            let targetPort = row.integer("target_port").flatMap({ UInt16(exactly: $0) })
        else { return nil }
        self.init(
            id: id, deviceId: device, transport: transport, ports: first...last, target: target,
            targetPort: targetPort, description: row.text("description") ?? "",
            keepsSource: row.flag("keeps_source"), isEnabled: row.flag("is_enabled"))
    }
}

extension Alarm {
    static let columns = [
        "id", "device_id", "kind", "text", "raised", "cleared", "acknowledged",
    ]

    var values: [Value] {
        [
            .integer(id), Value(deviceId), .text(kind.rawValue), .text(text), .integer(raised),
            Value(cleared), Value(acknowledged),
        ]
    }

    init?(_ row: Row) {
        guard let id = row.integer("id"),
            let kind = row.text("kind").flatMap({ Kind(rawValue: $0) }),
            let text = row.text("text"), let raised = row.integer("raised")
        else { return nil }
        self.init(
            id: id, deviceId: row.text("device_id"), kind: kind, text: text, raised: raised,
            cleared: row.integer("cleared"), acknowledged: row.integer("acknowledged"))
    }
}

extension LogRecord {
    static let columns = ["time", "level", "tag", "message", "device_id", "actor"]

    var values: [Value] {
        [
            .integer(time), .text(level), .text(tag), .text(message), Value(deviceId),
            .text(actor),
        ]
    }

    init?(_ row: Row) {
        guard let time = row.integer("time"), let level = row.text("level"),
            let tag = row.text("tag"), let message = row.text("message"),
            let actor = row.text("actor")
        else { return nil }
        self.init(
            time: time, level: level, tag: tag, message: message,
            deviceId: row.text("device_id"), actor: actor)
    }
}

extension OperatorAccount {
    static let columns = ["name", "password_hash", "created"]

    var values: [Value] { [.text(name), .text(passwordHash), .integer(created)] }

    init?(_ row: Row) {
        guard let name = row.text("name"), let hash = row.text("password_hash"),
            let created = row.integer("created")
        else { return nil }
        self.init(name: name, passwordHash: hash, created: created)
    }
}

// MARK: lists in one column

func joined(_ values: [some CustomStringConvertible]) -> String {
    values.map(\.description).joined(separator: ",")
}

/// nil when one of them cannot be read; blanks around commas are allowed.
func split<Value>(_ text: String?, _ read: (String) -> Value?) -> [Value]? {
    guard let text else { return nil }
    var values: [Value] = []
    for part in text.split(separator: ",") {
        guard let value = read(String(part.filter { $0 != " " })) else { return nil }
        values.append(value)
    }
    return values
}
