// SPDX-License-Identifier: Apache-2.0
import CNetlink
import Glibc
import TunnelPlan
import WireGuard

extension Netlink {
    /// Those of ours. Kernels before 5.18 do not remember whose an address is: there all but the
    /// link-local one, which the kernel makes itself.
    public func addresses(index: UInt32) throws(NetworkError) -> Set<InterfaceAddress> {
        let remembers = netlink_marks_addresses()
        let found = try allAddresses(index: index).filter { entry in
            remembers
                ? entry.protocolNumber == Self.ownProtocol
                : !(entry.address.address.isLinkLocal && entry.address.length == 64)
        }
        return Set(found.map(\.address))
    }

    /// Whoever added them.
    public func allAddresses(index: UInt32) throws(NetworkError) -> [LinkAddress] {
        var list = unsafe netlink_interface_addresses()
        defer { unsafe netlink_addresses_free(&list) }
        try check(
            unsafe netlink_address_list(handle, index, &list),
            "list the addresses of link \(index)")
        return unsafe UnsafeBufferPointer(start: list.items, count: list.count).compactMap {
            LinkAddress($0)
        }
    }

    /// The same address from somebody else's hand is left as it is: false.
    @discardableResult
    public func addAddress(
        _ address: InterfaceAddress, index: UInt32
    ) throws(NetworkError) -> Bool {
        var entry = netlink_address(address.address, length: address.length)
        let result = unsafe netlink_address_add(handle, index, &entry)
        if result == -EEXIST { return false }
        // With IPv6 switched off or an MTU below 1280 a link has no IPv6 (C51).
        let isWithoutIPv6 = result == -EACCES || result == -EINVAL
        let hint =
            address.address.family == .v6 && isWithoutIPv6
            ? "the link has no IPv6: look at its MTU (1280 at least) and disable_ipv6" : nil
        try check(result, "add address \(address) to link \(index)", hint: hint)
        return true
    }

    public func removeAddress(_ address: InterfaceAddress, index: UInt32) throws(NetworkError) {
        var entry = netlink_address(address.address, length: address.length)
        let result = unsafe netlink_address_remove(handle, index, &entry)
        if result == -EADDRNOTAVAIL || result == -ENODEV { return }
        try check(result, "remove address \(address) from link \(index)")
    }
}

/// An address of a link, and whose it is.
public struct LinkAddress: Hashable, Sendable {
    public var address: InterfaceAddress
    public var linkIndex: UInt32
    /// IFA_PROTO of linux/if_addr.h; 0: not told.
    public var protocolNumber: UInt8

    init?(_ entry: netlink_interface_address) {
        guard let address = IPAddress(entry.address),
            let interfaceAddress = InterfaceAddress(address: address, length: entry.address.length)
        else { return nil }
        self.address = interfaceAddress
        linkIndex = entry.index
        protocolNumber = entry.protocol
    }
}
