// SPDX-License-Identifier: Apache-2.0
import CNetlink
import Glibc
import TunnelPlan
import WireGuard

/// Owner of a generic netlink socket that speaks to the kernel's WireGuard (linux/wireguard.h) in
/// the network namespace in which it was made.
@safe public struct KernelWireGuard: ~Copyable {
    public enum Availability: Equatable, Sendable {
        case available
        /// The kernel has no WireGuard, nor a module for it (C84).
        case missing
        /// It has, but this process may not make links (C83).
        case noPermission
    }

    private let handle: OpaquePointer

    public init() throws(NetworkError) {
        var made: OpaquePointer?
        let result = unsafe netlink_open(&made, NETLINK_SUBSYSTEM_GENERIC)
        guard result == 0, let made = unsafe made else {
            throw NetworkError(cannot: "open a generic netlink socket", result: result)
        }
        unsafe handle = made
    }

    deinit { unsafe netlink_close(handle) }

    /// Asks for a link with an impossible MTU, which is never made; loads the module if there is
    /// one. Throws when the kernel's answer is none of the three.
    public static func availability() throws(NetworkError) -> Availability {
        let netlink = try Netlink()
        let result = unsafe netlink_link_probe(netlink.handle, "wireguard")
        switch result {
        case 0: return .available
        case -EOPNOTSUPP: return .missing
        case -EPERM, -EACCES: return .noPermission
        default:
            try netlink.check(result, "find out whether the kernel has WireGuard")
            return .missing
        }
    }

    /// The device with all its peers. Its `mtu` and `isUp` are the link's: see `Netlink.link`.
    /// Throws `.notFound` without a link of this name, `.unsupported` when it is of another kind or
    /// the kernel has no WireGuard.
    public func snapshot(_ name: InterfaceName) throws(NetworkError) -> DeviceSnapshot {
        var device = unsafe netlink_wireguard_device()
        let result = unsafe netlink_wireguard_get(handle, name.description, &device)
        defer { unsafe netlink_wireguard_free(&device) }
        try check(result, "read WireGuard device \(name)")
        return unsafe DeviceSnapshot(&device)
    }

    /// Makes the changes in their order; with `replacePeers` the peers not named go. When it throws,
    /// the first of them may have been made. Throws `.busy` when the port is taken (C86);
    /// `.unsupported` when a single prefix is to be taken from a peer and the kernel (before 6.16)
    /// cannot: then the peer's list must be replaced.
    public func apply(
        _ name: InterfaceName, device: DeviceChange, peers: [PeerChange], replacePeers: Bool
    ) throws(NetworkError) {
        var packed = try PackedChanges(device: device, peers: peers, replacePeers: replacePeers)
        defer { packed.erase() }
        let result = unsafe packed.send { changes in
            unsafe netlink_wireguard_set(handle, name.description, changes)
        }
        if result == -EINVAL, packed.takesPrefixes {
            throw NetworkError(
                .unsupported, errno: EINVAL,
                "cannot take single prefixes from peers of \(name): the kernel is older than 6.16"
                    + "; replace the peers' lists instead")
        }
        let hint: String? =
            switch (-result, device.listenPort) {
            case (EADDRINUSE, let port?): "UDP port \(port) is taken: choose another ListenPort"
            case (EADDRINUSE, nil): "the UDP port is taken: choose another ListenPort"
            default: nil
            }
        try check(result, "configure WireGuard device \(name)", hint: hint)
    }

    private func check(
        _ result: Int32, _ what: String, hint: String? = nil
    ) throws(NetworkError) {
        guard result != 0 else { return }
        // Asking for the family fails with ENOENT, and nothing else does.
        if result == -ENOENT {
            throw NetworkError(
                .unsupported, errno: ENOENT,
                "cannot \(what): the kernel has no WireGuard; use the userspace back-end")
        }
        let explanation = unsafe String(cString: netlink_explanation(handle))
        throw NetworkError(cannot: what, result: result, explanation: explanation, hint: hint)
    }
}
