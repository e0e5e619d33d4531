// SPDX-License-Identifier: Apache-2.0
// What the keeper asks of the host it keeps a tunnel on. It decides; a TunnelHost does.
import TunnelPlan
import WireGuard

/// One tunnel's host: the kernel's network, the back-end, the firewall, the resolver. One thread
/// uses it. No call waits for the network; each returns as soon as the kernel or the back-end has
/// answered.
public protocol TunnelHost: ~Copyable {
    /// The tunnel as it is; nil when there is no link of its name.
    /// Throws `.busy` when the link of that name is not ours (C81), and names whose it is.
    mutating func snapshot() throws(KeeperFailure) -> TunnelState?

    /// The device without its host, and without its secrets; nil when there is none. Throws as
    /// `snapshot` does.
    mutating func device() throws(KeeperFailure) -> DeviceState?

    /// What `configuration` must know of this host; `current` is what `snapshot` tells. Peers whose host name resolved have an address
    /// for their endpoint here; the others keep the name and count for nothing.
    mutating func facts(for configuration: ConfigurationFile) throws(KeeperFailure) -> HostFacts

    /// Who would move the packets of a new link: `preference`, or for nil the best there is. Throws
    /// what is missing (C83, C84).
    mutating func chooseBackend(
        _ preference: BackendKind?
    ) throws(KeeperFailure) -> BackendChoice

    /// Makes one step. What has been reached already is no failure: adding what is there as it
    /// should be, or removing what is gone.
    mutating func perform(_ change: Change) throws(KeeperFailure)

    /// Makes consecutive steps that concern only the device and its peers, or only add routes, as one
    /// request: ten thousand peers are no ten thousand requests. False: not all were made, or this host has no
    /// such request; then each is made by `perform`, which says which one fails.
    mutating func performTogether(_ changes: ArraySlice<Change>) -> Bool

    /// To wait on; `drainEvents` is called when one of them is readable. May differ from call to
    /// call.
    var descriptors: [Int32] { get }

    /// All that happened since the last call. Never waits.
    mutating func drainEvents() -> [HostEvent]

    /// When to call `performDue` though nothing happened, in milliseconds of CLOCK_BOOTTIME; nil:
    /// never.
    var dueAt: Int64? { get }

    /// Tries again what is no part of a plan because the tunnel works without it.
    mutating func performDue()

    /// No initiation of an engine that `perform` makes from now on carries a TAI64N label below this.
    /// Seconds since 1970. The kernel has no such thing.
    mutating func raiseFloor(to seconds: Int64)

    /// Of the latest TAI64N label that this tunnel sent and a peer may have seen, in seconds since 1970;
    /// nil: none, or nobody tells.
    mutating func latestLabel() -> Int64?

    /// Looks `name` up in the background and answers with `HostEvent.resolved`. A second request
    /// for a name that is being looked up adds nothing.
    mutating func resolve(_ name: HostName)
}

extension TunnelHost where Self: ~Copyable {
    public mutating func performTogether(_ changes: ArraySlice<Change>) -> Bool { false }

    public mutating func raiseFloor(to seconds: Int64) {}
    public mutating func latestLabel() -> Int64? { nil }

    public var dueAt: Int64? { nil }
    public mutating func performDue() {}

    public mutating func device() throws(KeeperFailure) -> DeviceState? {
        try snapshot().map { DeviceState(backend: $0.backend, $0.device) }
    }
}

public struct BackendChoice: Equatable, Sendable {
    public var kind: BackendKind
    /// Why it is not the first choice; one line.
    public var note: String?

    public init(_ kind: BackendKind, note: String? = nil) {
        self.kind = kind
        self.note = note
    }
}

/// What the keeper hears of its host. It looks again after each; none of these needs to be precise.
public enum HostEvent: Equatable, Sendable {
    /// Others changed the link, an address, a route or a rule of the tunnel, its nft table or its
    /// resolver settings.
    case tunnelChanged
    /// Others changed routes, links or addresses of the host: paths to endpoints may have another
    /// MTU, names may be reached by another family.
    case pathsChanged
    /// Something that this keeper did itself. It counts for nothing.
    case ownEcho
    /// Events were lost (ENOBUFS of netlink(7)): all may have changed.
    case overflow
    /// In the order in which they are to be tried (reachable ones first, C29). Never empty.
    case resolved(HostName, [ResolvedAddress])
    /// The name has no address now. `isFinal`: the answer was that there is no such name; it is
    /// tried again all the same, but seldom (C30).
    case unresolved(HostName, reason: String, isFinal: Bool)
}

/// An address that a name has.
public struct ResolvedAddress: Hashable, Sendable {
    public var address: IPAddress
    /// Of a link-local address.
    public var zone: Endpoint.Zone?

    public init(_ address: IPAddress, zone: Endpoint.Zone? = nil) {
        self.address = address
        self.zone = zone
    }
}
