// SPDX-License-Identifier: Apache-2.0
// One step from the tunnel that is to the one that is wanted. `plan` prints the same list that is
// applied.
import WireGuard

public enum Change: Equatable, Sendable {
    /// When there is a link of the other kind it is replaced: with it go the device, the peers,
    /// MTU, addresses, routes and DNS; rules, firewall and settings stay.
    case createLink(BackendKind)
    /// The last change of `undo`; takes the device, addresses and routes along.
    case removeLink

    case setDevice(DeviceChange)
    case addPeer(PeerChange)
    /// Its prefixes are added first; one that another peer has moves here. `updateOnly` is set.
    case changePeer(PeerChange)
    case removePeer(PublicKey)

    /// One of the same IPv4 subnet may still be there. Whoever makes the link turns its
    /// `promote_secondaries` on (ip-sysctl.rst of the kernel), or removing the old one later would
    /// take the new one along.
    case addAddress(InterfaceAddress)
    case removeAddress(InterfaceAddress)
    case setMTU(UInt32)
    case setUp(Bool)
    case addRoute(Route)
    case removeRoute(Route)
    case addRule(Rule)
    case removeRule(Rule)

    /// nil: taken back.
    case setDNS(DNSSettings?)
    /// nil: the table is removed. Otherwise it is replaced in one transaction.
    case setFirewall(FirewallSettings?)
    /// nil: the value found before comes back.
    case setSetting(HostSetting, UInt32?)
}
