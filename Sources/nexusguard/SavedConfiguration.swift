// SPDX-License-Identifier: Apache-2.0
import TunnelPlan
import WireGuard

extension ConfigurationFile {
    /// The file with the running device's keys, port and peers in it. Everything else is the
    /// file's: addresses, hooks, names of peers, settings of other programs (C61). A peer's name of
    /// a host stays (C27): the address it stands for today is of no use tomorrow.
    func saving(_ device: DeviceSnapshot) -> ConfigurationFile {
        var saved = self
        if let key = device.privateKey, !key.isZero { saved.interface.privateKey = key }
        if device.listenPort != 0 { saved.interface.listenPort = device.listenPort }
        if interface.fwmark != nil || !isFullTunnel {
            saved.interface.fwmark = device.fwmark == 0 ? nil : device.fwmark
        }
        let known = Dictionary(peers.map { ($0.publicKey, $0) }) { first, _ in first }
        saved.peers = device.peers.map { running in
            (known[running.publicKey] ?? Peer(publicKey: running.publicKey)).saving(running)
        }
        return saved
    }

    /// The mark of a full tunnel was chosen for it when the file has none, and is again next time.
    private var isFullTunnel: Bool {
        let takesRoutes =
            switch interface.table {
            case nil, .auto?: true
            case .off?, .number?, .name?: false
            }
        return takesRoutes && peers.contains { $0.allowedIPs.contains { $0.length == 0 } }
    }
}

extension ConfigurationFile.Peer {
    fileprivate func saving(_ running: PeerSnapshot) -> ConfigurationFile.Peer {
        var saved = self
        saved.presharedKey = running.presharedKey
        if Set(allowedIPs) != Set(running.prefixes) { saved.allowedIPs = running.prefixes }
        switch endpoint {
        case .host?: break
        case .address?, nil: saved.endpoint = running.endpoint.map { .address($0) } ?? endpoint
        }
        if keepalive ?? 0 != running.keepalive { saved.keepalive = running.keepalive }
        return saved
    }
}
