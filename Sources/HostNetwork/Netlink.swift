// SPDX-License-Identifier: Apache-2.0
import CNetlink
import Glibc
import TunnelPlan
import WireGuard

/// Owner of a route socket (rtnetlink(7)) of the network namespace in which it was made. What it
/// adds carries `Netlink.ownProtocol`, and it removes nothing else. Adding what is there already as
/// asked, and removing what is gone, succeeds.
@safe public struct Netlink: ~Copyable {
    /// The protocol number that marks our routes, rules and addresses in the kernel.
    public static let ownProtocol = UInt8(NETLINK_OWN_PROTOCOL)

    let handle: OpaquePointer

    /// Needs no right: only changes do.
    public init() throws(NetworkError) {
        var made: OpaquePointer?
        let result = unsafe netlink_open(&made, NETLINK_SUBSYSTEM_ROUTE)
        guard result == 0, let made = unsafe made else {
            throw NetworkError(cannot: "open a route netlink socket", result: result)
        }
        unsafe handle = made
    }

    deinit { unsafe netlink_close(handle) }

    /// What `NetlinkEvent.port` is for a change made here.
    public var port: UInt32 { unsafe netlink_port(handle) }

    /// What the kernel said about the last failure; "" when nothing.
    var explanation: String { unsafe String(cString: netlink_explanation(handle)) }

    /// Throws unless `result` is 0; `what` completes "cannot …".
    func check(
        _ result: Int32, _ what: @autoclosure () -> String, hint: String? = nil
    ) throws(NetworkError) {
        guard result != 0 else { return }
        throw NetworkError(cannot: what(), result: result, explanation: explanation, hint: hint)
    }
}

/// A network interface.
public struct Link: Equatable, Sendable {
    public var index: UInt32
    public var name: String
    /// "wireguard", "tun", "veth"…; nil for hardware and the loopback.
    public var kind: String?
    /// Bytes.
    public var mtu: UInt32
    /// Set up by the administrator, whether or not it carries anything.
    public var isUp: Bool
    /// Free text; ours tells whose the link is. nil: none.
    public var alias: String?
}

/// What `createLink` can make.
public enum LinkKind: String, Sendable {
    case wireguard
    /// Swallows packets; for tests.
    case dummy
    /// One end of a pair, the other end named by the kernel; for tests.
    case veth
}

extension Link {
    init(_ link: netlink_link) {
        var link = link
        let kind = unsafe string(&link.kind)
        let alias = unsafe string(&link.alias)
        self.init(
            index: link.index, name: unsafe string(&link.name), kind: kind.isEmpty ? nil : kind,
            mtu: link.mtu, isUp: link.up, alias: alias.isEmpty ? nil : alias)
    }
}

// MARK: links

extension Netlink {
    public func links() throws(NetworkError) -> [Link] {
        var list = unsafe netlink_links()
        defer { unsafe netlink_links_free(&list) }
        try check(unsafe netlink_link_list(handle, &list), "list the links")
        return unsafe UnsafeBufferPointer(start: list.items, count: list.count).map { Link($0) }
    }

    /// nil: there is none.
    public func link(named name: InterfaceName) throws(NetworkError) -> Link? {
        var link = netlink_link()
        let result = unsafe netlink_link_by_name(handle, name.description, &link)
        if result == -ENODEV { return nil }
        try check(result, "look up link \(name)")
        return Link(link)
    }

    /// nil: there is none.
    public func link(index: UInt32) throws(NetworkError) -> Link? {
        var link = netlink_link()
        let result = unsafe netlink_link_by_index(handle, index, &link)
        if result == -ENODEV { return nil }
        try check(result, "look up link \(index)")
        return Link(link)
    }

    /// Makes a link that is down and returns its index. Throws `.exists` when the name is taken,
    /// whoever has it, and `.unsupported` when the kernel does not know the kind.
    @discardableResult
    public func createLink(
        _ name: InterfaceName, kind: LinkKind
    ) throws(NetworkError) -> UInt32 {
        let result = unsafe netlink_link_create(handle, name.description, kind.rawValue)
        let hint: String? =
            switch -result {
            case EEXIST: "another link has this name: remove it or choose another name"
            case EOPNOTSUPP: "the kernel has no links of this kind: is a module missing?"
            default: nil
            }
        try check(result, "create link \(name) of kind \(kind.rawValue)", hint: hint)
        guard let link = try link(named: name) else {
            throw NetworkError(.notFound, "link \(name) was removed as soon as it was created")
        }
        return link.index
    }

    public func removeLink(index: UInt32) throws(NetworkError) {
        let result = unsafe netlink_link_remove(handle, index)
        if result == -ENODEV { return }
        try check(result, "remove link \(index)")
    }

    /// `mtu` in bytes.
    public func setMTU(index: UInt32, _ mtu: UInt32) throws(NetworkError) {
        try check(
            unsafe netlink_link_set_mtu(handle, index, mtu),
            "set the MTU of link \(index) to \(mtu)")
    }

    /// Throws `.busy` (EADDRINUSE) where the kernel's WireGuard finds its port taken (C86).
    public func setUp(index: UInt32, _ isUp: Bool) throws(NetworkError) {
        try check(
            unsafe netlink_link_set_up(handle, index, isUp),
            "set link \(index) \(isUp ? "up" : "down")")
    }

    public func rename(index: UInt32, to name: InterfaceName) throws(NetworkError) {
        try check(
            unsafe netlink_link_rename(handle, index, name.description),
            "rename link \(index) to \(name)")
    }

    /// At most 255 bytes without a NUL; an empty one takes the alias away.
    public func setAlias(index: UInt32, _ alias: String) throws(NetworkError) {
        try check(
            unsafe netlink_link_set_alias(handle, index, alias), "set the alias of link \(index)")
    }
}
