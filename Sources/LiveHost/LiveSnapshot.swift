// SPDX-License-Identifier: Apache-2.0
import Backends
import HostNetwork
import Keeper
import TunnelPlan
import WireGuard

extension LiveHost {
    public mutating func snapshot() throws(KeeperFailure) -> TunnelState? {
        try settleReplacement()
        guard let own = try ownLink() else { return nil }
        var device = try readDevice(own.kind)
        device.mtu = own.link.mtu
        device.isUp = own.link.isUp
        let host = try hostState(of: own.link, mark: device.fwmark)
        return TunnelState(backend: own.kind, device: device, host: host)
    }

    public mutating func device() throws(KeeperFailure) -> DeviceState? {
        guard let own = try ownLink() else { return nil }
        var device = try readDevice(own.kind)
        device.mtu = own.link.mtu
        device.isUp = own.link.isUp
        return DeviceState(backend: own.kind, device)
    }

    private func readDevice(_ kind: BackendKind) throws(KeeperFailure) -> DeviceSnapshot {
        let source = self.backend(kind)
        return try askingBackend { () throws(BackendError) in try source.snapshot(name) }
    }

    private mutating func hostState(
        of link: Link, mark: UInt32
    ) throws(KeeperFailure) -> HostState {
        var host = HostState()
        host.mtu = link.mtu
        host.isUp = link.isUp
        do throws(NetworkError) {
            host.addresses = try netlink.addresses(index: link.index)
            if !foundAddresses.isEmpty {
                let all = Set(try netlink.allAddresses(index: link.index).map(\.address))
                host.addresses.formUnion(foundAddresses.intersection(all))
            }
            host.routes = try netlink.ownRoutes(index: link.index)
            let ownership = RuleOwnership(
                rules: try netlink.ownRules(), known: rules, mark: mark,
                tables: Set(host.routes.map(\.table)).subtracting([Route.mainTable]),
                tablesWithRoutes: [], otherMarks: [])
            host.rules = ownership.own
            if !barriers.isEmpty { forget(barriers.subtracting(try netlink.barriers())) }
            host.barriers = barriers
        } catch {
            throw KeeperFailure(error)
        }
        rules = host.rules
        host.dns = resolver.current(name, index: link.index) ?? refusedDNS?.settings
        host.firewall = try firewallSettings()
        for setting in HostSetting.allCases {
            host.settings[setting] = try settings.value(of: setting, for: name)
        }
        return host
    }

    /// nil: there is no table of ours.
    private func firewallSettings() throws(KeeperFailure) -> FirewallSettings? {
        let state: FirewallState
        do throws(NetworkError) {
            // `map` would copy it.
            switch firewall {
            case .some(let firewall): state = try firewall.current(name)
            case nil: return nil
            }
        } catch {
            throw KeeperFailure(error)
        }
        switch state {
        case .absent, .foreign: return nil
        case .ours(let settings, isIntact: true): return settings
        case .ours(var settings, isIntact: false):
            // Differs from everything that can be wanted, which names no address twice: so the
            // table is written anew, or removed.
            guard let any = InterfaceAddress(address: .v4(0), length: 32) else { return settings }
            settings.protectedAddresses += [any, any]
            return settings
        }
    }
}
