// SPDX-License-Identifier: Apache-2.0
import WireGuard

/// A `WireGuardConfig` whose every value has been parsed into its type. Two that mean the same are
/// equal but for what the server calls them: prefixes are masked, lists and peers sorted.
public struct ValidatedConfig: Equatable, Sendable {
    public let deviceId: String
    /// nil: the device made its key.
    public let privateKey: SecretKey?
    /// Sorted by their text; at least one.
    public let addresses: [InterfaceAddress]
    /// In the server's order, which is that of preference.
    public let dnsServers: [DNSServer]
    public let searchDomains: [SearchDomain]
    /// The hub itself. It has an endpoint.
    public let hub: ConfigurationFile.Peer
    /// Inside the tunnel.
    public let hubAddress: IPAddress?
    public let mtu: UInt16?
    public let listenPort: UInt16?
    /// The others, sorted by their base64.
    public let peers: [ConfigurationFile.Peer]
    /// What the server calls this configuration and the forwards.
    public let announcedHash: String?
    public let announcedForwardsHash: String?
}

extension WireGuardConfig {
    /// The typed values. Throws for the first that cannot be used.
    public func validated() throws(ConfigRefusal) -> ValidatedConfig {
        let deviceId = try parseIdentifier(deviceId, "deviceId")
        let privateKey: SecretKey? = try parseSecret(privateKey, "privateKey")
        let (dnsServers, searchDomains) = try parseDNS(dns, "dns")
        let hub = try validatedHub()
        let others = try validatedPeers(beside: hub)
        var hubAddress: IPAddress?
        if let text = serverWgIp, !text.isEmpty {
            hubAddress = IPAddress(text)
            guard hubAddress != nil else {
                throw ConfigRefusal(.addressInvalid, "serverWgIp", "is no address", shown: text)
            }
        }
        return ValidatedConfig(
            deviceId: deviceId, privateKey: privateKey,
            addresses: try parseAddresses(internalIp, "internalIp"), dnsServers: dnsServers,
            searchDomains: searchDomains, hub: hub, hubAddress: hubAddress,
            // RFC 791: every link carries 576 bytes.
            mtu: try parseNumber(mtu, in: 576...65535, "mtu"),
            listenPort: try parseNumber(listenPort, in: 0...65535, "listenPort"), peers: others,
            announcedHash: configHash, announcedForwardsHash: forwardsHash)
    }

    private func validatedHub() throws(ConfigRefusal) -> ConfigurationFile.Peer {
        var hub = ConfigurationFile.Peer(publicKey: try parsePublicKey(serverPub, "serverPub"))
        hub.presharedKey = try parseSecret(presharedKey, "presharedKey")
        hub.allowedIPs = try parsePrefixes(allowedIps, "allowedIps")
        hub.endpoint = try parseEndpoint(endpoint, "endpoint")
        guard hub.endpoint != nil else {
            throw ConfigRefusal(.endpointInvalid, "endpoint", "the hub needs one")
        }
        hub.keepalive = try parseNumber(persistentKeepalive, in: 0...65535, "persistentKeepalive")
        return hub
    }

    /// Sorted by key. A prefix of two peers would belong to the later one, and their order means
    /// nothing here; so it is refused.
    private func validatedPeers(
        beside hub: ConfigurationFile.Peer
    ) throws(ConfigRefusal) -> [ConfigurationFile.Peer] {
        var keys: Set<PublicKey> = [hub.publicKey]
        var claimed = Set(hub.allowedIPs)
        var result: [(key: String, peer: ConfigurationFile.Peer)] = []
        for (index, peer) in (peers ?? []).enumerated() {
            let field = "peers[\(index)]"
            let peer = try peer.validated(field)
            guard keys.insert(peer.publicKey).inserted else {
                throw ConfigRefusal(
                    .duplicatePeer, field + ".publicKey", "another peer has this key")
            }
            for prefix in peer.allowedIPs where !claimed.insert(prefix).inserted {
                throw ConfigRefusal(
                    .duplicatePrefix, field + ".allowedIps",
                    "another peer has \(prefix); a prefix belongs to one peer")
            }
            result.append((peer.publicKey.base64, peer))
        }
        return result.sorted { precedes($0.key, $1.key) }.map(\.peer)
    }
}

extension ConfigPeer {
    fileprivate func validated(_ field: String) throws(ConfigRefusal) -> ConfigurationFile.Peer {
        var peer = ConfigurationFile.Peer(
            publicKey: try parsePublicKey(publicKey, field + ".publicKey"))
        peer.presharedKey = try parseSecret(presharedKey, field + ".presharedKey")
        peer.allowedIPs = try parsePrefixes(allowedIps, field + ".allowedIps")
        peer.endpoint = try parseEndpoint(endpoint, field + ".endpoint")
        peer.keepalive = try parseNumber(
            persistentKeepalive, in: 0...65535, field + ".persistentKeepalive")
        peer.friendlyName = try parseName(name, field + ".name")
        return peer
    }
}
