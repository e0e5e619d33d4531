// SPDX-License-Identifier: Apache-2.0
import TunnelPlan
import WireGuard

/// The kernel's own WireGuard. Not available yet: what speaks to it is being built.
public struct KernelBackend: Backend, Sendable {
    public let kind = BackendKind.kernel

    public init() {}

    private var absent: BackendError {
        BackendError(
            .unavailable, "this version of nexusguard does not use the kernel's WireGuard yet")
    }

    public func availability() -> BackendAvailability { .unavailable(absent) }

    public func names() throws(BackendError) -> [InterfaceName] { [] }

    public func create(_ name: InterfaceName) throws(BackendError) { throw absent }

    public func snapshot(_ name: InterfaceName) throws(BackendError) -> DeviceSnapshot {
        throw absent
    }

    public func apply(
        _ name: InterfaceName, device: DeviceChange, peers: [PeerChange], replacePeers: Bool
    ) throws(BackendError) { throw absent }

    public func remove(_ name: InterfaceName) throws(BackendError) { throw absent }
}
