// SPDX-License-Identifier: Apache-2.0
// A device's tunnel as the hub wants it, in the words of JSON. Nothing here is checked yet:
// `validated()` makes the values that may be used.

/// The plaintext of an envelope. The hub's own peer stands in the fields themselves, further ones in
/// `peers`. There is no field for a command, and none will ever be run (C26).
public struct WireGuardConfig: Equatable, Sendable {
    public var deviceId: String
    /// Base64; nil when the device made its key.
    public var privateKey: SecretText?
    /// Base64; nil or empty: none.
    public var presharedKey: SecretText?
    /// Addresses of the interface with prefix lengths, comma separated.
    public var internalIp: String
    /// The hub's public key, base64.
    public var serverPub: String
    /// Where the hub is: `host:port` or `[v6]:port`.
    public var endpoint: String
    /// Servers and search domains, comma separated; may be empty.
    public var dns: String
    /// What goes through the hub, comma separated.
    public var allowedIps: String
    /// The hub's inner address, to see that it lives; nil or empty: not told.
    public var serverWgIp: String?
    /// Bytes, 576 to 65535; nil: automatic.
    public var mtu: Int?
    /// Seconds, 0 to 65535, 0 switches it off; nil: left alone.
    public var persistentKeepalive: Int?
    /// 0 to 65535, 0 for any; nil: left alone.
    public var listenPort: Int?
    /// More peers; nil or empty: none.
    public var peers: [ConfigPeer]?
    /// Whatever the hub calls this configuration; `ControlHash` says what ours does.
    public var configHash: String?
    /// Whatever the hub calls the device's forwards.
    public var forwardsHash: String?

    public init(
        deviceId: String, internalIp: String, serverPub: String, endpoint: String,
        allowedIps: String, dns: String = ""
    ) {
        self.deviceId = deviceId
        self.internalIp = internalIp
        self.serverPub = serverPub
        self.endpoint = endpoint
        self.allowedIps = allowedIps
        self.dns = dns
    }
}

extension WireGuardConfig: Codable {
    // The synthesised encoding is right; only `dns` may be absent.
    enum CodingKeys: String, CodingKey {
        case deviceId, privateKey, presharedKey, internalIp, serverPub, endpoint, dns, allowedIps
        case serverWgIp, mtu, persistentKeepalive, listenPort, peers, configHash, forwardsHash
    }

    public init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        deviceId = try fields.decode(String.self, forKey: .deviceId)
        privateKey = try fields.decodeIfPresent(SecretText.self, forKey: .privateKey)
        presharedKey = try fields.decodeIfPresent(SecretText.self, forKey: .presharedKey)
        internalIp = try fields.decode(String.self, forKey: .internalIp)
        serverPub = try fields.decode(String.self, forKey: .serverPub)
        endpoint = try fields.decode(String.self, forKey: .endpoint)
        dns = try fields.decodeIfPresent(String.self, forKey: .dns) ?? ""
        allowedIps = try fields.decode(String.self, forKey: .allowedIps)
        serverWgIp = try fields.decodeIfPresent(String.self, forKey: .serverWgIp)
        mtu = try fields.decodeIfPresent(Int.self, forKey: .mtu)
        persistentKeepalive = try fields.decodeIfPresent(Int.self, forKey: .persistentKeepalive)
        listenPort = try fields.decodeIfPresent(Int.self, forKey: .listenPort)
        peers = try fields.decodeIfPresent([ConfigPeer].self, forKey: .peers)
        configHash = try fields.decodeIfPresent(String.self, forKey: .configHash)
        forwardsHash = try fields.decodeIfPresent(String.self, forKey: .forwardsHash)
    }
}

/// A peer beside the hub.
public struct ConfigPeer: Codable, Equatable, Sendable {
    /// Base64.
    public var publicKey: String
    /// Base64; nil or empty: none.
    public var presharedKey: SecretText?
    /// `host:port` or `[v6]:port`; nil or empty: it speaks first.
    public var endpoint: String?
    /// Comma separated; may be empty.
    public var allowedIps: String
    /// Seconds, 0 to 65535, 0 switches it off; nil: left alone.
    public var persistentKeepalive: Int?
    /// What people call it: text of one line.
    public var name: String?

    public init(
        publicKey: String, presharedKey: SecretText? = nil, endpoint: String? = nil,
        allowedIps: String, persistentKeepalive: Int? = nil, name: String? = nil
    ) {
        self.publicKey = publicKey
        self.presharedKey = presharedKey
        self.endpoint = endpoint
        self.allowedIps = allowedIps
        self.persistentKeepalive = persistentKeepalive
        self.name = name
    }
}
