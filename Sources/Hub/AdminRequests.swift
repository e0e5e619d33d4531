// SPDX-License-Identifier: Apache-2.0
// What operators send, as JSON. Unknown fields are ignored.
import ControlAPI
import WireGuard

public struct LoginRequest: Codable, Sendable {
    public var name: String
    public var password: SecretText

    public init(name: String, password: SecretText) {
        self.name = name
        self.password = password
    }
}

public struct LoginAnswer: Codable, Sendable {
    /// For `Authorization: Bearer …`.
    public var session: SecretText
    public var expires: Timestamp
}

public struct TokenRequest: Codable, Equatable, Sendable {
    public var label: String?
    /// 1 to 1000000; nil: 1; 0: any number.
    public var maximumUses: Int?
    /// 60 to 31536000 from now; nil: for ever.
    public var lifeSeconds: Int?
    /// Only for this device.
    public var deviceId: String?

    public init() {}
}

public struct DevicePatchRequest: Equatable, Sendable {
    public var name: String?
    /// Behind the device; nil leaves them.
    public var networks: [String]?
    /// What it routes to the hub: nil leaves it, `.some(nil)` (JSON null) is the network's again.
    public var allowedIps: [String]??

    public init() {}
}

extension DevicePatchRequest: Codable {
    enum CodingKeys: String, CodingKey { case name, networks, allowedIps }

    public init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        name = try fields.decodeIfPresent(String.self, forKey: .name)
        networks = try fields.decodeIfPresent([String].self, forKey: .networks)
        if fields.contains(.allowedIps) {
            allowedIps = .some(try fields.decodeIfPresent([String].self, forKey: .allowedIps))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encodeIfPresent(name, forKey: .name)
        try fields.encodeIfPresent(networks, forKey: .networks)
        if let allowedIps { try fields.encode(allowedIps, forKey: .allowedIps) }
    }
}

public struct ForwardRequest: Codable, Equatable, Sendable {
    /// nil: one is made.
    public var id: String?
    public var deviceId: String
    public var `protocol`: String
    public var publicPort: Int
    public var publicPortEnd: Int?
    /// nil: the device's first address.
    public var targetIp: String?
    /// nil: as `publicPort`.
    public var targetPort: Int?
    public var description: String?
    /// nil: false.
    public var keepsSource: Bool?
    /// nil: true.
    public var isEnabled: Bool?

    public init(deviceId: String, protocol: String, publicPort: Int) {
        self.deviceId = deviceId
        self.protocol = `protocol`
        self.publicPort = publicPort
    }
}

public struct OperatorRequest: Codable, Sendable {
    public var name: String
    /// At least 12 characters.
    public var password: SecretText

    public init(name: String, password: SecretText) {
        self.name = name
        self.password = password
    }
}

public struct BackupRequest: Codable, Sendable {
    /// At least 12 characters.
    public var passphrase: SecretText

    public init(passphrase: SecretText) { self.passphrase = passphrase }
}

// MARK: as values

extension TokenRequest {
    func wish() throws(Refusal) -> HubCore.TokenWish {
        var wish = HubCore.TokenWish()
        wish.label = label ?? ""
        let uses = maximumUses ?? 1
        guard 0...1_000_000 ~= uses else {
            throw Refusal(.badRequest, "maximumUses is not from 0 to 1000000")
        }
        wish.maximumUses = uses == 0 ? nil : uses
        if let seconds = lifeSeconds {
            guard 60...31_536_000 ~= seconds else {
                throw Refusal(.badRequest, "lifeSeconds is not from 60 to 31536000")
            }
            wish.life = Int64(seconds) * 1000
        }
        wish.deviceId = deviceId
        return wish
    }
}

extension DevicePatchRequest {
    func patch() throws(Refusal) -> HubCore.DevicePatch {
        var patch = HubCore.DevicePatch()
        patch.name = name
        patch.networks = try networks.map { (list) throws(Refusal) in try prefixes(list, "networks")
        }
        switch allowedIps {
        case nil: break
        case .some(nil): patch.routes = .some(nil)
        case .some(.some(let list)): patch.routes = .some(try prefixes(list, "allowedIps"))
        }
        return patch
    }
}

private func prefixes(_ list: [String], _ field: String) throws(Refusal) -> [Prefix] {
    guard list.count <= 256 else {
        throw Refusal(.badRequest, "\(field) has more than 256 entries")
    }
    var found: [Prefix] = []
    for text in list {
        guard let prefix = Prefix(text) else {
            throw Refusal(.badRequest, "\(field): \(visible(text, limit: 64)) is no prefix")
        }
        found.append(prefix)
    }
    return found
}

extension ForwardRequest {
    func wire(id: String, device: Device) -> Forward {
        Forward(
            id: id, protocol: `protocol`, publicPort: publicPort, publicPortEnd: publicPortEnd,
            targetIp: targetIp ?? device.addresses.first?.description ?? "",
            targetPort: targetPort ?? publicPort, description: description)
    }
}
