// SPDX-License-Identifier: Apache-2.0
import WireGuard

/// Seconds; until the new key has carried data.
private let rotationKeepalive: UInt16 = 25

extension HubCore {
    /// The hub's own interface and all peers. Holds the private key.
    func desiredConfiguration() -> ConfigurationFile {
        var file = ConfigurationFile()
        file.interface.privateKey = keys.tunnel
        file.interface.listenPort = model.settings.listenPort
        file.interface.mtu = model.settings.mtu
        for address in model.hubAddresses {
            let pool = model.settings.pools.first { $0.contains(address) }
            // With the pool's length: it is on the link, and no route for each device is needed.
            if let interface = InterfaceAddress(
                address: address, length: pool?.length ?? address.bitWidth)
            {
                file.interface.addresses.append(interface)
            }
        }
        let devices = model.devices.values.filter { $0.revoked == nil }
        file.peers = devices.sorted { $0.id < $1.id }.flatMap { peers(of: $0) }
        return file
    }

    private func peers(of device: Device) -> [ConfigurationFile.Peer] {
        var peer = ConfigurationFile.Peer(publicKey: device.publicKey)
        peer.allowedIPs = device.prefixes
        peer.friendlyName = ConfigurationText(device.name)
        peer.presharedKey = presharedKey(of: device)
        guard let rotation = device.rotation, rotation.phase != .promised else { return [peer] }
        // One prefix belongs to one peer: the other key has none.
        var other = ConfigurationFile.Peer(publicKey: rotation.otherKey)
        other.presharedKey = peer.presharedKey
        if rotation.phase == .moved, let endpoint = live[device.id]?.movedEndpoint {
            peer.endpoint = .address(endpoint)
            // It makes an implementation send one packet at once, and so a handshake.
            peer.keepalive = rotationKeepalive
        }
        return [peer, other]
    }
}
