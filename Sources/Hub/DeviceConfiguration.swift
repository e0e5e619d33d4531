// SPDX-License-Identifier: Apache-2.0
// What a device should have, made of the model.
import ControlAPI
import Crypto
import WireGuard

/// Hashes of what a device should have: made once for each change. What they are of holds a secret
/// and is made when it is sent.
struct WantedHashes: Equatable, Sendable {
    /// Of the hub when they were made.
    var generation: UInt64
    var configuration: String
    var forwards: String
}

extension HubCore {
    /// Where devices find the hub is not set yet.
    var isSetUp: Bool { !model.settings.endpoint.isEmpty && !model.settings.pools.isEmpty }

    mutating func wantedHashes(of device: Device) -> WantedHashes {
        if let made = live[device.id]?.wanted, made.generation == generation { return made }
        // Every value comes from a type that the other side reads.
        let made = WantedHashes(
            generation: generation,
            configuration: (try? configHash(plainConfiguration(of: device))) ?? "",
            forwards: (try? forwardsHash(wantedForwards(of: device))) ?? "")
        live[device.id, default: LiveDevice()].wanted = made
        return made
    }

    /// With its preshared key, without a private one; its hashes are filled in.
    mutating func configuration(of device: Device) -> WireGuardConfig {
        let wanted = wantedHashes(of: device)
        var configuration = plainConfiguration(of: device)
        configuration.configHash = wanted.configuration
        configuration.forwardsHash = wanted.forwards
        return configuration
    }

    func wantedForwards(of device: Device) -> [Forward] {
        model.forwards(of: device.id).filter(\.isEnabled).map(\.wire)
    }

    private mutating func plainConfiguration(of device: Device) -> WireGuardConfig {
        let settings = model.settings
        var result = WireGuardConfig(
            deviceId: device.id, internalIp: joined(device.addresses.map { Prefix(alone: $0) }),
            serverPub: publicKey.base64, endpoint: settings.endpoint,
            allowedIps: joined(routes(of: device)), dns: joined(settings.dns))
        result.presharedKey = presharedKey(of: device).map { SecretText(base64Of: $0) }
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
