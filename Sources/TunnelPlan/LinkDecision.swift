// SPDX-License-Identifier: Apache-2.0
import WireGuard

/// Bytes that WireGuard adds to a packet over IPv6: 40 for IPv6, 8 for UDP, 32 for the message. As
/// wg-quick(8) does, the larger outer header is reckoned with for IPv4 too (C49).
private let overhead: UInt32 = 80

extension TunnelDecider {
    /// Addresses and MTU.
    mutating func decideLink() {
        tunnel.host.addresses = Set(configuration.interface.addresses)
        if let mtu = configuration.interface.mtu {
            tunnel.host.mtu = UInt32(mtu)
            if UInt32(mtu) < ipv6MinimumMTU, usesIPv6 { withdrawIPv6(mtu: mtu) }
            return
        }
        let path = pathMTU
        let mtu = max(path, overhead + minimumMTU) - overhead
        guard mtu < ipv6MinimumMTU, usesIPv6 else {
            tunnel.host.mtu = mtu
            return
        }
        tunnel.host.mtu = ipv6MinimumMTU
        report(
            .note, .smallMTU,
            "the path to the peers carries \(path) bytes, and IPv6 needs an MTU of 1280",
            whoLoses: "large packets travel in fragments",
            advice: "set MTU, or remove the IPv6 addresses for \(mtu)")
    }

    /// Of all paths the smallest: any peer may be sent to.
    private var pathMTU: UInt32 {
        let paths = tunnel.peers.compactMap { peer in
            peer.endpoint.flatMap { facts.pathMTU[$0] }
        }
        // 1500: Ethernet, as wg-quick(8) assumes.
        return paths.min() ?? facts.defaultRouteMTU ?? 1500
    }

    /// Bytes: every IPv4 module forwards that much (RFC 791 section 3.2).
    private var minimumMTU: UInt32 { 68 }

    private var usesIPv6: Bool {
        tunnel.host.addresses.contains { $0.address.family == .v6 }
            || configuration.interface.table != .off
                && tunnel.peers.contains { peer in
                    peer.prefixes.contains { $0.address.family == .v6 }
                }
    }

    /// The kernel takes IPv6 from a link with such an MTU (C51), and everything that needs it would
    /// fail half way.
    private mutating func withdrawIPv6(mtu: UInt16) {
        let what = "MTU = \(mtu) is below the 1280 that IPv6 needs"
        let advice = "set MTU to 1280 or more, or remove what is IPv6 from Address and AllowedIPs"
        let isFull = configuration.interface.table ?? .auto == .auto
        if isFull, allowedPrefixes.contains(where: { $0.length == 0 && $0.address.family == .v6 }) {
            return report(
                .error, .smallMTU, what, whoLoses: "IPv6 would leave beside the tunnel",
                advice: advice)
        }
        tunnel.host.addresses = tunnel.host.addresses.filter { $0.address.family == .v4 }
        report(
            .warning, .smallMTU, what, whoLoses: "the tunnel gets no IPv6 addresses and routes",
            advice: advice)
    }

    /// Whether the link can have IPv6 at all.
    var carriesIPv6: Bool { tunnel.host.mtu.map { $0 >= ipv6MinimumMTU } ?? true }
}
