// SPDX-License-Identifier: Apache-2.0
import TunnelPlan
import WireGuard

/// Tunnels that are wanted, about few enough keys, prefixes and addresses that they meet.
struct RandomTunnels: RandomNumberGenerator {
    private var state: UInt64
    private let backend: BackendKind

    init(seed: UInt64, backend: BackendKind) {
        state = seed
        self.backend = backend
    }

    /// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
        return z ^ z >> 31
    }

    private mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
    private mutating func oneIn(_ count: Int) -> Bool { below(count) == 0 }

    mutating func tunnel() -> DesiredTunnel { make(isFull: oneIn(3)) }

    mutating func fullTunnel() -> DesiredTunnel { make(isFull: true) }

    private mutating func make(isFull: Bool) -> DesiredTunnel {
        var tunnel = DesiredTunnel()
        tunnel.backend = backend
        tunnel.device = DeviceChange(
            privateKey: secretKey(UInt8(1 + below(3))),
            listenPort: UInt16(40_000 + below(3)), fwmark: isFull ? 51820 : UInt32(below(2)) * 77)
        // One prefix, one peer: the others would lose it.
        var free = Self.prefixes.shuffled(using: &self)
        for number in 0..<6 where oneIn(2) {
            var peer = DesiredPeer(
                publicKey: PublicKey(bytes: InlineArray(repeating: UInt8(0x40 + number))))
            // A device cannot forget an endpoint or get one twice: it belongs to the key.
            if number % 2 == 0 { peer.endpoint = Endpoint("192.0.2.\(number):51820") }
            if oneIn(3) {
                let key = [UInt8](repeating: UInt8(1 + below(2)), count: 32)
                peer.presharedKey = PresharedKey(copying: key.span)
            }
            peer.keepalive = UInt16(below(2)) * 3600
            for _ in 0..<below(4) {
                if let prefix = free.popLast() { peer.prefixes.insert(prefix) }
            }
            tunnel.peers.append(peer)
        }
        decideHost(&tunnel, isFull)
        return tunnel
    }

    private mutating func decideHost(_ tunnel: inout DesiredTunnel, _ isFull: Bool) {
        tunnel.host.isUp = true
        tunnel.host.mtu = UInt32(1300 + below(3) * 60)
        tunnel.host.addresses = Set(Self.addresses.filter { _ in oneIn(2) })
        for peer in tunnel.peers {
            for prefix in peer.prefixes where prefix.length > 0 {
                tunnel.host.routes.insert(Route(prefix))
            }
        }
        var firewall = FirewallSettings()
        firewall.clampsSegmentSize = oneIn(2)
        if isFull { route(everythingOf: &tunnel, &firewall) }
        if firewall != FirewallSettings() { tunnel.host.firewall = firewall }
    }

    private func route(everythingOf tunnel: inout DesiredTunnel, _ firewall: inout FirewallSettings)
    {
        for (family, text) in [(AddressFamily.v4, "0.0.0.0/0"), (.v6, "::/0")] {
            tunnel.host.routes.insert(Route(Prefix(text)!, table: 51820))
            var local = Rule(family: family, priority: 32764, table: Route.mainTable)
            local.suppressPrefixLength = 0
            var rest = Rule(family: family, priority: 32765, table: 51820)
            rest.mark = 51820
            rest.isInverted = true
            tunnel.host.rules.formUnion([local, rest])
        }
        firewall.fullTunnelMark = 51820
        firewall.protectedAddresses = tunnel.host.addresses.sorted { "\($0)" < "\($1)" }
        tunnel.host.settings[.sourceValidMark] = 1
    }

    private static let prefixes: [Prefix] = [
        "10.1.0.0/16", "10.1.2.0/24", "10.1.2.3/32", "10.2.0.0/16", "172.16.0.0/12",
        "fd01::/32", "fd01:0:1::/48", "fd01:0:1::5/128", "fd02::/16", "198.51.100.0/24",
    ].map { Prefix($0)! }

    /// Two share a subnet.
    private static let addresses: [InterfaceAddress] = [
        "10.77.0.1/24", "10.77.0.2/24", "10.78.0.1/32", "fd77::1/64", "fd78::1/128",
    ].map { text in
        let text = [UInt8](text.utf8)
        return InterfaceAddress(text.span)!
    }
}

/// Clamped (RFC 7748 section 5), as devices keep them.
func secretKey(_ number: UInt8) -> SecretKey {
    var bytes = [UInt8](repeating: number, count: 32)
    bytes[0] = bytes[0] & 248
    bytes[31] = bytes[31] & 127 | 64
    return SecretKey(copying: bytes.span)
}

/// What a tunnel is, without the order of things and what only time brings.
struct Meaning: Equatable, CustomStringConvertible {
    struct Peer: Equatable {
        let presharedKey: PresharedKey?
        let endpoint: Endpoint?
        let keepalive: UInt16
        let prefixes: Set<Prefix>
    }

    let backend: BackendKind
    let privateKey: SecretKey?
    let listenPort: UInt16
    let fwmark: UInt32
    let peers: [PublicKey: Peer]
    var host: HostState

    init(_ state: TunnelState) {
        backend = state.backend
        privateKey = state.device.privateKey
        listenPort = state.device.listenPort
        fwmark = state.device.fwmark
        peers = Dictionary(
            uniqueKeysWithValues: state.device.peers.map { peer in
                (
                    peer.publicKey,
                    Peer(
                        presharedKey: peer.presharedKey, endpoint: peer.endpoint,
                        keepalive: peer.keepalive, prefixes: Set(peer.prefixes))
                )
            })
        host = state.host
        if var firewall = host.firewall {
            firewall.protectedAddresses.sort { "\($0)" < "\($1)" }
            host.firewall = firewall
        }
    }

    var description: String { "\(backend) \(listenPort) \(fwmark) \(peers) \(host)" }
}
