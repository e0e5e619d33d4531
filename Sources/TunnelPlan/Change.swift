// SPDX-License-Identifier: Apache-2.0
// One step from the tunnel that is to the one that is wanted. `plan` prints the same list that is
// applied.
import WireGuard

public enum Change: Equatable, Sendable {
    case createLink(BackendKind)
    case removeLink

    case setDevice(DeviceChange)
    case addPeer(PeerChange)
    case changePeer(PeerChange)
    case removePeer(PublicKey)

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
