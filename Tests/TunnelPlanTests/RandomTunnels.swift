// SPDX-License-Identifier: Apache-2.0
// Tunnels from a small world, so that two of them have much in common: the same peers with other
// prefixes, the same prefixes with other peers.
import TestSupport
import Testing
import WireGuard

@testable import TunnelPlan

private let allowed = [
    "10.0.0.2/32", "10.0.0.3/32", "10.0.0.0/24", "10.1.0.0/16", "192.168.7.0/24", "172.16.0.0/12",
    "fd00::2/128", "fd00::/64", "fd01::/48", "0.0.0.0/0", "::/0", "10.9.0.1/32",
].map { prefix($0) }

private let addresses = [
    "10.0.0.1/24", "10.0.0.1/32", "10.0.0.1/16", "10.0.0.9/24", "10.1.0.1/16", "fd00::1/64",
    "fd00::1/128", "fd01::1/48",
].map { address($0) }

private let endpoints = ["192.0.2.1:51820", "192.0.2.1:4500", "[2001:db8::1]:51820"].map {
    endpoint($0)
}

private let forwards = ["10.0.0.2", "10.1.0.5", "fd00::2"].enumerated().map { index, target in
    PortForward(
        .tcp, publicPort: UInt16(8000 + index), target: IPAddress(target)!, targetPort: 80,
        keepsSource: true)!
}

extension SeededRandom {
    mutating func pick<Value>(_ values: [Value]) -> Value { values[below(values.count)] }

    /// Each with a chance of one in `count`.
    mutating func some<Value>(_ values: [Value], oneIn count: Int) -> [Value] {
        values.filter { _ in oneIn(count) }
    }

    // MARK: files

    mutating func file(peers limit: Int = 6) -> ConfigurationFile {
        var file = ConfigurationFile()
        file.interface.privateKey = secret(UInt8(1 + below(2)))
        if oneIn(2) { file.interface.listenPort = UInt16(below(3)) }
        if oneIn(3) { file.interface.fwmark = pick([0, 777, 778, 51820, 52820]) }
        if oneIn(4) { file.interface.mtu = pick([1000, 1280, 1380, 1420]) }
        if oneIn(5) { file.interface.table = pick([.off, .number(42), .auto]) }
        if oneIn(4) {
            file.interface.dnsServers = [DNSServer(address: addresses[below(8)].address)!]
        }
        file.interface.addresses = consistent(some(addresses, oneIn: 3))
        for number in 0..<limit where oneIn(2) { file.peers.append(peer(number)) }
        file.peers.shuffle(using: &self)
        return file
    }

    private mutating func peer(_ number: Int) -> ConfigurationFile.Peer {
        var peer = ConfigurationFile.Peer(publicKey: key(number))
        if oneIn(3) { peer.presharedKey = preshared(UInt8(below(3))) }
        if oneIn(2) { peer.endpoint = .address(pick(endpoints)) }
        if oneIn(3) { peer.keepalive = UInt16(below(3)) }
        peer.allowedIPs = some(allowed, oneIn: oneIn(2) ? 3 : 6)
        return peer
    }

    /// One link has an IPv6 address once.
    private func consistent(_ addresses: [InterfaceAddress]) -> [InterfaceAddress] {
        addresses.enumerated().filter { index, own in
            own.address.family == .v4
                || !addresses[..<index].contains { $0.address == own.address }
        }.map(\.element)
    }

    // MARK: tunnels

    private mutating func gateway() -> Gateway {
        var gateway = Gateway()
        gateway.forwards = some(forwards, oneIn: 3)
        gateway.masquerades = oneIn(2)
        gateway.forwardsBetweenPeers = oneIn(2)
        gateway.answersThroughTunnel = oneIn(2)
        return gateway
    }

    /// What a file asks for. The peers' endpoints are outside of all that is routed.
    mutating func tunnel(after current: TunnelState?) -> DesiredTunnel {
        var facts = HostFacts()
        facts.current = current
        facts.tablesInUse = oneIn(2) ? [51820] : []
        var options = TunnelOptions()
        options.backend = oneIn(6) ? .userspace : oneIn(2) ? .kernel : nil
        options.clampsSegmentSize = !oneIn(4)
        if oneIn(3) { options.gateway = gateway() }
        while true {
            let decision = decide(file(), facts, options)
            if let tunnel = decision.tunnel { return tunnel }
        }
    }

    /// Any that is consistent, whether a file can ask for it or not.
    mutating func anyTunnel() -> DesiredTunnel {
        var tunnel = DesiredTunnel()
        tunnel.backend = oneIn(2) ? nil : pick(BackendKind.allCases)
        if oneIn(2) { tunnel.device.privateKey = secret(UInt8(below(3))) }
        if oneIn(2) { tunnel.device.listenPort = UInt16(below(3)) }
        if oneIn(2) { tunnel.device.fwmark = UInt32(below(3)) }
        tunnel.peers = file(peers: 8).peers.map { peer in
            var desired = DesiredPeer(publicKey: peer.publicKey)
            desired.presharedKey = peer.presharedKey
            desired.keepalive = peer.keepalive ?? 0
            desired.prefixes = Set(peer.allowedIPs)
            if case .address(let endpoint) = peer.endpoint { desired.endpoint = endpoint }
            return desired
        }
        tunnel.host = anyHost()
        return tunnel
    }

    private mutating func anyHost() -> HostState {
        var host = HostState()
        host.isUp = !oneIn(5)
        host.mtu = oneIn(3) ? nil : pick([1280, 1400, 1420])
        host.addresses = Set(consistent(some(addresses, oneIn: 3)))
        let connected = Set(host.addresses.compactMap(\.connectedRoute))
        host.routes = Set(
            some(allowed, oneIn: 3).filter { !connected.contains($0) }
                .map { Route($0, metric: oneIn(4) ? 5 : nil) }
                + some(allowed, oneIn: 4).map { Route($0, table: 42) })
        for _ in 0..<below(4) {
            var rule = Rule(
                family: pick(AddressFamily.allCases), priority: UInt32(100 + below(4)), table: 42)
            rule.mark = oneIn(2) ? UInt32(below(3)) : nil
            host.rules.insert(rule)
        }
        if oneIn(2) {
            host.dns = DNSSettings()
            host.dns?.servers = [DNSServer(address: pick(addresses).address)!]
        }
        if oneIn(2) {
            host.firewall = FirewallSettings()
            host.firewall?.clampsSegmentSize = oneIn(2)
            host.firewall?.fullTunnelMark = oneIn(2) ? UInt32(below(3)) : nil
            host.firewall?.forwards = some(forwards, oneIn: 2)
            host.firewall?.masquerades = oneIn(2)
        }
        if oneIn(2) { host.settings[.sourceValidMark] = UInt32(below(2)) }
        return host
    }

    // MARK: life

    /// What time does to a device: sessions, traffic, peers that roam.
    mutating func live(_ state: TunnelState) -> TunnelState {
        var state = state
        for index in state.device.peers.indices where oneIn(2) {
            state.device.peers[index].lastHandshakeSeconds = now - Int64(below(400))
            state.device.peers[index].receivedBytes = next()
            state.device.peers[index].sentBytes = next()
            if oneIn(2) { state.device.peers[index].endpoint = endpoint("203.0.113.9:1024") }
        }
        if state.device.listenPort == 0 { state.device.listenPort = 40000 }
        return state
    }
}

/// Wall clock of the random world, seconds.
let now: Int64 = 1_700_000_000
