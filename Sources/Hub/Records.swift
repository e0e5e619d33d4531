// SPDX-License-Identifier: Apache-2.0
// What the hub remembers: one value type for each row of its tables.
import WireGuard

/// A time: milliseconds since 1970-01-01T00:00:00Z.
public typealias Milliseconds = Int64

/// What an operator has set for the whole network. It moves with a backup; what belongs to the
/// machine (where to listen, which certificate) is given to `nexusguard hub run` instead.
public struct HubSettings: Equatable, Sendable {
    /// `host:port` that devices send to; empty: not set up yet.
    public var endpoint = ""
    /// UDP port of the hub's own interface.
    public var listenPort: UInt16 = 51820
    /// Where addresses of devices come from. The first usable address of the first pool of each
    /// family is the hub's own.
    public var pools: [Prefix] = []
    public var dns: [IPAddress] = []
    /// What devices send through the tunnel; nil: the pools and the networks behind devices.
    public var routes: [Prefix]?
    /// nil: automatic.
    public var mtu: UInt16?
    /// Seconds; nil: none.
    public var keepalive: UInt16? = 25
    /// 5 to 3600.
    public var heartbeatSeconds = 30
    /// Whether a device may ask the hub to make its private key.
    public var allowsHubKeys = false
    /// Whether a device that enrols gets a preshared key too.
    public var presharedKeys = true
    /// Whether traffic of devices that leaves by another link gets the hub's address.
    public var masquerades = false
    /// `sha256//…` of the certificate that will be next; announced in heartbeats.
    public var nextPin: String?
    /// Ports no forward may take, besides the hub's own.
    public var reservedPorts: [UInt16] = [22]

    public init() {}
}

/// A token that a device enrols with. Its text is known to nobody but its holder.
public struct EnrolToken: Equatable, Sendable {
    /// For people and commands; no secret.
    public var id: String
    /// SHA-256 of the text, lower-case hex.
    public var digest: String
    public var label = ""
    public var created: Milliseconds
    public var expires: Milliseconds?
    /// nil: any number.
    public var maximumUses: Int? = 1
    public var uses = 0
    /// Only for this device, which keeps its id and its address.
    public var deviceId: String?
    public var revoked: Milliseconds?
}

/// A key that is to take the place of a device's present one.
public struct Rotation: Equatable, Sendable {
    public enum Phase: String, Sendable {
        /// The new key is a peer without prefixes.
        case offered
        /// As `offered`, but not on the interface: the device says when it uses it. Until then it makes
        /// no handshake, which would open a way for packets that nobody takes.
        case promised
        /// The new key has the prefixes, the old one is a peer without.
        case moved
    }

    /// While `offered` or `promised` the new key; once `moved` the old one.
    public var otherKey: PublicKey
    public var phase: Phase
    public var since: Milliseconds
    /// Bytes that had come from the new key when it moved, or with its first handshake after that; 0:
    /// it has made none.
    public var receivedAtMove: UInt64 = 0
}

/// What a device is told to do with its next heartbeat.
public enum PendingCommand: Equatable, Sendable {
    case reset
    case rotateKey
    /// With a token made at the time it is handed out.
    case reprovision
}

public struct Device: Equatable, Sendable {
    public var id: String
    public var hwid: String
    public var name: String
    public var platform = ""
    public var agentVersion = ""
    public var publicKey: PublicKey
    public var rotation: Rotation?
    /// One for each family of the pools.
    public var addresses: [IPAddress] = []
    /// What is behind it: routed to it, besides its addresses.
    public var networks: [Prefix] = []
    /// What it routes to the hub, instead of the network's routes.
    public var routes: [Prefix]?
    /// The token it came with last.
    public var tokenId: String
    public var created: Milliseconds
    /// When the token was used for it first.
    public var provisioned: Milliseconds
    /// First authenticated heartbeat after that; nil: none yet.
    public var confirmed: Milliseconds?
    public var revoked: Milliseconds?
    /// A private key made by the hub, sealed; until `confirmed`.
    public var sealedKey: [UInt8]?
    /// What it and the hub mix into their handshakes, sealed; nil: none.
    public var sealedPresharedKey: [UInt8]?
    public var command: PendingCommand?
}

/// A bearer token of a device, as its digest.
public struct Credential: Equatable, Sendable {
    /// SHA-256 of the text, lower-case hex.
    public var digest: String
    public var deviceId: String
    public var created: Milliseconds
    /// nil: none.
    public var expires: Milliseconds?
}

public struct ForwardRule: Equatable, Sendable {
    public enum Transport: String, Sendable, CaseIterable { case tcp, udp }

    public var id: String
    public var deviceId: String
    public var transport: Transport
    public var ports: ClosedRange<UInt16>
    public var target: IPAddress
    /// Of the first of `ports`; the others follow.
    public var targetPort: UInt16
    public var description = ""
    /// Whether the target sees who asked, not the hub's address.
    public var keepsSource = false
    public var isEnabled = true
}

public struct Alarm: Equatable, Sendable {
    public enum Kind: String, Sendable, CaseIterable {
        /// A device has not been heard of for several intervals.
        case silent
        /// Two machines use one identity.
        case duplicateIdentity = "duplicate_identity"
        /// A new device has the hardware id of another one.
        case sameHardware = "same_hardware"
        /// A device could not apply its configuration.
        case rejectedConfiguration = "rejected_configuration"
        /// The control connection works and the tunnel does not.
        case tunnelDown = "tunnel_down"
        /// The keeper does not answer or refuses.
        case keeper
    }

    public var id: Int64
    /// nil: the hub itself.
    public var deviceId: String?
    public var kind: Kind
    public var text: String
    public var raised: Milliseconds
    public var cleared: Milliseconds?
    public var acknowledged: Milliseconds?
}

/// Something an operator may want to look up later.
public struct LogRecord: Equatable, Sendable {
    public var time: Milliseconds
    public var level: String
    public var tag: String
    public var message: String
    public var deviceId: String?
    /// Who did it: an operator's name, `uid 1000`, or empty.
    public var actor = ""
}

public struct OperatorAccount: Equatable, Sendable {
    public var name: String
    /// As libsodium's crypto_pwhash_str writes it.
    public var passwordHash: String
    public var created: Milliseconds
}
