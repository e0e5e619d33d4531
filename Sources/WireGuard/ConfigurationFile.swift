// SPDX-License-Identifier: Apache-2.0
// The configuration file of wg(8) and wg-quick(8) as values. A nil field is absent from the file,
// which is not the same as 0 (C58). Whatever the types can hold, a file can: text that would end
// its line and begin another setting does not fit into them.

public struct ConfigurationFile: Equatable, Sendable {
    public var interface = Interface()
    /// In the order of the file.
    public var peers: [Peer] = []

    public init() {}

    public struct Interface: Equatable, Sendable {
        public var privateKey: SecretKey?
        /// 0: any free port.
        public var listenPort: UInt16?
        /// 0: none.
        public var fwmark: UInt32?
        public var addresses: [InterfaceAddress] = []
        public var dnsServers: [DNSServer] = []
        public var searchDomains: [SearchDomain] = []
        public var mtu: UInt16?
        public var table: RoutingTable?
        /// In the order of the file. Nothing here runs them: they are a stranger's commands until
        /// the operator has seen them (C26).
        public var hooks: [Hook] = []
        public var saveConfig: Bool?
        /// Settings that mean nothing to us, kept for whoever wrote them (C61).
        public var unknown: [UnknownSetting] = []

        public init() {}
    }

    public struct Peer: Equatable, Sendable {
        public var publicKey: PublicKey
        public var presharedKey: PresharedKey?
        public var allowedIPs: [Prefix] = []
        public var endpoint: PeerEndpoint?
        /// Seconds; 0: off.
        public var keepalive: UInt16?
        /// `# friendly_name = …` in the peer's section, the convention of the Prometheus exporters.
        public var friendlyName: ConfigurationText?
        /// `# friendly_json = …`, kept as it is.
        public var friendlyJSON: ConfigurationText?
        public var unknown: [UnknownSetting] = []

        public init(publicKey: PublicKey) { self.publicKey = publicKey }
    }

    /// A command for a shell, run as root around `up` and `down`.
    public struct Hook: Equatable, Sendable {
        public enum Event: Sendable, CaseIterable { case preUp, postUp, preDown, postDown }

        public var event: Event
        /// As it is in the file, blanks and `#` included (C25).
        public var command: ConfigurationText

        public init(_ event: Event, _ command: ConfigurationText) {
            self.event = event
            self.command = command
        }
    }
}

extension ConfigurationFile {
    /// The interface's part of what the device is asked. What the file does not mention is left as
    /// it is, the private key too: no file can take the key from a working device by lacking it
    /// (C23, C58).
    public var deviceChange: DeviceChange {
        DeviceChange(
            privateKey: interface.privateKey, listenPort: interface.listenPort,
            fwmark: interface.fwmark)
    }

    /// One change for each peer, in the order of the file; the prefixes replace those it has.
    /// `resolve` is asked for host names only, literals need no resolver (C31). With nil for an
    /// answer the peer is set without an endpoint: a name that does not resolve yet must not keep
    /// the rest from working (C30).
    public func peerChanges(
        resolving resolve: (_ host: HostName, _ port: UInt16) -> Endpoint?
    ) -> [PeerChange] {
        peers.map { peer in
            var change = PeerChange(publicKey: peer.publicKey)
            change.replaceAllowedIPs = true
            change.presharedKey = peer.presharedKey
            change.keepalive = peer.keepalive
            change.prefixes = peer.allowedIPs.map { PrefixChange($0) }
            switch peer.endpoint {
            case .address(let endpoint): change.endpoint = endpoint
            case .host(let name, let port): change.endpoint = resolve(name, port)
            case nil: break
            }
            return change
        }
    }
}
