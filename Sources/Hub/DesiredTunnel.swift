// SPDX-License-Identifier: Apache-2.0
// The hub's own interface as it should be: what is handed to its keeper, all at once. The keeper
// finds out what is different; peers that are the same are not touched.
import Keeper
import TunnelPlan
import WireGuard

extension HubCore {
    /// The text of a configuration, which holds the private key: the caller erases it.
    func desiredTunnel() -> (text: [UInt8], options: KeeperClient.ApplyOptions) {
        var options = KeeperClient.ApplyOptions()
        options.masquerades = model.settings.masquerades
        options.forwardsBetweenPeers = true
        options.isPersistent = true
        options.forwards = model.forwards.values.filter(\.isEnabled).sorted { $0.id < $1.id }
            .compactMap(\.portForward)
        return (desiredConfiguration().write(), options)
    }
}

extension ForwardRule {
    /// nil: more ports that lead to others than a keeper takes.
    var portForward: PortForward? {
        PortForward(
            transport == .tcp ? .tcp : .udp, publicPort: ports.lowerBound,
            publicPortEnd: ports.upperBound, target: target, targetPort: targetPort,
            keepsSource: keepsSource)
    }
}
