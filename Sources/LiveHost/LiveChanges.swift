// SPDX-License-Identifier: Apache-2.0
import Backends
import HostNetwork
import HostProcess
import Keeper
import TunnelPlan
import WireGuard

extension LiveHost {
    public mutating func perform(_ change: Change) throws(KeeperFailure) {
        switch change {
        case .createLink(let kind): try createLink(kind)
        case .createReplacement(let kind): try createReplacement(kind)
        case .exchangeLink: try exchangeLink()
        case .greetPeers(let keys): try greet(keys)
        case .removeLink: try removeLink()
        case .setDevice(let change): try configure(change)
        case .addPeer(let change), .changePeer(let change): try configure(DeviceChange(), [change])
        case .removePeer(let key): try configure(DeviceChange(), [PeerChange(removing: key)])
        case .addAddress(let address):
            let index = try requireLink()
            let isOurs = try askingNetwork { () throws(NetworkError) in
                try netlink.addAddress(address, index: index)
            }
            if !isOurs, replacement == nil { foundAddresses.insert(address) }
        case .removeAddress(let address) where foundAddresses.remove(address) != nil: break
        case .setMTU, .setUp, .addRoute:
            do throws(KeeperFailure) {
                try add(change, to: try requireLink())
            } catch {
                guard change == .setUp(true), error.kind == .busy else { throw error }
                throw KeeperFailure(.busy, "\(error.message); \(takenPort())")
            }
            if change == .setUp(true) { awaitUp() }
        case .removeAddress, .removeRoute:
            // With the link they are gone already.
            if try ownLink() != nil { try remove(change, from: try requireLink()) }
        case .addRule(let rule):
            try askingNetwork { () throws(NetworkError) in try netlink.addRule(rule) }
            rules.insert(rule)
        case .removeRule(let rule):
            try askingNetwork { () throws(NetworkError) in try netlink.removeRule(rule) }
            rules.remove(rule)
        case .addBarrier(let barrier): try add(barrier)
        case .removeBarrier(let barrier):
            try askingNetwork { () throws(NetworkError) in try netlink.removeBarrier(barrier) }
            forget([barrier])
        case .setDNS(let dns): try setDNS(dns)
        case .setFirewall(let wanted): try setFirewall(wanted)
        case .setSetting(let setting, let value?):
            try settings.set(setting, value, for: name, links: linkNames())
            if setting == .sendsRedirects, value == 0 { sendNoRedirects() }
        case .setSetting(let setting, nil):
            try settings.restore(setting, for: name, links: linkNames())
        }
    }

    /// The other half of it is the link's own, and ends with the link.
    private func sendNoRedirects() {
        do throws(NetworkError) {
            try HostSettings().sendNoRedirects(from: name)
        } catch {
            Log.write(.warning, error.message)
        }
    }

    // MARK: link

    private mutating func createLink(_ kind: BackendKind) throws(KeeperFailure) {
        guard try ownLink() == nil else { return }
        try removeOrphans()
        let maker = self.backend(kind)
        let wasInterrupted = creation.exists
        try creation.begin()
        do throws(BackendError) {
            try maker.create(name)
        } catch {
            guard wasInterrupted, try isMadeByNow(error) else {
                creation.end()
                throw KeeperFailure(error)
            }
        }
        do throws(KeeperFailure) {
            try mark(name)
            creation.end()
            _ = try ownLink()
        } catch {
            // Without its mark it would be nobody's.
            try? maker.remove(name)
            creation.end()
            throw error
        }
        if kind == .userspace { setFloor(of: name) }
    }

    /// A keeper died while its engine was starting, and that one has the name: it comes to its end
    /// of the start without us. False: it does not.
    private func isMadeByNow(_ failure: BackendError) throws(KeeperFailure) -> Bool {
        guard failure.kind == .taken else { return false }
        let deadline = Host.monotonicMilliseconds() + 5_000
        var poller = Poller()
        while Host.monotonicMilliseconds() < deadline {
            let link = try askingNetwork { () throws(NetworkError) in
                try netlink.link(named: name)
            }
            if link != nil, userspace.isAnswered(name) { return true }
            poller.removeAll()
            poller.wait(milliseconds: 5)
        }
        return false
    }

    /// Makes the link that was just made known as ours.
    func mark(_ made: InterfaceName) throws(KeeperFailure) {
        try askingNetwork { () throws(NetworkError) in
            guard let link = try netlink.link(named: made) else {
                throw NetworkError(.notFound, "\(made) was removed as soon as it was made")
            }
            try netlink.setAlias(index: link.index, ownerTag)
        }
        do throws(NetworkError) {
            try HostSettings().promoteSecondaries(of: made)
        } catch {
            // Needed only when addresses of one subnet are exchanged.
            Log.write(.warning, error.message)
        }
    }

    private mutating func removeLink() throws(KeeperFailure) {
        if let own = try ownLink() { try remove(own) }
        index = nil
        try removeOrphans()
    }

    /// Returns when the link is gone: the engine ends by itself, and is helped when it does not.
    func remove(_ own: OwnLink) throws(KeeperFailure) {
        let owner = self.backend(own.kind)
        do throws(BackendError) {
            try owner.remove(name)
        } catch {
            guard error.kind == .timeout || error.kind == .notRunning else {
                throw KeeperFailure(error)
            }
            Log.write(.warning, "\(error.message); its link is removed")
        }
        try askingNetwork { () throws(NetworkError) in
            // A device goes a moment after the last descriptor of it.
            let deadline = Host.monotonicMilliseconds() + 2_000
            var poller = Poller()
            while try netlink.link(index: own.link.index) != nil {
                if Host.monotonicMilliseconds() >= deadline {
                    return try netlink.removeLink(index: own.link.index)
                }
                poller.removeAll()
                poller.wait(milliseconds: 2)
            }
        }
    }

    /// The link that changes are meant for: the one that is being made beside ours, or ours.
    private mutating func requireLink() throws(KeeperFailure) -> UInt32 {
        if let replacement {
            let link = try askingNetwork { () throws(NetworkError) in
                try netlink.link(named: replacement.name)
            }
            guard let link, link.alias == ownerTag else { throw noLink }
            return link.index
        }
        guard let own = try ownLink() else { throw noLink }
        return own.link.index
    }

    var noLink: KeeperFailure { KeeperFailure(.notRunning, "there is no link \(name)") }

    private func add(_ change: Change, to index: UInt32) throws(KeeperFailure) {
        try askingNetwork { () throws(NetworkError) in
            switch change {
            case .setMTU(let mtu): try netlink.setMTU(index: index, mtu)
            case .setUp(let isUp): try netlink.setUp(index: index, isUp)
            case .addRoute(let route): try netlink.addRoute(route, index: index)
            default: return
            }
        }
    }

    private func remove(_ change: Change, from index: UInt32) throws(KeeperFailure) {
        try askingNetwork { () throws(NetworkError) in
            switch change {
            case .removeAddress(let address): try netlink.removeAddress(address, index: index)
            case .removeRoute(let route): try netlink.removeRoute(route, index: index)
            default: return
            }
        }
    }

    /// The kernel's WireGuard opens its socket when the link comes up, and says no more than that something
    /// is in use (wg_open of drivers/net/wireguard/device.c).
    private mutating func takenPort() -> String {
        let port = (try? device())??.listenPort ?? 0
        return "UDP port \(port) is taken: choose another ListenPort"
    }

    /// Who is told that the tunnel is up may be answered by a peer at once.
    private mutating func awaitUp() {
        do throws(KeeperFailure) {
            guard let own = try ownLink() else { return }
            let device = self.backend(own.kind)
            try askingBackend { () throws(BackendError) in try device.awaitUp(name) }
        } catch {
            Log.write(.warning, "\(name) is up; \(error.message)")
        }
    }

    // MARK: device

    mutating func configure(
        _ device: DeviceChange, _ peers: [PeerChange] = []
    ) throws(KeeperFailure) {
        var place = replacement.map { (name: $0.name, kind: $0.kind) }
        if place == nil, let own = try ownLink() { place = (name, own.kind) }
        guard let place else { throw noLink }
        let target = self.backend(place.kind)
        try askingBackend { () throws(BackendError) in
            try target.apply(place.name, device: device, peers: peers, replacePeers: false)
        }
    }

    public mutating func performTogether(_ changes: ArraySlice<Change>) -> Bool {
        switch changes.first {
        case .addRoute: addRoutes(changes)
        case .addBarrier: addBarriers(changes)
        default: configureTogether(changes)
        }
    }

    private mutating func addRoutes(_ changes: ArraySlice<Change>) -> Bool {
        var routes: [Route] = []
        for change in changes {
            guard case .addRoute(let route) = change else { return false }
            routes.append(route)
        }
        guard let index = try? requireLink() else { return false }
        return (try? netlink.addRoutes(routes, index: index)) != nil
    }

    /// A request sets the device before its peers: one that comes later begins another.
    private mutating func configureTogether(_ changes: ArraySlice<Change>) -> Bool {
        var device = DeviceChange()
        var peers: [PeerChange] = []
        do throws(KeeperFailure) {
            for change in changes {
                switch change {
                case .setDevice(let next):
                    if device != DeviceChange() || !peers.isEmpty { try configure(device, peers) }
                    (device, peers) = (next, [])
                case .addPeer(let peer), .changePeer(let peer): peers.append(peer)
                case .removePeer(let key): peers.append(PeerChange(removing: key))
                default: return false
                }
            }
            if device != DeviceChange() || !peers.isEmpty { try configure(device, peers) }
            return true
        } catch {
            // Each by itself says which one it is, if it fails again.
            Log.write(
                .warning,
                "\(name): \(changes.count) changes of the device are made one by one: "
                    + error.message)
            return false
        }
    }

    // MARK: host

    /// What a tunnel that died has left, of this name or another.
    private mutating func removeOrphans() throws(KeeperFailure) {
        try askingNetwork { () throws(NetworkError) in
            let ownership = try ruleOwnership(mark: nil, tables: [])
            for rule in ownership.orphans { try netlink.removeRule(rule) }
        }
        try removeOrphanedBarriers()
    }

    mutating func setDNS(_ dns: DNSSettings?) throws(KeeperFailure) {
        refusedDNS = nil
        if dns != nil, index == nil { _ = try ownLink() }
        do throws(NetworkError) {
            guard let dns else { return try resolver.revert(name, index: index) }
            try tellResolver(dns)
        } catch {
            if let dns { refuse(dns, delay: RefusedDNS.firstDelay) }
            Log.write(.warning, "\(error.message); the tunnel works without its DNS settings")
        }
    }

    private func tellResolver(_ dns: DNSSettings) throws(NetworkError) {
        guard let index else { throw NetworkError(.notFound, "there is no link \(name)") }
        try resolver.apply(dns, for: name, index: index)
    }

    private mutating func refuse(_ dns: DNSSettings, delay: Int64) {
        let delay = min(delay, RefusedDNS.longestDelay)
        refusedDNS = RefusedDNS(
            settings: dns, dueAt: Host.bootMilliseconds() + delay, delay: delay)
    }

    public var dueAt: Int64? { refusedDNS?.dueAt }

    /// The resolver may have been on its way up.
    public mutating func performDue() {
        guard let refused = refusedDNS, refused.dueAt <= Host.bootMilliseconds() else { return }
        do throws(NetworkError) {
            try tellResolver(refused.settings)
            refusedDNS = nil
            Log.write(.info, "the resolver has taken the DNS settings now")
        } catch {
            // Said at the first time.
            refuse(refused.settings, delay: 2 * refused.delay)
        }
    }

    /// nil where they cannot be listed.
    private func linkNames() -> Set<String>? {
        (try? netlink.links()).map { Set($0.map(\.name)) }
    }

    private func setFirewall(_ wanted: FirewallSettings?) throws(KeeperFailure) {
        do throws(NetworkError) {
            switch firewall {
            case .some(let firewall):
                if let wanted {
                    try firewall.apply(wanted, for: name)
                } else {
                    try firewall.remove(name)
                }
            case nil:
                guard wanted != nil else { return }
                throw NetworkError(
                    .unsupported, "the kernel has no nf_tables: load the module nf_tables")
            }
        } catch {
            throw KeeperFailure(error)
        }
    }
}

extension PeerChange {
    fileprivate init(removing key: PublicKey) {
        self.init(publicKey: key)
        remove = true
    }
}
