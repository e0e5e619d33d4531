// SPDX-License-Identifier: Apache-2.0
import CNetlink
import TunnelPlan

/// Something that changed on the host. What it is now must be asked for.
public struct NetlinkEvent: Equatable, Sendable {
    public enum Kind: Sendable {
        case link, linkGone
        case address, addressGone
        case route, routeGone
        case rule, ruleGone
        /// Whether the host forwards packets was set, for its `family`.
        case forwarding
        /// Events were lost (ENOBUFS of netlink(7)): look at everything anew.
        case overflow
    }

    public var kind: Kind
    /// nil for links and an overflow.
    public var family: AddressFamily?
    /// 0: none.
    public var linkIndex: UInt32
    /// Of routes and rules; 0: none.
    public var table: UInt32
    /// Of routes, rules and addresses; `Netlink.ownProtocol` for ours. 0: not told.
    public var protocolNumber: UInt8
    /// `Netlink.port` of who caused it, so that one's own echo can be ignored; 0: not told.
    public var port: UInt32
}

/// Owner of a socket that tells what changes in the links, addresses, routes and rules of the
/// network namespace in which it was made.
@safe public struct NetlinkMonitor: ~Copyable {
    private let handle: OpaquePointer

    public init() throws(NetworkError) {
        var made: OpaquePointer?
        let result = unsafe netlink_monitor_open(&made)
        guard result == 0, let made = unsafe made else {
            throw NetworkError(cannot: "watch the network", result: result)
        }
        unsafe handle = made
    }

    deinit { unsafe netlink_monitor_close(handle) }

    /// Readable when `next` has something to tell. Not to be closed.
    public var descriptor: Int32 { unsafe netlink_monitor_descriptor(handle) }

    /// nil: nothing more for now; then the descriptor may be waited on. Never waits itself. The only
    /// failure recvmsg(2) has for a netlink socket is ENOBUFS, which is `.overflow`.
    public func next() -> NetlinkEvent? {
        var event = netlink_event()
        guard unsafe netlink_monitor_next(handle, &event) == 0,
            let kind = NetlinkEvent.Kind(event.kind)
        else { return nil }
        return NetlinkEvent(
            kind: kind, family: AddressFamily(number: event.family), linkIndex: event.index,
            table: event.table, protocolNumber: event.protocol, port: event.port)
    }
}

extension NetlinkEvent.Kind {
    fileprivate init?(_ kind: netlink_event_kind) {
        switch kind {
        case NETLINK_EVENT_LINK: self = .link
        case NETLINK_EVENT_LINK_GONE: self = .linkGone
        case NETLINK_EVENT_ADDRESS: self = .address
        case NETLINK_EVENT_ADDRESS_GONE: self = .addressGone
        case NETLINK_EVENT_ROUTE: self = .route
        case NETLINK_EVENT_ROUTE_GONE: self = .routeGone
        case NETLINK_EVENT_RULE: self = .rule
        case NETLINK_EVENT_RULE_GONE: self = .ruleGone
        case NETLINK_EVENT_FORWARDING: self = .forwarding
        case NETLINK_EVENT_OVERFLOW: self = .overflow
        default: return nil
        }
    }
}
