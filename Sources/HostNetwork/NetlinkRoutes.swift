// SPDX-License-Identifier: Apache-2.0
import CNetlink
import Glibc
import TunnelPlan
import WireGuard

/// Where packets to an address go.
public struct Path: Equatable, Sendable {
    public var linkIndex: UInt32
    /// Bytes; of the route where it has one (path MTU discovery included), else of the link.
    public var mtu: UInt32
    /// nil: the address is on the link.
    public var gateway: IPAddress?
    /// The address packets leave with, if the kernel says so.
    public var source: IPAddress?
    public var table: UInt32
}

extension Netlink {
    /// Those of ours that lead through this link, in any table.
    public func ownRoutes(index: UInt32) throws(NetworkError) -> Set<Route> {
        let found = try routes(protocolNumber: Self.ownProtocol, index: index)
        return Set(found.compactMap { Route($0) })
    }

    /// Throws `.exists` when the table has another route to this destination with this metric.
    public func addRoute(_ route: Route, index: UInt32) throws(NetworkError) {
        var entry = netlink_route(route, index: index)
        let result = unsafe netlink_route_add(handle, &entry)
        if result == -EEXIST, try ownRoutes(index: index).contains(route) { return }
        try check(
            result, "add route \(route.text) through link \(index)",
            hint: result == -EEXIST ? "the table has another route there: remove that one" : nil)
    }

    /// As `addRoute` for each, with few system calls: when it throws, some of them may have been added.
    public func addRoutes(_ routes: [Route], index: UInt32) throws(NetworkError) {
        let entries = routes.map { netlink_route($0, index: index) }
        try add(entries, "\(routes.count) routes through link \(index)")
    }

    private func add(_ entries: [netlink_route], _ what: String) throws(NetworkError) {
        let result = unsafe entries.withUnsafeBufferPointer { list in
            unsafe netlink_routes_add(handle, list.baseAddress, list.count)
        }
        try check(result, "add \(what)")
    }

    public func removeRoute(_ route: Route, index: UInt32) throws(NetworkError) {
        var entry = netlink_route(route, index: index)
        let result = unsafe netlink_route_remove(handle, &entry)
        if result == -ESRCH || result == -ENODEV || result == -ENOENT { return }
        try check(result, "remove route \(route.text) through link \(index)")
    }

    // MARK: barriers

    /// Those with our protocol number, whichever tunnel's.
    public func barriers() throws(NetworkError) -> Set<Barrier> {
        let found = try routes(protocolNumber: Self.ownProtocol, index: 0)
        return Set(found.compactMap { Barrier($0) })
    }

    /// One that is there is left as it is.
    public func addBarrier(_ barrier: Barrier) throws(NetworkError) {
        var entry = netlink_route(barrier)
        let result = unsafe netlink_route_add(handle, &entry)
        if result == -EEXIST, try barriers().contains(barrier) { return }
        try check(result, "add unreachable route \(barrier.text)")
    }

    /// As `addBarrier` for each, with few system calls: when it throws, some of them may have been added.
    public func addBarriers(_ barriers: [Barrier]) throws(NetworkError) {
        try add(barriers.map { netlink_route($0) }, "\(barriers.count) unreachable routes")
    }

    public func removeBarrier(_ barrier: Barrier) throws(NetworkError) {
        var entry = netlink_route(barrier)
        let result = unsafe netlink_route_remove(handle, &entry)
        if result == -ESRCH || result == -ENOENT { return }
        try check(result, "remove unreachable route \(barrier.text)")
    }

    /// All routes that packets may take but ours through link `excluded`; those of the kernel's
    /// table "local" are no way to anywhere and left out, as are barriers.
    public func hostRoutes(besides excluded: UInt32? = nil) throws(NetworkError) -> [HostRoute] {
        var names: [UInt32: String] = [:]
        for link in try links() { names[link.index] = link.name }
        return try routes(protocolNumber: 0, index: 0).compactMap { entry in
            guard Self.routedTypes.contains(entry.type),
                let destination = Prefix(entry.destination),
                entry.protocol != Self.ownProtocol || entry.index != excluded || excluded == nil,
                entry.protocol != Self.ownProtocol || Barrier(entry) == nil
            else { return nil }
            return HostRoute(
                destination, table: entry.table, link: names[entry.index],
                metric: Self.shownMetric(entry, destination))
        }
    }

    /// As the kernel shows it: CNetlink has IPv6's default, IP6_RT_PRIO_USER of linux/ipv6_route.h,
    /// as 0.
    fileprivate static func shownMetric(_ entry: netlink_route, _ destination: Prefix) -> UInt32 {
        entry.metric == 0 && destination.address.family == .v6 ? 1024 : entry.metric
    }

    /// Routing tables with a route in them or a rule that leads to them.
    public func usedTables() throws(NetworkError) -> Set<UInt32> {
        var tables = Set(try routes(protocolNumber: 0, index: 0).map(\.table))
        for rule in try allRules() where rule.table != 0 { tables.insert(rule.table) }
        return tables
    }

    /// nil: nowhere. `mark` is that of the packet, for the host's policy rules.
    public func path(to address: IPAddress, mark: UInt32?) throws(NetworkError) -> Path? {
        var destination = netlink_address(address, length: address.bitWidth)
        var path = netlink_path()
        let result = unsafe netlink_route_lookup(handle, &destination, mark ?? 0, &path)
        // No route, unreachable, prohibit; a kernel without the family.
        if [ENETUNREACH, EHOSTUNREACH, EACCES, EAFNOSUPPORT].contains(-result) { return nil }
        // Blackhole. A request that the kernel does not understand has an explanation.
        if result == -EINVAL, explanation.isEmpty { return nil }
        try check(result, "look up the route to \(address)")
        var mtu = path.mtu
        if mtu == 0 {
            guard let link = try link(index: path.index) else { return nil }
            mtu = link.mtu
        }
        return Path(
            linkIndex: path.index, mtu: mtu, gateway: IPAddress(path.gateway),
            source: IPAddress(path.source), table: path.table)
    }

    /// RTN_UNICAST, RTN_BLACKHOLE, RTN_UNREACHABLE, RTN_PROHIBIT, RTN_THROW of linux/rtnetlink.h.
    private static let routedTypes: Set<UInt8> = [1, 6, 7, 8, 9]

    private func routes(
        protocolNumber: UInt8, index: UInt32
    ) throws(NetworkError) -> [netlink_route] {
        var list = unsafe netlink_routes()
        defer { unsafe netlink_routes_free(&list) }
        let result = unsafe netlink_route_list(handle, protocolNumber, index, &list)
        // The kernel refuses to choose by a link that is gone.
        if result == -ENODEV, index != 0 { return [] }
        try check(result, "list the routes")
        return unsafe Array(UnsafeBufferPointer(start: list.items, count: list.count))
    }
}

extension Route {
    init?(_ entry: netlink_route) {
        guard let destination = Prefix(entry.destination) else { return nil }
        self.init(destination, table: entry.table, metric: entry.metric == 0 ? nil : entry.metric)
    }

    fileprivate var text: String {
        var text = "\(destination) in table \(table)"
        if let metric { text += " with metric \(metric)" }
        return text
    }
}

extension Barrier {
    fileprivate init?(_ entry: netlink_route) {
        guard entry.type == UInt8(NETLINK_ROUTE_UNREACHABLE),
            let destination = Prefix(entry.destination)
        else { return nil }
        self.init(
            destination, table: entry.table,
            metric: Netlink.shownMetric(entry, destination))
    }

    fileprivate var text: String {
        Route(destination, table: table, metric: metric).text
    }
}

extension netlink_route {
    init(_ barrier: Barrier) {
        self.init()
        destination = netlink_address(barrier.destination)
        table = barrier.table
        metric = barrier.metric
        type = UInt8(NETLINK_ROUTE_UNREACHABLE)
    }

    init(_ route: Route, index: UInt32) {
        self.init()
        destination = netlink_address(route.destination)
        table = route.table
        metric = route.metric ?? 0
        self.index = index
    }
}
