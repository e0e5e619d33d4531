// SPDX-License-Identifier: Apache-2.0
// What a device should have, made of the model.
import ControlAPI
import Crypto
import WireGuard

/// A device's configuration and forwards with their hashes: made once for each change.
struct PreparedConfiguration: Equatable, Sendable {
    /// Of the hub when it was made.
    var generation: UInt64
    /// Without a private key. Its hashes are filled in.
    var configuration: WireGuardConfig
    var forwards: [Forward]
    var configHash: String
    var forwardsHash: String
}

extension HubCore {
    /// Where devices find the hub is not set yet.
    var isSetUp: Bool { !model.settings.endpoint.isEmpty && !model.settings.pools.isEmpty }

    mutating func prepared(_ device: Device) -> PreparedConfiguration {
        if let made = live[device.id]?.prepared, made.generation == generation { return made }
        let forwards = model.forwards(of: device.id).filter(\.isEnabled).map(\.wire)
        var configuration = configuration(of: device)
        // Every value comes from a type that the other side reads.
        let configHash = (try? ControlAPI.configHash(configuration)) ?? ""
        let forwardsHash = (try? ControlAPI.forwardsHash(forwards)) ?? ""
        configuration.configHash = configHash
        configuration.forwardsHash = forwardsHash
        let made = PreparedConfiguration(
            generation: generation, configuration: configuration, forwards: forwards,
            configHash: configHash, forwardsHash: forwardsHash)
        live[device.id, default: LiveDevice()].prepared = made
        return made
    }

    private mutating func configuration(of device: Device) -> WireGuardConfig {
        let settings = model.settings
        var result = WireGuardConfig(
            deviceId: device.id, internalIp: joined(device.addresses.map { Prefix(alone: $0) }),
            serverPub: publicKey.base64, endpoint: settings.endpoint,
            allowedIps: joined(routes(of: device)), dns: joined(settings.dns))
        result.serverWgIp = model.hubAddresses.first?.description
        result.mtu = settings.mtu.map { Int($0) }
        result.persistentKeepalive = settings.keepalive.map { Int($0) }
        return result
    }

    /// What `device` sends to the hub: its own list, or the network's, or the pools and the networks
    /// behind the other devices.
    private mutating func routes(of device: Device) -> [Prefix] {
        if let routes = device.routes ?? model.settings.routes { return routes }
        return model.settings.pools
            + allNetworks().lazy.filter { $0.deviceId != device.id }.map(\.prefix)
    }

    /// The text of a `WireGuardConfig`, sealed for `hwid`.
    static func seal(
        _ configuration: WireGuardConfig, hwid: String
    ) -> (salt: String, encrypted: String) {
        var text = Wire.encode(configuration)
        defer { erase(&text) }
        let salt = Envelope.newSalt()
        return (salt, Envelope.seal(text, hwid: hwid, salt: salt))
    }
}

extension ForwardRule {
    var wire: Forward {
        Forward(
            id: id, protocol: transport.rawValue, publicPort: Int(ports.lowerBound),
            publicPortEnd: ports.count > 1 ? Int(ports.upperBound) : nil, targetIp: "\(target)",
            targetPort: Int(targetPort), description: description.isEmpty ? nil : description)
    }
}
