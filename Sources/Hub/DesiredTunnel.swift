// SPDX-License-Identifier: Apache-2.0
// The hub's own interface as it should be: what is handed to its keeper, all at once. The keeper
// finds out what is different; peers that are the same are not touched.
import Keeper
import TunnelPlan
import WireGuard

extension HubCore {
    /// The text of a configuration, which holds the private key: the caller erases it. nil: there
    /// are no addresses yet.
    func desiredTunnel() -> (text: [UInt8], options: KeeperClient.ApplyOptions)? {
        guard !model.settings.pools.isEmpty else { return nil }
        var options = KeeperClient.ApplyOptions()
        options.masquerades = model.settings.masquerades
        options.forwardsBetweenPeers = true
        options.isPersistent = true
        options.forwards = model.forwards.values.filter(\.isEnabled).sorted { $0.id < $1.id }
            .compactMap { rule in
                PortForward(
                    rule.transport == .tcp ? .tcp : .udp, publicPort: rule.ports.lowerBound,
                    publicPortEnd: rule.ports.upperBound, target: rule.target,
                    targetPort: rule.targetPort, keepsSource: rule.keepsSource)
            }
        return (desiredConfiguration().write(), options)
    }
}
