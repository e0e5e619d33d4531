// SPDX-License-Identifier: Apache-2.0
// The keeper's host as it really is: the network namespace of this process.
import Backends
import HostNetwork
import HostProcess
import Keeper
import TunnelPlan
import WireGuard

/// One tunnel on this host. What it makes carries a mark in the kernel: the link its alias, routes,
/// rules and addresses their protocol number, the nft table its comment. Only what is marked is
/// ever changed.
public struct LiveHost: TunnelHost, ~Copyable {
    /// Where things are; others than the defaults are for tests.
    public struct Paths: Sendable {
        /// Of the record of settings that tunnels changed.
        public var run = "/run/nexusguard"
        public var resolver = Resolver.Paths()
        /// Of the bus on which logind is; nil: the system's.
        public var bus: String?
        /// rt_tables(5); later ones add to earlier ones.
        public var routingTables = [
            "/usr/lib/iproute2/rt_tables", "/usr/share/iproute2/rt_tables",
            "/etc/iproute2/rt_tables",
        ]

        public init() {}
    }

    public let name: InterfaceName
    let paths: Paths
    let userspace: UserspaceBackend
    let kernel: any Backend
    let netlink: Netlink
    let monitor: NetlinkMonitor
    let names: NameLookup
    let resolver: Resolver
    /// nil: the kernel has no nf_tables.
    let firewall: Firewall?
    var firewallMonitor: FirewallMonitor?
    /// nil: there is no bus. Then the clocks tell that the machine was asleep.
    var sleep: SleepMonitor?
    let settings: SettingRecord
    let creation: CreationRecord
    let replacements: ReplacementRecord
    let barrierRecord: BarrierRecord

    /// Of the link when it was last seen.
    var index: UInt32?
    /// A link that is being made beside ours.
    var replacement: Replacement?
    /// For the labels of engines that are made from now on; nil: the clock is good.
    var floor: Int64?
    /// Added here: a rule whose neighbour somebody removed is still known to be ours.
    var rules: Set<Rule> = []
    /// Added here, or by a keeper that died.
    var barriers: Set<Barrier>
    /// What names of hosts were last found to stand for: the paths there decide the MTU.
    var resolved: [HostName: [ResolvedAddress]] = [:]
    /// What the resolver refused. It was told once and counts as done, so that a tunnel works
    /// without it (C33); the resolver is asked again.
    var refusedDNS: RefusedDNS?
    /// Addresses that are wanted and were there already, by somebody else's hand: they count as
    /// ours, and stay when we do not want them any more.
    var foundAddresses: Set<InterfaceAddress> = []

    /// Throws when the host cannot be watched. `userspace` is the back-end outside the kernel; another
    /// `kernel` than the kernel's is for tests.
    public init(
        _ name: InterfaceName, paths: Paths = Paths(),
        userspace: UserspaceBackend = UserspaceBackend(), kernel: any Backend = KernelBackend()
    ) throws(KeeperFailure) {
        let netlink = try askingNetwork { () throws(NetworkError) in try Netlink() }
        let monitor = try askingNetwork { () throws(NetworkError) in try NetlinkMonitor() }
        let names = try askingNetwork { () throws(NetworkError) in try NameLookup() }
        self.name = name
        self.paths = paths
        self.userspace = userspace
        self.kernel = kernel
        self.netlink = netlink
        self.monitor = monitor
        self.names = names
        resolver = Resolver(paths.resolver)
        settings = SettingRecord(directory: paths.run)
        creation = CreationRecord(directory: paths.run, name: name)
        replacements = ReplacementRecord(directory: paths.run, name: name)
        barrierRecord = BarrierRecord(directory: paths.run, name: name)
        barriers = barrierRecord.read()
        // Drafts of a keeper that was killed before it had written.
        if barriers.isEmpty { barrierRecord.end() }
        if !creation.exists { creation.end() }
        if replacements.read() == nil { replacements.end() }
        firewall = try? Firewall()
        firewallMonitor = try? FirewallMonitor(name)
        sleep = SleepMonitor(busAddress: paths.bus)
    }

    // MARK: back-ends

    func backend(_ kind: BackendKind) -> any Backend {
        switch kind {
        case .kernel: kernel
        case .userspace: userspace
        }
    }

    public func chooseBackend(
        _ preference: BackendKind?
    ) throws(KeeperFailure) -> BackendChoice {
        do throws(BackendError) {
            let selection = try BackendSelection.choose(
                preference, kernel: backend(.kernel).availability(),
                userspace: backend(.userspace).availability())
            return BackendChoice(selection.kind, note: selection.note)
        } catch {
            throw KeeperFailure(error)
        }
    }

    // MARK: the link

    /// What our link's alias says.
    var ownerTag: String { "nexusguard: \(name)" }

    /// The tunnel's link; nil: there is none. Throws `.busy` for somebody else's (C81).
    mutating func ownLink() throws(KeeperFailure) -> OwnLink? {
        let link: Link?
        do throws(NetworkError) {
            link = try netlink.link(named: name)
        } catch {
            throw KeeperFailure(error)
        }
        index = link?.index
        guard let link else { return nil }
        guard let kind = BackendKind(link) else { throw foreign(link) }
        if link.alias != ownerTag {
            guard link.alias ?? "" == "", creation.exists else { throw foreign(link) }
            // A keeper died between making it and marking it.
            guard try isReady(link, kind) else {
                index = nil
                return nil
            }
            try askingNetwork { () throws(NetworkError) in
                try netlink.setAlias(index: link.index, ownerTag)
            }
            creation.end()
        }
        return OwnLink(link: link, kind: kind)
    }

    /// An engine makes its device first and listens a moment later. False: it has gone again.
    private func isReady(_ link: Link, _ kind: BackendKind) throws(KeeperFailure) -> Bool {
        guard kind == .userspace else { return true }
        let deadline = Host.monotonicMilliseconds() + 5_000
        var poller = Poller()
        while !userspace.isAnswered(name), Host.monotonicMilliseconds() < deadline {
            let now = try askingNetwork { () throws(NetworkError) in
                try netlink.link(index: link.index)
            }
            if now == nil { return false }
            poller.removeAll()
            poller.wait(milliseconds: 5)
        }
        return true
    }

    private func foreign(_ link: Link) -> KeeperFailure {
        let kind = link.kind.map { "a link of kind \($0)" } ?? "a device"
        let alias = link.alias.map { ", alias \"\($0)\"" } ?? ""
        let advice =
            BackendKind(link) == nil
            ? "name the tunnel differently"
            : "end it with the program that made it (wg-quick down \(name)), or name the tunnel "
                + "differently"
        return KeeperFailure(
            .busy, "\(name) is \(kind) that nexusguard did not make\(alias): \(advice)")
    }
}

struct RefusedDNS: Equatable {
    var settings: DNSSettings
    /// When to ask again, in milliseconds of CLOCK_BOOTTIME.
    var dueAt: Int64
    /// Until then, doubled each time.
    var delay: Int64

    static let firstDelay: Int64 = 5_000
    static let longestDelay: Int64 = 320_000
}

/// The tunnel's link, and who moves its packets.
struct OwnLink {
    let link: Link
    let kind: BackendKind
}

extension BackendKind {
    /// nil: no link for packets of a tunnel.
    init?(_ link: Link) {
        switch link.kind {
        case "wireguard": self = .kernel
        case "tun": self = .userspace
        default: return nil
        }
    }
}

// MARK: errors

extension KeeperFailure {
    init(_ error: NetworkError) {
        let kind: Kind =
            switch error.kind {
            case .permission: .permission
            case .exists, .busy: .busy
            case .notFound, .unsupported, .other: .failed
            }
        self.init(kind, error.message)
    }

    init(_ error: BackendError) {
        let kind: Kind =
            switch error.kind {
            case .permission: .permission
            case .taken: .busy
            case .notRunning: .notRunning
            case .unavailable, .refused, .timeout, .other: .failed
            }
        self.init(kind, error.message)
    }
}

/// The network's errors as the keeper's.
func askingNetwork<Value: ~Copyable>(
    _ body: () throws(NetworkError) -> Value
) throws(KeeperFailure) -> Value {
    do throws(NetworkError) {
        return try body()
    } catch {
        throw KeeperFailure(error)
    }
}

/// A back-end's errors as the keeper's.
func askingBackend<Value>(
    _ body: () throws(BackendError) -> Value
) throws(KeeperFailure) -> Value {
    do throws(BackendError) {
        return try body()
    } catch {
        throw KeeperFailure(error)
    }
}
