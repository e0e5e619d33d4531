// SPDX-License-Identifier: Apache-2.0
import WireGuard

/// A change that does not fit the state it is applied to.
public struct ModelError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Never with a secret.
    public let description: String
    init(_ description: String) { self.description = description }
}

/// A tunnel in memory. Strict: adding what is there, removing what is not, setting what is set
/// already and what a kernel would refuse are errors, so that a plan proves to be exact.
public struct TunnelModel: Sendable {
    /// nil: there is no tunnel.
    public var state: TunnelState? {
        device.map { device in
            TunnelState(backend: backend, device: device.snapshot, host: host)
        }
    }

    private var backend = BackendKind.kernel
    private var device: DeviceModel?
    private var host = HostState()
    /// Beside it, until it takes its place.
    private var replacement: Replacement?

    private struct Replacement {
        let backend: BackendKind
        var device = DeviceModel(DeviceSnapshot())
        /// Of the link only.
        var host = HostState()
    }

    public init(_ state: TunnelState? = nil) {
        guard let state else { return }
        backend = state.backend
        device = DeviceModel(state.device)
        host = state.host
    }

    /// In order, up to the first that does not fit.
    public mutating func apply(_ changes: [Change]) throws(ModelError) {
        for change in changes { try apply(change) }
    }

    /// After an error the state is as it was.
    public mutating func apply(_ change: Change) throws(ModelError) {
        switch change {
        case .createLink(let kind): try createLink(kind)
        case .createReplacement(let kind):
            try require(device != nil && replacement == nil, "there is nothing to replace")
            replacement = Replacement(backend: kind)
        case .exchangeLink: try exchangeLink()
        case .greetPeers(let keys):
            try require(host.isUp && replacement == nil, "a link that is down greets nobody")
            for key in keys {
                try require(device?.peer(key)?.endpoint != nil, "\(key) is not to be reached")
            }
        case .removeLink: try removeLink()
        case .setDevice, .addPeer, .changePeer, .removePeer:
            guard device != nil else { throw ModelError("there is no link") }
            if replacement == nil {
                try device?.apply(change)
            } else {
                try replacement?.device.apply(change)
            }
        case .addAddress, .removeAddress, .setMTU, .setUp, .addRoute, .removeRoute:
            guard device != nil else { throw ModelError("there is no link") }
            try applyToEitherLink(change)
        case .addRule, .removeRule, .addBarrier, .removeBarrier, .setDNS, .setFirewall, .setSetting:
            guard device != nil else { throw ModelError("there is no link") }
            try applyToHost(change)
        }
    }

    private mutating func createLink(_ kind: BackendKind) throws(ModelError) {
        guard device == nil else { throw ModelError("the link exists") }
        host = HostState()
        backend = kind
        device = DeviceModel(DeviceSnapshot())
    }

    private mutating func exchangeLink() throws(ModelError) {
        guard let new = replacement else { throw ModelError("there is no new link") }
        // The port is the old one's until now.
        try require(new.device.snapshot.listenPort == 0, "a device that waits has no port")
        let old = host
        host = new.host
        (host.rules, host.barriers) = (old.rules, old.barriers)
        (host.firewall, host.settings) = (old.firewall, old.settings)
        (backend, device, replacement) = (new.backend, new.device, nil)
    }

    /// What would be left behind has to be gone.
    private mutating func removeLink() throws(ModelError) {
        guard device != nil else { throw ModelError("there is no link") }
        guard host.rules.isEmpty, host.barriers.isEmpty, host.dns == nil, host.firewall == nil,
            host.settings.isEmpty
        else { throw ModelError("the link has rules, DNS, firewall or settings left") }
        device = nil
        host = HostState()
    }

    /// What was made beside the link goes, as its owner lets it go when a step has failed.
    public mutating func dropReplacement() { replacement = nil }

    // MARK: link

    private mutating func applyToEitherLink(_ change: Change) throws(ModelError) {
        guard var new = replacement else { return try applyToLink(change) }
        switch change {
        case .setUp, .addRoute: throw ModelError("a link that waits is down and has no routes")
        default: break
        }
        let old = host
        host = new.host
        defer { host = old }
        try applyToLink(change)
        new.host = host
        replacement = new
    }

    private mutating func applyToLink(_ change: Change) throws(ModelError) {
        switch change {
        case .addAddress(let address): try add(address)
        case .removeAddress(let address): try remove(address)
        case .setMTU(let mtu): try setMTU(mtu)
        case .setUp(let isUp):
            try require(host.isUp != isUp, "the link is \(isUp ? "up" : "down") already")
            try require(isUp || host.routes.isEmpty, "routes go with the link's being up")
            host.isUp = isUp
        case .addRoute(let route): try add(route)
        case .removeRoute(let route):
            try require(
                host.routes.remove(route) != nil, "there is no route to \(route.destination)")
        default: break
        }
    }

    private mutating func add(_ address: InterfaceAddress) throws(ModelError) {
        try require(!host.addresses.contains(address), "\(address) is there already")
        guard address.address.family == .v6 else {
            host.addresses.insert(address)
            return
        }
        try require(
            !host.addresses.contains { $0.address == address.address },
            "\(address.address) is there with another length")
        try require(host.mtu ?? .max >= ipv6MinimumMTU, "the MTU is too small for \(address)")
        host.addresses.insert(address)
    }

    /// With the last IPv4 address go the IPv4 routes, as in the kernel.
    private mutating func remove(_ address: InterfaceAddress) throws(ModelError) {
        try require(host.addresses.remove(address) != nil, "\(address) is not there")
        guard address.address.family == .v4,
            !host.addresses.contains(where: { $0.address.family == .v4 })
        else { return }
        host.routes = host.routes.filter { $0.destination.address.family == .v6 }
    }

    private mutating func setMTU(_ mtu: UInt32) throws(ModelError) {
        try require(host.mtu != mtu, "the MTU is \(mtu) already")
        let losesIPv6 =
            mtu < ipv6MinimumMTU && host.addresses.contains { $0.address.family == .v6 }
        try require(!losesIPv6, "an MTU of \(mtu) takes the IPv6 addresses away")
        host.mtu = mtu
    }

    private mutating func add(_ route: Route) throws(ModelError) {
        try require(host.isUp, "a link that is down takes no route")
        try require(!host.routes.contains(route), "\(route.destination) is routed already")
        let isConnected =
            route.table == Route.mainTable
            && host.addresses.contains { $0.connectedRoute == route.destination }
        try require(!isConnected, "\(route.destination) is routed because of an address")
        host.routes.insert(route)
    }

    // MARK: host

    private mutating func applyToHost(_ change: Change) throws(ModelError) {
        switch change {
        case .addRule(let rule):
            try require(host.rules.insert(rule).inserted, "rule \(rule.priority) is there already")
        case .removeRule(let rule):
            try require(host.rules.remove(rule) != nil, "there is no rule \(rule.priority)")
        case .addBarrier(let barrier):
            try require(host.barriers.insert(barrier).inserted, "the barrier is there already")
        case .removeBarrier(let barrier):
            try require(host.barriers.remove(barrier) != nil, "there is no such barrier")
        case .setDNS(let settings):
            try require(host.dns != settings, "DNS is set like that already")
            host.dns = settings
        case .setFirewall(let settings):
            try require(host.firewall != settings, "the firewall is set like that already")
            host.firewall = settings
        case .setSetting(let setting, let value):
            try require(host.settings[setting] != value, "\(setting) is set like that already")
            host.settings[setting] = value
        default: break
        }
    }
}

func require(_ condition: Bool, _ why: @autoclosure () -> String) throws(ModelError) {
    if !condition { throw ModelError(why()) }
}
