// SPDX-License-Identifier: Apache-2.0
// What the agent asks of the keeper. Each call may wait for its answer: it runs on a thread of its
// own.
import ControlAPI
import HostProcess
import Keeper
import TunnelPlan
import WireGuard

/// The device's view of the peer that is the hub, and of itself.
struct TunnelFacts: Equatable, Sendable {
    var backend: BackendKind
    var publicKey: PublicKey?
    var isUp: Bool
    /// Of the hub's peer.
    var reading: TunnelReading
    var endpoint: String?
}

struct TunnelControl: Sendable {
    let interface: InterfaceName
    /// Of the keeper's socket.
    let directory: String

    /// `text` is erased.
    func apply(_ text: consuming [UInt8]) throws(KeeperFailure) {
        var options = KeeperClient.ApplyOptions()
        options.hooks = .refuse
        options.isPersistent = true
        var client = try connect()
        _ = try client.apply(text, options: options)
    }

    /// A keeper that waits has no tunnel: that is what was asked for.
    func takeDown() throws(KeeperFailure) {
        var client = try connect()
        if try client.status().phase == .waiting { return }
        try client.down()
    }

    /// nil: there is no device.
    func read(hub: PublicKey, at now: Moment) throws(KeeperFailure) -> TunnelFacts? {
        var client = try connect()
        guard let device = try client.deviceState() else { return nil }
        let peer = device.peers.first { $0.publicKey == hub }
        let reading = TunnelReading(
            at: now, lastHandshake: peer?.lastHandshakeSeconds,
            receivedBytes: peer?.receivedBytes ?? 0, sentBytes: peer?.sentBytes ?? 0,
            keepalive: peer?.keepalive ?? 0)
        return TunnelFacts(
            backend: device.backend, publicKey: device.publicKey, isUp: device.isUp,
            reading: reading, endpoint: peer?.endpoint?.description)
    }

    private func connect() throws(KeeperFailure) -> KeeperClient {
        try KeeperClient.connect(interface, directory: directory)
    }
}

extension ApplyFault {
    /// `isChange`: another revision is in the tunnel, and the keeper went back to it.
    init(_ failure: KeeperFailure, isChange: Bool) {
        switch failure.kind {
        case .configurationInvalid:
            self = .rejected(code: "configuration_invalid", reason: failure.message)
        case .failed where isChange:
            self = .rejected(code: "apply_failed", reason: failure.message)
        case .failed, .notRunning, .permission, .busy: self = .postponed(reason: failure.message)
        }
    }
}
