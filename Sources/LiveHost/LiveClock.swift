// SPDX-License-Identifier: Apache-2.0
// The labels of handshakes (C78): the engine tells them, and is told.
import Backends
import HostProcess
import Keeper
import TunnelPlan
import WireGuard

extension LiveHost {
    public mutating func raiseFloor(to seconds: Int64) { floor = seconds }

    /// An engine that takes the place of another goes on above its labels.
    mutating func raiseFloorAboveOurs() {
        guard let label = latestLabel(), label >= Host.wallClock().seconds else { return }
        floor = max(floor ?? 0, label + 1)
    }

    /// Before it has a peer, or it would send an initiation with the clock's time. `made`: the name that
    /// it was started with.
    func setFloor(of made: InterfaceName) {
        guard let floor else { return }
        do throws(BackendError) {
            try EngineState(made).raiseFloor(to: floor)
        } catch {
            // wireguard-go has no such socket.
            Log.write(
                .warning,
                "\(error.message); the clock is behind, and its handshakes may be refused until it "
                    + "is set")
        }
    }

    /// The kernel does not tell; a handshake's time is that of the label that led to it, or a moment
    /// later.
    public mutating func latestLabel() -> Int64? {
        guard let own = try? ownLink() else { return nil }
        if own.kind == .userspace,
            let document = try? EngineState(name).document()
        {
            return Keeper.latestLabel(ofStateDocument: document)
        }
        let peers = (try? self.backend(own.kind).snapshot(name))?.peers ?? []
        return peers.map(\.lastHandshakeSeconds).max().flatMap { $0 > 0 ? $0 : nil }
    }
}
