// SPDX-License-Identifier: Apache-2.0
// From a configuration file to the last number: what wg-quick(8) does in effect.
import WireGuard

extension DesiredTunnel {
    /// What the file of tunnel `name` asks for on the host that `facts` describe. Peers with an
    /// endpoint name that did not resolve come without endpoint. Hooks are not part of it (C26).
    public static func from(
        configuration: ConfigurationFile, name: InterfaceName, facts: HostFacts,
        options: TunnelOptions = TunnelOptions()
    ) -> TunnelDecision {
        var decider = TunnelDecider(configuration, name, facts)
        return decider.decide(options)
    }
}

struct TunnelDecider {
    let configuration: ConfigurationFile
    let name: InterfaceName
    let facts: HostFacts
    var tunnel = DesiredTunnel()
    var issues: [Issue] = []

    init(_ configuration: ConfigurationFile, _ name: InterfaceName, _ facts: HostFacts) {
        self.configuration = configuration
        self.name = name
        self.facts = facts
    }

    mutating func decide(_ options: TunnelOptions) -> TunnelDecision {
        tunnel.backend = options.backend
        tunnel.host.isUp = true
        decideDevice()
        decidePeers()
        decideLink()
        decideDNS()
        decideFirewall(options)
        decideRoutes()
        decideGateway(options.gateway)
        checkCollisions()
        let isRefused = issues.contains { $0.severity == .error }
        return TunnelDecision(tunnel: isRefused ? nil : tunnel, issues: issues)
    }

    mutating func report(
        _ severity: Issue.Severity, _ kind: Issue.Kind, _ what: String, whoLoses: String? = nil,
        advice: String
    ) {
        issues.append(Issue(severity, kind, what, whoLoses: whoLoses, advice: advice))
    }

    /// The prefixes that packets are sent to: those of all peers, each once.
    var allowedPrefixes: Set<Prefix> {
        tunnel.peers.reduce(into: []) { $0.formUnion($1.prefixes) }
    }

    // MARK: device

    private mutating func decideDevice() {
        tunnel.device = configuration.deviceChange
        // Compared with what the device reports: it would differ for ever.
        tunnel.device.privateKey = tunnel.device.privateKey?.clamped
        checkPrivateKey()
        guard let port = configuration.interface.listenPort, port != 0,
            let holder = facts.listenPorts[port], holder != name
        else { return }
        report(
            .error, .portTaken, "UDP port \(port) is used by the tunnel \(holder)",
            advice: "choose another ListenPort")
    }

    /// A truncated file must not pass for one that leaves the key to a hook (C23).
    private mutating func checkPrivateKey() {
        if let key = configuration.interface.privateKey, !key.isZero { return }
        let isLeftToHook = configuration.interface.hooks.contains {
            $0.event == .preUp || $0.event == .postUp
        }
        guard configuration.interface.privateKey == nil, isLeftToHook else {
            return report(
                .error, .noPrivateKey, "the configuration of \(name) has no private key",
                advice: "add PrivateKey; if the file was cut off, write it again")
        }
        report(
            .note, .noPrivateKey, "the configuration of \(name) has no private key",
            advice: "one of its hooks has to set it")
    }

    // MARK: peers

    private mutating func decidePeers() {
        var positions: [PublicKey: Int] = [:]
        for peer in configuration.peers {
            if peer.publicKey == facts.ownPublicKey {
                report(
                    .warning, .ownKey, "\(peer.label) has the public key of \(name) itself",
                    whoLoses: "it is ignored", advice: "give it the key of the other side")
                continue
            }
            let desired = desiredPeer(peer)
            guard let position = positions[peer.publicKey] else {
                positions[peer.publicKey] = tunnel.peers.count
                tunnel.peers.append(desired)
                continue
            }
            report(
                .warning, .duplicatePeer, "\(peer.label) is configured twice",
                whoLoses: "the first loses all its settings", advice: "merge the two (C13)")
            tunnel.peers[position] = desired
        }
        shareOut()
    }

    private mutating func desiredPeer(_ peer: ConfigurationFile.Peer) -> DesiredPeer {
        var desired = DesiredPeer(publicKey: peer.publicKey)
        desired.presharedKey = peer.presharedKey
        desired.keepalive = peer.keepalive ?? 0
        desired.prefixes = Set(peer.allowedIPs)
        desired.endpointSource = peer.endpoint
        switch peer.endpoint {
        case .address(let endpoint): desired.endpoint = endpoint
        case .host(let host, let port):
            desired.endpoint = facts.resolved[.host(host, port: port)]
            guard desired.endpoint == nil else { break }
            report(
                .note, .unresolvedName,
                "\(host), the endpoint of \(peer.label), is not resolved yet",
                advice: "it is asked for again; until then the peer has to call")
        case nil: break
        }
        return desired
    }

    /// A prefix belongs to one peer: the last that claims it (C39).
    private mutating func shareOut() {
        let labels = Dictionary(
            configuration.peers.map { ($0.publicKey, $0.label) }, uniquingKeysWith: { $1 })
        var holder: [Prefix: Int] = [:]
        for position in tunnel.peers.indices {
            for prefix in tunnel.peers[position].prefixes.sorted(by: Prefix.precedes) {
                guard let before = holder.updateValue(position, forKey: prefix) else { continue }
                tunnel.peers[before].prefixes.remove(prefix)
                let loser = labels[tunnel.peers[before].publicKey] ?? ""
                let winner = labels[tunnel.peers[position].publicKey] ?? ""
                report(
                    .warning, .sharedPrefix, "\(loser) and \(winner) both claim \(prefix)",
                    whoLoses: "\(loser) loses it",
                    advice: "remove it from one of them; a prefix belongs to one peer")
            }
        }
    }

    // MARK: resolver, firewall

    private mutating func decideDNS() {
        let interface = configuration.interface
        guard !interface.dnsServers.isEmpty || !interface.searchDomains.isEmpty else { return }
        var settings = DNSSettings()
        settings.servers = interface.dnsServers
        settings.searchDomains = interface.searchDomains
        tunnel.host.dns = settings
    }

    private mutating func decideFirewall(_ options: TunnelOptions) {
        guard options.clampsSegmentSize else { return }
        var settings = FirewallSettings()
        settings.clampsSegmentSize = true
        tunnel.host.firewall = settings
    }
}

extension ConfigurationFile.Peer {
    /// For messages: the friendly name with the key, or the key.
    var label: String {
        friendlyName.map { "peer \($0) (\(publicKey))" } ?? "peer \(publicKey)"
    }
}
