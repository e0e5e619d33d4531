// SPDX-License-Identifier: Apache-2.0
import Backends
import Crypto
import HostNetwork
import HostProcess
import Keeper
import TunnelPlan
import WireGuard

extension LiveHost {
    public mutating func facts(
        for configuration: ConfigurationFile
    ) throws(KeeperFailure) -> HostFacts {
        var facts = HostFacts()
        facts.current = try snapshot()
        facts.ownPublicKey = configuration.interface.privateKey?.publicKey
        let others = otherTunnels()
        for (other, device) in others where device.listenPort != 0 {
            facts.listenPorts[device.listenPort] = other
        }
        facts.tableNumbers = routingTableNumbers(paths.routingTables)
        do throws(NetworkError) {
            try readRouting(&facts, others)
            try readAddresses(&facts)
            try readPaths(&facts, configuration)
        } catch {
            throw KeeperFailure(error)
        }
        return facts
    }

    /// Tunnels of this host but this one, whoever made them. One that does not answer soon counts
    /// for nothing.
    private func otherTunnels() -> [(InterfaceName, DeviceSnapshot)] {
        var found: [(InterfaceName, DeviceSnapshot)] = []
        for kind in BackendKind.allCases {
            let backend = self.backend(kind)
            for other in (try? backend.names()) ?? [] where other != name {
                // Sockets are seen in every network namespace, links in their own only.
                guard (try? netlink.link(named: other)) != nil else { continue }
                if let device = try? backend.snapshot(other) { found.append((other, device)) }
            }
        }
        return found
    }

    // MARK: routing

    private func readRouting(
        _ facts: inout HostFacts, _ others: [(InterfaceName, DeviceSnapshot)]
    ) throws(NetworkError) {
        let state = facts.current
        let ownership = try ruleOwnership(
            mark: state?.device.fwmark,
            tables: Set(state?.host.routes.map(\.table) ?? []).subtracting([Route.mainTable]),
            otherMarks: Set(others.map(\.1.fwmark)))
        let gone = ownership.orphans
        facts.routes = try netlink.hostRoutes(besides: index)
        let allRules = try netlink.allRules().filter { rule in
            rule.protocolNumber != Netlink.ownProtocol
                || !gone.contains { $0.family == rule.family && $0.priority == rule.priority }
        }
        // An orphan's table holds nothing, and the rule goes.
        facts.tablesInUse = try netlink.usedTables()
            .subtracting(
                gone.map(\.table).filter { table in
                    !allRules.contains { $0.table == table }
                        && !ownership.tablesWithRoutes.contains(table)
                })
        let own = ownership.own
        for rule in allRules {
            facts.rulePriorities[rule.family, default: []].insert(rule.priority)
            guard let mark = rule.mark else { continue }
            let isOwn = own.contains { $0.family == rule.family && $0.priority == rule.priority }
            if !isOwn || rule.protocolNumber != Netlink.ownProtocol {
                facts.marksInUse.insert(mark)
            }
        }
        facts.marksInUse.formUnion(others.map(\.1.fwmark).filter { $0 != 0 })
        let leading = Set(allRules.filter { $0.mark == $0.table }.compactMap(\.mark))
        for (other, device) in others where leading.contains(device.fwmark) {
            facts.fullTunnels.insert(other)
        }
    }

    func ruleOwnership(
        mark: UInt32?, tables: Set<UInt32>, otherMarks: Set<UInt32>? = nil
    ) throws(NetworkError) -> RuleOwnership {
        RuleOwnership(
            rules: try netlink.ownRules(), known: mark == nil ? [] : rules, mark: mark,
            tables: tables, tablesWithRoutes: Set(try netlink.hostRoutes().map(\.table)),
            otherMarks: otherMarks ?? Set(otherTunnels().map(\.1.fwmark)))
    }

    // MARK: addresses and paths

    /// Without IPv6's link-local ones: every link has that subnet, and they never meet.
    private func readAddresses(_ facts: inout HostFacts) throws(NetworkError) {
        for link in try netlink.links() where link.name != name.description {
            for entry in try netlink.allAddresses(index: link.index)
            where !entry.address.address.isLinkLocal {
                facts.addresses.append(HostAddress(entry.address, link: link.name))
            }
        }
    }

    /// Outside the tunnel: asked with its mark, and what leads into it tells nothing.
    private func readPaths(
        _ facts: inout HostFacts, _ configuration: ConfigurationFile
    ) throws(NetworkError) {
        let mark = facts.current?.fullTunnelMark ?? configuration.interface.fwmark
        for peer in configuration.peers {
            for endpoint in endpoints(of: peer) {
                facts.pathMTU[endpoint] = try pathMTU(to: endpoint, mark: mark)
            }
        }
        facts.defaultRouteMTU = try defaultRouteMTU(facts.routes)
    }

    /// For a name what it was last found to stand for.
    private func endpoints(of peer: ConfigurationFile.Peer) -> [Endpoint] {
        switch peer.endpoint {
        case .address(let endpoint): [endpoint]
        case .host(let host, let port):
            (resolved[host] ?? []).compactMap {
                Endpoint(address: $0.address, port: port, zone: $0.zone)
            }
        case nil: []
        }
    }

    /// nil: there is no way, or only through the tunnel.
    private func pathMTU(
        to endpoint: Endpoint, mark: UInt32?
    ) throws(NetworkError) -> UInt32? {
        switch endpoint.zone {
        case .index(let zone): return try netlink.link(index: zone)?.mtu
        case .name(let zone):
            guard let zone = InterfaceName(zone) else { return nil }
            return try netlink.link(named: zone)?.mtu
        case nil:
            let path = try netlink.path(to: endpoint.address, mark: mark)
            return path.flatMap { $0.linkIndex == index ? nil : $0.mtu }
        }
    }

    /// Of the one that packets take: the lowest metric, IPv4 before IPv6.
    private func defaultRouteMTU(_ routes: [HostRoute]) throws(NetworkError) -> UInt32? {
        let ways = routes.filter {
            $0.table == Route.mainTable && $0.destination.length == 0 && $0.link != nil
                && $0.link != name.description
        }
        let first = AddressFamily.allCases.lazy.compactMap { family in
            ways.filter { $0.destination.address.family == family }
                .min { $0.metric ?? 0 < $1.metric ?? 0 }
        }.first
        guard let link = first?.link.flatMap({ InterfaceName($0) }) else { return nil }
        return try netlink.link(named: link)?.mtu
    }
}

/// The names of routing tables from files of rt_tables(5): a number, blanks, a name, `#` comments.
func routingTableNumbers(_ paths: [String]) -> [String: UInt32] {
    var numbers: [String: UInt32] = [:]
    for path in paths {
        let more = Host.names(in: "\(path).d").filter { $0.hasSuffix(".conf") }.sorted()
        for file in [path] + more.map({ "\(path).d/\($0)" }) {
            guard let file = try? HostFile.read(file, limit: 1 << 20) else { continue }
            parseRoutingTables(String(decoding: file.bytes, as: UTF8.self), into: &numbers)
        }
    }
    return numbers
}

func parseRoutingTables(_ text: String, into numbers: inout [String: UInt32]) {
    for line in text.split(separator: "\n") {
        let words = line.prefix { $0 != "#" }.split { $0 == " " || $0 == "\t" }
        guard words.count == 2 else { continue }
        let number =
            words[0].hasPrefix("0x")
            ? UInt32(words[0].dropFirst(2), radix: 16) : UInt32(words[0])
        if let number { numbers[String(words[1])] = number }
    }
}
