// SPDX-License-Identifier: Apache-2.0
import Backends
import HostProcess
import Keeper
import LiveHost
import TunnelPlan
import WireGuard

extension Bench {
    // MARK: facts

    func printFacts() throws {
        let file = try HostFile.read("\(paths.run)/\(name).conf", limit: 1 << 16)
        let configuration = try ConfigurationFile.parse(
            file.bytes.span, file: "\(name).conf"
        ).configuration
        var host = try host()
        resolveNames(of: configuration, &host)
        for line in lines(of: try host.facts(for: configuration)).sorted() { say(line) }
    }

    /// Waits for the answers, whatever they are.
    private func resolveNames(of configuration: ConfigurationFile, _ host: inout LiveHost) {
        var waiting: Set<HostName> = []
        for peer in configuration.peers {
            if case .host(let name, _) = peer.endpoint { waiting.insert(name) }
        }
        for name in waiting { host.resolve(name) }
        var poller = Poller()
        let deadline = Host.monotonicMilliseconds() + 30_000
        while !waiting.isEmpty {
            guard Host.monotonicMilliseconds() < deadline else { fail("no answer for \(waiting)") }
            poller.removeAll()
            for descriptor in host.descriptors { poller.add(descriptor) }
            poller.wait(milliseconds: 1000)
            for event in host.drainEvents() {
                switch event {
                case .resolved(let name, _): waiting.remove(name)
                case .unresolved(let name, _, _): waiting.remove(name)
                default: break
                }
            }
        }
    }

    private func lines(of facts: HostFacts) -> [String] {
        var lines = facts.pathMTU.map { "path \($0.key) \($0.value)" }
        lines += facts.addresses.map { "address \($0.address) \($0.link)" }
        lines += facts.routes.map { route in
            let metric = route.metric.map { "\($0)" } ?? "unknown"
            return "route \(route.destination) \(route.table) \(route.link ?? "nowhere") \(metric)"
        }
        lines += facts.tablesInUse.map { "table \($0)" }
        lines += facts.marksInUse.map { "mark \($0)" }
        for (family, priorities) in facts.rulePriorities {
            lines += priorities.map { "rule \(family) \($0)" }
        }
        lines += facts.tableNumbers.map { "name \($0.key) \($0.value)" }
        lines += facts.listenPorts.map { "port \($0.key) \($0.value)" }
        lines += facts.fullTunnels.map { "full \($0)" }
        lines.append("default \(facts.defaultRouteMTU.map { "\($0)" } ?? "unknown")")
        lines.append("key \(facts.ownPublicKey.map { "\($0)" } ?? "unknown")")
        lines += (facts.current?.host.addresses ?? []).map { "own \($0)" }
        return lines
    }

    // MARK: addresses of one subnet

    /// Leaves the tunnel, for `ip` to look at.
    func exchangeAddresses() throws {
        var host = try host()
        try host.perform(.createLink(backend.kind))
        try host.perform(.setUp(true))
        let first = try address("10.77.0.1/24")
        let second = try address("10.77.0.2/24")
        let route = Route(Prefix("10.90.0.0/16")!)
        for step: Change in [
            .addAddress(first), .addAddress(second), .addRoute(route), .removeAddress(first),
        ] {
            try host.perform(step)
        }
        guard let state = try host.snapshot() else { fail("no tunnel") }
        say("\(state.host.addresses.map(\.description)) \(state.host.routes.map(\.destination))")
    }

    private func address(_ text: String) throws -> InterfaceAddress {
        guard let address = InterfaceAddress([UInt8](text.utf8).span) else { fail(text) }
        return address
    }

    // MARK: another kind of link

    /// The full tunnel that `adopt` left makes room for another link. This kernel may have no
    /// WireGuard, so the other kind is played by an engine as well.
    func replaceLink() throws {
        var host = try LiveHost(
            name, paths: paths, userspace: userspace,
            kernel: PlayedKernel(engine: userspace, isThere: false))
        var dns = DNSSettings()
        dns.servers = [DNSServer(address: .v4(0xC000_0235))].compactMap { $0 }
        try host.perform(.setDNS(dns))
        let text = try HostFile.read(paths.resolver.resolvConf, limit: 1 << 16).bytes
        say(String(decoding: text, as: UTF8.self))
        let before = try host.snapshot()
        do throws(KeeperFailure) {
            try host.perform(.createReplacement(.kernel))
            fail("a link of a kind that is not there was made")
        } catch {
            say("\(error)")
        }
        guard let before, before.host.dns == dns, try host.snapshot() == before else {
            fail("the tunnel did not stay as it was")
        }
        host = try LiveHost(
            name, paths: paths, userspace: userspace,
            kernel: PlayedKernel(engine: userspace, isThere: true))
        _ = try host.snapshot()
        try host.perform(.createReplacement(.kernel))
        try host.perform(.setDevice(DeviceChange(fwmark: 7)))
        guard try host.snapshot() == before else { fail("half of a replacement was left") }
        try host.perform(.createReplacement(.kernel))
        try host.perform(.exchangeLink)
        guard let after = try host.snapshot() else { fail("no tunnel") }
        guard after.host.rules == before.host.rules, after.host.firewall == before.host.firewall,
            after.host.settings == before.host.settings, !after.host.rules.isEmpty
        else { fail("rules, firewall and settings did not stay: \(after.host)") }
        guard after.host.addresses.isEmpty, after.host.routes.isEmpty, after.host.dns == nil,
            !after.host.isUp
        else { fail("the new link has something of the old one: \(after.host)") }
        guard after.device.privateKey == nil, after.device.peers.isEmpty else {
            fail("the new device is not empty")
        }
        say("replaced: rules, firewall and settings stay, the rest is gone")
    }
}

/// The kernel's part, played by an engine: a link of its kind cannot be made everywhere.
private struct PlayedKernel: Backend {
    let engine: UserspaceBackend
    let isThere: Bool
    var kind: BackendKind { .kernel }

    func availability() -> BackendAvailability {
        isThere
            ? engine.availability() : .unavailable(BackendError(.unavailable, "there is no kernel"))
    }

    func names() throws(BackendError) -> [InterfaceName] { [] }

    func create(_ name: InterfaceName) throws(BackendError) { try engine.create(name) }

    func snapshot(_ name: InterfaceName) throws(BackendError) -> DeviceSnapshot {
        try engine.snapshot(name)
    }

    func apply(
        _ name: InterfaceName, device: DeviceChange, peers: [PeerChange], replacePeers: Bool
    ) throws(BackendError) {
        try engine.apply(name, device: device, peers: peers, replacePeers: replacePeers)
    }

    func isFree(_ name: InterfaceName) -> Bool { engine.isFree(name) }

    func rename(_ name: InterfaceName, to other: InterfaceName) throws(BackendError) {
        try engine.rename(name, to: other)
    }

    func remove(_ name: InterfaceName) throws(BackendError) { try engine.remove(name) }
}
