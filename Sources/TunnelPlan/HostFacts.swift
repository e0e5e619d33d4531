// SPDX-License-Identifier: Apache-2.0
// What a tunnel must know of its host before it can be decided; read by the host's owner, injected.
import WireGuard

public struct HostFacts: Equatable, Sendable {
    /// Of the route or the link towards each endpoint, outside the tunnel; bytes.
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
    /// UDP ports on which other tunnels of this host listen.
    public var listenPorts: [UInt16: InterfaceName] = [:]
    /// The tunnel as it is: what it has chosen stays chosen.
    public var current: TunnelState?

    public init() {}
}

/// A route of somebody else.
public struct HostRoute: Hashable, Sendable {
    public var destination: Prefix
    public var table: UInt32
    /// The name of the link it leads to; nil for none (blackhole).
    public var link: String?

    public init(_ destination: Prefix, table: UInt32 = Route.mainTable, link: String?) {
        self.destination = destination
        self.table = table
        self.link = link
    }
}
