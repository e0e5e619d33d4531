// SPDX-License-Identifier: Apache-2.0
// Where a tunnel and the host it comes to want the same thing.
import WireGuard

extension TunnelDecider {
    mutating func checkCollisions() {
        checkAddresses()
        checkSubnets()
        checkHostRoutes()
        checkEndpoints()
    }

    // What the tunnel's own link has from the kernel, or from its last life, is in nobody's way.

    private var addressesOfOthers: [HostAddress] {
        facts.addresses.filter { $0.link != name.description }
    }

    private var routesOfOthers: [HostRoute] {
        facts.routes.filter { $0.link != name.description }
    }

    private mutating func checkAddresses() {
        let holders = Dictionary(
            addressesOfOthers.map { ($0.address.address, $0.link) }, uniquingKeysWith: { $1 })
        for own in tunnel.host.addresses.sorted(by: InterfaceAddress.precedes) {
            guard let link = holders[own.address] else { continue }
            report(
                .warning, .addressTaken, "the address \(own.address) is on \(link) already",
                whoLoses: "answers may leave by either link",
                advice: "choose another Address")
        }
    }

    /// A subnet of the tunnel that overlaps one at another link: one of the two is not reached.
    private mutating func checkSubnets() {
        for own in tunnel.host.addresses.sorted(by: InterfaceAddress.precedes) {
            guard let subnet = own.connectedRoute else { continue }
            let other = addressesOfOthers.first {
                guard let theirs = $0.address.connectedRoute else { return false }
                return theirs.contains(subnet) || subnet.contains(theirs)
            }
            guard let other else { continue }
            let wins = subnet.length > other.address.length ? name.description : other.link
            report(
                .warning, .subnetOverlap,
                "the subnet of \(own) overlaps that of \(other.address) on \(other.link)",
                whoLoses: "what both contain is reached by \(wins) only",
                advice: "choose an Address of another subnet")
        }
    }

    /// Linear in host routes and prefixes: each host route asks for itself and for the lengths that
    /// occur among ours.
    private mutating func checkHostRoutes() {
        let ours = tunnel.host.routes
        let lengths = Set(ours.map(\.destination.length)).sorted()
        for host in routesOfOthers where host.destination.length > 0 {
            for length in lengths where length <= host.destination.length {
                guard let prefix = Prefix(address: host.destination.address, length: length),
                    ours.contains(Route(prefix, table: host.table)), length > 0
                else { continue }
                report(prefix, against: host)
            }
        }
    }

    private mutating func report(_ prefix: Prefix, against host: HostRoute) {
        guard prefix == host.destination else {
            return report(
                .warning, .hostRoute,
                "\(prefix) contains \(host.destination), which the host routes to \(host.link ?? "nowhere")",
                whoLoses: "the peer is not sent to in \(host.destination)",
                advice: "expected for a local network; else remove that route or Address")
        }
        // IPv4 routes without a metric have 0, and one of each may be; IPv6 routes have 1024
        // (IP6_RT_PRIO_USER of net/ip6_route.h).
        let collides = host.metric == (prefix.address.family == .v4 ? 0 : 1024)
        report(
            collides ? .error : .warning, .hostRoute,
            "the host routes \(prefix) to \(host.link ?? "nowhere") already",
            whoLoses: "of two such routes one is used",
            advice: "remove it from AllowedIPs, or set Table")
    }

    /// Packets to an endpoint in a prefix of the very peer would be encrypted again and again.
    private mutating func checkEndpoints() {
        // With a mark of their own the encrypted packets may go another way.
        guard tunnel.device.fwmark ?? 0 == 0 else { return }
        let routed = Set(
            tunnel.host.routes.filter { $0.table == Route.mainTable }.map(\.destination)
                + tunnel.host.addresses.compactMap(\.connectedRoute))
        let hosts = Set(
            routesOfOthers.filter { $0.table == Route.mainTable }.map(\.destination))
        let lengths = Set(routed.map(\.length) + hosts.map(\.length)).sorted(by: >)
        let allowed = allowedPrefixes
        let allowedLengths = Set(allowed.map(\.length)).sorted(by: >)
        for peer in tunnel.peers {
            guard let endpoint = peer.endpoint,
                let prefix = best(endpoint.address, lengths, { routed.contains($0) }),
                best(endpoint.address, lengths, { hosts.contains($0) })?.length ?? 0
                    <= prefix.length
            else { continue }
            let holding = best(endpoint.address, allowedLengths) { allowed.contains($0) }
            let isOwn = holding.map { peer.prefixes.contains($0) } ?? true
            reportLoop(peer.publicKey, endpoint, prefix, isOwn: isOwn)
        }
    }

    /// Through another peer is a tunnel in a tunnel, and a hook may know another way.
    private mutating func reportLoop(
        _ key: PublicKey, _ endpoint: Endpoint, _ prefix: Prefix, isOwn: Bool
    ) {
        report(
            isOwn && configuration.interface.hooks.isEmpty ? .error : .warning,
            .endpointInsideTunnel,
            "\(endpoint), the endpoint of peer \(key), is inside \(prefix), which \(name) routes",
            whoLoses: isOwn
                ? "its packets would enter the tunnel again" : "it is reached through another peer",
            advice: "exclude the endpoint from AllowedIPs, allow 0.0.0.0/0, or set Table = off")
    }

    /// The longest prefix of the address that `exists`.
    private func best(
        _ address: IPAddress, _ lengths: [UInt8], _ exists: (Prefix) -> Bool
    ) -> Prefix? {
        for length in lengths {
            if let prefix = Prefix(address: address, length: length), exists(prefix) {
                return prefix
            }
        }
        return nil
    }
}
