// SPDX-License-Identifier: Apache-2.0
import HostNetwork
import TunnelPlan
import WireGuard

/// The kernel's own WireGuard.
public struct KernelBackend: Backend, Sendable {
    public let kind = BackendKind.kernel

    public init() {}

    public func availability() -> BackendAvailability {
        let availability: KernelWireGuard.Availability
        do throws(NetworkError) {
            availability = try KernelWireGuard.availability()
        } catch {
            return .unavailable(BackendError(.unavailable, error.message))
        }
        return switch availability {
        case .available: .available
        case .missing:
            .unavailable(
                BackendError(
                    .unavailable,
                    "this kernel has no WireGuard (it is in Linux 5.6 and later as the module "
                        + "wireguard)"))
        case .noPermission:
            .unavailable(
                BackendError(
                    .permission,
                    "this process may not make network devices: it lacks CAP_NET_ADMIN; "
                        + "run it as root, or add the capability to its unit or container"))
        }
    }

    public func names() throws(BackendError) -> [InterfaceName] {
        try asking { () throws(NetworkError) in
            try Netlink().links().filter { $0.kind == LinkKind.wireguard.rawValue }
                .compactMap { InterfaceName($0.name) }
                .sorted { $0.description < $1.description }
        }
    }

    public func create(_ name: InterfaceName) throws(BackendError) {
        try asking { () throws(NetworkError) in
            _ = try Netlink().createLink(name, kind: .wireguard)
        }
    }

    public func snapshot(_ name: InterfaceName) throws(BackendError) -> DeviceSnapshot {
        try asking { () throws(NetworkError) in try KernelWireGuard().snapshot(name) }
    }

    public func apply(
        _ name: InterfaceName, device: DeviceChange, peers: [PeerChange], replacePeers: Bool
    ) throws(BackendError) {
        try asking { () throws(NetworkError) in
            let kernel = try KernelWireGuard()
            do throws(NetworkError) {
                try kernel.apply(name, device: device, peers: peers, replacePeers: replacePeers)
            } catch {
                // Before Linux 6.16 a single prefix cannot be taken away (WGALLOWEDIP_F_REMOVE_ME).
                guard error.kind == .unsupported, PrefixRemoval.isUsed(in: peers) else {
                    throw error
                }
                let peers = PrefixRemoval.avoided(in: peers, actual: try kernel.snapshot(name))
                try kernel.apply(name, device: device, peers: peers, replacePeers: replacePeers)
            }
        }
    }

    public func remove(_ name: InterfaceName) throws(BackendError) {
        try asking { () throws(NetworkError) in
            let netlink = try Netlink()
            guard let link = try netlink.link(named: name) else { return }
            guard link.kind == LinkKind.wireguard.rawValue else {
                throw NetworkError(
                    .exists, "cannot remove \(name): it is not a device of the kernel's WireGuard")
            }
            try netlink.removeLink(index: link.index)
        }
    }

    private func asking<Value>(
        _ body: () throws(NetworkError) -> Value
    ) throws(BackendError) -> Value {
        do throws(NetworkError) {
            return try body()
        } catch {
            let kind: BackendError.Kind =
                switch error.kind {
                case .permission: .permission
                case .notFound: .notRunning
                case .exists, .busy: .taken
                case .unsupported: .unavailable
                case .other: .other
                }
            throw BackendError(kind, error.message)
        }
    }
}
