// SPDX-License-Identifier: Apache-2.0
// What a tunnel adds to its host besides the WireGuard device, as values. Everything here belongs
// to one tunnel and carries its tag in the kernel; what others added is never in these values.
import WireGuard

public enum AddressFamily: Hashable, Sendable, CaseIterable { case v4, v6 }

extension IPAddress {
    public var family: AddressFamily {
        switch self {
        case .v4: .v4
        case .v6: .v6
        }
    }
}

/// A route through the tunnel's link: scope link, no gateway, our protocol number.
public struct Route: Hashable, Sendable {
    /// RT_TABLE_MAIN of linux/rtnetlink.h.
    public static let mainTable: UInt32 = 254

    public var destination: Prefix
    public var table: UInt32
    /// nil: the kernel's default for the family.
    public var metric: UInt32?

    public init(_ destination: Prefix, table: UInt32 = mainTable, metric: UInt32? = nil) {
        self.destination = destination
        self.table = table
        self.metric = metric
    }
}

/// A routing policy rule (ip-rule(8)): who matches goes to `table`. Our protocol number marks it.
public struct Rule: Hashable, Sendable {
    public var family: AddressFamily
    /// Lower ones are asked first. No two rules of one tunnel and family share it.
    public var priority: UInt32
    /// Packets whose mark is this one, exactly; nil: all.
    public var mark: UInt32?
    /// Who does not match.
    public var isInverted = false
    public var table: UInt32
    /// Answers with a prefix of at most this length do not count: 0 skips default routes.
    public var suppressPrefixLength: UInt32?

    public init(family: AddressFamily, priority: UInt32, table: UInt32) {
        self.family = family
        self.priority = priority
        self.table = table
    }
}

/// An unreachable route right behind one into the tunnel: while that one is missing, who would have
/// taken it is refused, and takes no wider one nor another's of the same width. Only while one link takes
/// the place of another.
public struct Barrier: Hashable, Sendable {
    public var destination: Prefix
    public var table: UInt32
    /// Higher ones count less. Of the same destination and table no two routes share it.
    public var metric: UInt32

    public init(_ destination: Prefix, table: UInt32, metric: UInt32) {
        self.destination = destination
        self.table = table
        self.metric = metric
    }

    public init(behind route: Route) {
        // IP6_RT_PRIO_USER of linux/ipv6_route.h; IPv4 has 0.
        let usual: UInt32 = route.destination.address.family == .v6 ? 1024 : 0
        self.init(
            route.destination, table: route.table,
            metric: min(route.metric ?? usual, .max - 1) + 1)
    }

    /// Behind the route of the main table that comes with an address.
    public init(behindConnected destination: Prefix) {
        // IP6_RT_PRIO_ADDRCONF of linux/ipv6_route.h; IPv4 has 0.
        let metric: UInt32 = destination.address.family == .v6 ? 256 : 0
        self.init(behind: Route(destination, metric: metric))
    }
}

/// What the host's resolver is told about the tunnel.
public struct DNSSettings: Hashable, Sendable {
    public var servers: [DNSServer] = []
    public var searchDomains: [SearchDomain] = []
    public init() {}
}

/// The tunnel's one nft table, described; HostNetwork writes its text.
public struct FirewallSettings: Hashable, Sendable {
    /// Clamp the TCP segment size of forwarded connections to the path (C50).
    public var clampsSegmentSize = false
    /// Drop what claims to come from our addresses but entered elsewhere, and carry the tunnel's
    /// mark over to replies: what a full tunnel needs besides its rules.
    public var fullTunnelMark: UInt32?
    /// The addresses that `fullTunnelMark` protects.
    public var protectedAddresses: [InterfaceAddress] = []
    public var forwards: [PortForward] = []
    /// The tunnel's own: who is in the tunnel and asks for one of them means this host, whatever is
    /// forwarded (C53).
    public var ownAddresses: [InterfaceAddress] = []
    /// See `Gateway`.
    public var masquerades = false
    /// Marks connections that came through the tunnel, and their answers (C52).
    public var answerMark: UInt32?
    public init() {}
}

/// A kernel setting of ours: read before it is written, put back at the end.
public enum HostSetting: Hashable, Sendable, CaseIterable {
    /// net.ipv4.conf.all.src_valid_mark: reverse path filtering asks with the packet's mark.
    case sourceValidMark
    /// net.ipv4.ip_forward.
    case forwardsIPv4
    /// net.ipv6.conf.all.forwarding. Links that take their addresses from router advertisements
    /// need accept_ra = 2 then (ip-sysctl.rst of the kernel).
    case forwardsIPv6
    /// net.ipv4.conf.all.send_redirects. What goes from peer to peer leaves by the link it came in by,
    /// and the kernel would tell each sender of a better way that there is none. A link sends them
    /// while this or its own is set (ip-sysctl.rst of the kernel), so other links go on as they did.
    case sendsRedirects
}

/// All of it for one tunnel.
public struct HostState: Equatable, Sendable {
    /// Bytes; nil: left alone.
    public var mtu: UInt32?
    public var isUp = false
    public var addresses: Set<InterfaceAddress> = []
    public var routes: Set<Route> = []
    public var rules: Set<Rule> = []
    public var barriers: Set<Barrier> = []
    public var dns: DNSSettings?
    public var firewall: FirewallSettings?
    public var settings: [HostSetting: UInt32] = [:]

    public init() {}
}
