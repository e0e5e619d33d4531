// SPDX-License-Identifier: Apache-2.0
// What can be asked of a WireGuard device, and what it answers. A nil field is left as it is.

public struct DeviceChange: Equatable, Sendable {
    /// A key that `isZero` removes the device's key.
    public var privateKey: SecretKey?
    /// 0: any free port.
    public var listenPort: UInt16?
    /// 0 removes it.
    public var fwmark: UInt32?

    public init(privateKey: SecretKey? = nil, listenPort: UInt16? = nil, fwmark: UInt32? = nil) {
        self.privateKey = privateKey
        self.listenPort = listenPort
        self.fwmark = fwmark
    }
}

public struct PrefixChange: Hashable, Sendable {
    public var prefix: Prefix
    /// Take it from this peer; nothing happens when another peer holds it.
    public var remove: Bool

    public init(_ prefix: Prefix, remove: Bool = false) {
        self.prefix = prefix
        self.remove = remove
    }
}

/// Creates, updates or removes one peer.
public struct PeerChange: Equatable, Sendable {
    public var publicKey: PublicKey
    public var remove = false
    /// A peer that does not exist is not created.
    public var updateOnly = false
    /// Prefixes not listed are dropped, those listed stay.
    public var replaceAllowedIPs = false
    /// A key that `isZero` removes the peer's key.
    public var presharedKey: PresharedKey?
    public var endpoint: Endpoint?
    /// Seconds; 0: off.
    public var keepalive: UInt16?
    /// In the order in which they apply.
    public var prefixes: [PrefixChange] = []

    public init(publicKey: PublicKey) { self.publicKey = publicKey }
}

public struct DeviceSnapshot: Equatable, Sendable {
    public var privateKey: SecretKey?
    public var publicKey: PublicKey?
    public var listenPort: UInt16 = 0
    public var fwmark: UInt32 = 0
    public var mtu: UInt32 = 0
    public var isUp = false
    /// In order of creation.
    public var peers: [PeerSnapshot] = []

    public init() {}
}

public struct PeerSnapshot: Equatable, Sendable {
    public var publicKey: PublicKey
    public var presharedKey: PresharedKey?
    public var endpoint: Endpoint?
    /// Wall clock; 0 seconds: never (C79).
    public var lastHandshakeSeconds: Int64 = 0
    public var lastHandshakeNanoseconds: UInt32 = 0
    public var receivedBytes: UInt64 = 0
    public var sentBytes: UInt64 = 0
    /// Seconds; 0: off.
    public var keepalive: UInt16 = 0
    public var prefixes: [Prefix] = []

    public init(publicKey: PublicKey) { self.publicKey = publicKey }
}
