// SPDX-License-Identifier: Apache-2.0
// What a tunnel must know of its host before it can be decided; read by the host's owner, injected.
import WireGuard

public struct HostFacts: Equatable, Sendable {
    /// What endpoint names stand for, for a configuration that still has them; one that is missing
    /// did not resolve yet.
    public var resolved: [PeerEndpoint: Endpoint] = [:]
    /// Of the route or the link towards each endpoint, outside the tunnel; bytes. Looked up with
    /// the tunnel's mark, or a full tunnel would be asked about itself.
    public var pathMTU: [Endpoint: UInt32] = [:]
    /// Of the default route's link, for a tunnel without a known endpoint; bytes.
    public var defaultRouteMTU: UInt32?
    /// Routing tables that hold a route, of any family.
    public var tablesInUse: Set<UInt32> = []
    /// Firewall marks of other tunnels and rules.
    public var marksInUse: Set<UInt32> = []
    /// Priorities of all rules of the host, per family.
    public var rulePriorities: [AddressFamily: Set<UInt32>] = [:]
    /// rt_tables(5).
    public var tableNumbers: [String: UInt32] = [:]
    /// Routes that are not this tunnel's.
    public var routes: [HostRoute] = []
    /// Addresses of other links.
    public var addresses: [HostAddress] = []
    /// UDP ports on which other tunnels of this host listen.
    public var listenPorts: [UInt16: InterfaceName] = [:]
    /// Other tunnels that take all packets without their mark.
    public var fullTunnels: Set<InterfaceName> = []
    /// The tunnel as it is: what it has chosen stays chosen.
    public var current: TunnelState?
    /// Belongs to the configuration's private key; nil: unknown. A device ignores itself as a peer.
    public var ownPublicKey: PublicKey?

    public init() {}
}

/// A route of somebody else.
public struct HostRoute: Hashable, Sendable {
    public var destination: Prefix
    public var table: UInt32
    /// The name of the link it leads to; nil for none (blackhole).
    public var link: String?
    /// As the kernel shows it; nil: unknown.
    public var metric: UInt32?

    public init(
        _ destination: Prefix, table: UInt32 = Route.mainTable, link: String?,
        metric: UInt32? = nil
    ) {
        self.destination = destination
        self.table = table
        self.link = link
        self.metric = metric
    }
}

/// An address of another link.
public struct HostAddress: Hashable, Sendable {
    public var address: InterfaceAddress
    public var link: String

    public init(_ address: InterfaceAddress, link: String) {
        self.address = address
        self.link = link
    }
}

/// What is asked for besides the file.
public struct TunnelOptions: Equatable, Sendable {
    /// nil: whoever it is now, or the best there is.
    public var backend: BackendKind?
    /// Clamp the TCP segment size of forwarded connections (C50).
    public var clampsSegmentSize = true
    public var gateway = Gateway()

    public init() {}
}
