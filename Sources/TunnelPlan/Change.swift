// SPDX-License-Identifier: Apache-2.0
// One step from the tunnel that is to the one that is wanted. `plan` prints the same list that is
// applied.
import WireGuard

public enum Change: Equatable, Sendable {
    /// There is none of the tunnel's name.
    case createLink(BackendKind)
    /// Makes a link beside the one that is there, under a name of its own. The changes of the device,
    /// its peers, MTU and addresses that follow are the new one's, until `exchangeLink`; the old one
    /// works meanwhile.
    case createReplacement(BackendKind)
    /// The old link goes, with its device, addresses, routes and DNS; the new one, which is down, takes
    /// its name. Rules, barriers, firewall and settings stay. Until it is up and has its routes nothing
    /// passes.
    case exchangeLink
    /// Has the device begin a handshake with each: they have a session with the device that was here
    /// before, and would send to that until they notice (15 s, section 6.1 of the WireGuard paper).
    case greetPeers([PublicKey])
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
    case addBarrier(Barrier)
    case removeBarrier(Barrier)

    /// nil: taken back.
    case setDNS(DNSSettings?)
    /// nil: the table is removed. Otherwise it is replaced in one transaction.
    case setFirewall(FirewallSettings?)
    /// nil: the value found before comes back.
    case setSetting(HostSetting, UInt32?)
}
