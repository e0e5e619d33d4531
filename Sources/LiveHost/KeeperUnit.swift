// SPDX-License-Identifier: Apache-2.0
import HostNetwork
import Keeper
import TunnelPlan
import WireGuard

/// The keeper of a tunnel as a unit of systemd: not in the session of who brings the tunnel up, which
/// may end, and in whose control group it would end too.
public enum KeeperUnit {
    private static let template = "nexusguard-keep"

    /// Returns when it answers. `limit` in milliseconds. False: systemd does not run this machine, or
    /// the unit is not installed.
    public static func start(_ name: InterfaceName, limit: Int64) throws(KeeperFailure) -> Bool {
        guard let unit = ServiceUnits.name(template, name.description) else { return false }
        switch ServiceUnits() {
        case .some(let units):
            guard units.isKnown(unit) else { return false }
            try askingNetwork { () throws(NetworkError) in try units.start(unit, limit: limit) }
            return true
        case nil: return false
        }
    }
}
