// SPDX-License-Identifier: Apache-2.0
import CNFTables
import Glibc
import TunnelPlan

/// Tells when somebody, we included, changed a tunnel's nft table: the keeper then looks whether it
/// is intact.
public struct FirewallMonitor: ~Copyable {
    /// Readable when there is something for `next`. Not to be closed.
    public let descriptor: Int32
    private let table: [UInt8]
    private var buffer = [UInt8](repeating: 0, count: 64 << 10)

    /// Throws `.unsupported` when the kernel has no nf_tables.
    public init(_ interface: InterfaceName) throws(NetworkError) {
        let number = socket(
            AF_NETLINK,
            Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue),
            NETLINK_NETFILTER)
        guard number >= 0 else { throw Self.error("open a socket for nftables", errno) }
        // Without a port of its own a socket counts as the kernel's and hears nothing of it.
        var status = bindToAnyPort(number)
        if status == 0 {
            var group = Int32(NFNLGRP_NFTABLES.rawValue)
            status = unsafe setsockopt(
                number, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group,
                socklen_t(MemoryLayout<Int32>.size))
        }
        guard status == 0 else {
            let failure = errno
            close(number)
            throw Self.error("watch the nft tables", failure)
        }
        table = Array(FirewallTable.name(for: interface).utf8)
        descriptor = number
    }

    deinit { close(descriptor) }

    private static func error(_ purpose: String, _ errno: Int32) -> NetworkError {
        let kind: NetworkError.Kind =
            switch errno {
            case EPERM, EACCES: .permission
            case EPROTONOSUPPORT, EAFNOSUPPORT: .unsupported
            default: .other
            }
        return NetworkError(
            kind, errno: errno,
            "cannot \(purpose): \(textOfErrno(errno)); changes by others go unseen")
    }

    /// Whether the table was touched since the last call, or may have been. Reads all there is.
    public mutating func next() -> Bool {
        var isTouched = false
        while true {
            let length = unsafe buffer.withUnsafeMutableBytes { bytes in
                unsafe recv(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_TRUNC))
            }
            if length < 0 {
                if errno == EINTR { continue }
                // ENOBUFS: events were lost (netlink(7)).
                return isTouched || errno != EAGAIN
            }
            // A message that did not fit could name anything.
            isTouched =
                isTouched || length > buffer.count
                || NFTablesEvents.name(table, in: buffer.span.extracting(first: length))
            if length == 0 { return isTouched }
        }
    }
}

private func bindToAnyPort(_ number: Int32) -> Int32 {
    var address = sockaddr_nl()
    address.nl_family = sa_family_t(AF_NETLINK)
    return unsafe withUnsafePointer(to: &address) { start in
        unsafe start.withMemoryRebound(to: sockaddr.self, capacity: 1) { start in
            unsafe bind(number, start, socklen_t(MemoryLayout<sockaddr_nl>.size))
        }
    }
}

/// Events of nf_tables (linux/netfilter/nf_tables.h), which carry the table's name as attribute 1:
/// NFTA_TABLE_NAME, NFTA_CHAIN_TABLE, NFTA_RULE_TABLE, NFTA_SET_TABLE and so on.
enum NFTablesEvents {
    private static let headerLength = 16  // struct nlmsghdr
    private static let familyLength = 4  // struct nfgenmsg
    private static let attributeHeaderLength = 4  // struct nlattr

    /// Whether a message in `datagram` is about the table of that name. Lengths that do not fit end
    /// the reading with true: better one look too many.
    static func name(_ table: [UInt8], in datagram: Span<UInt8>) -> Bool {
        var start = 0
        while datagram.count - start >= headerLength {
            let length = Int(datagram.number32(at: start))
            guard length >= headerLength, length <= datagram.count - start else { return true }
            let subsystem = datagram[start + 5]  // the high byte of nlmsg_type, NFNL_SUBSYS_ID
            if subsystem == UInt8(NFNL_SUBSYS_NFTABLES) {
                let message = datagram.extracting(start..<start + length)
                if concerns(table, message) { return true }
            }
            start += length + 3 & ~3
        }
        return false
    }

    private static func concerns(_ table: [UInt8], _ message: Span<UInt8>) -> Bool {
        var start = headerLength + familyLength
        while message.count - start >= attributeHeaderLength {
            let length = Int(message.number16(at: start))
            let type = message.number16(at: start + 2) & 0x3FFF  // NLA_TYPE_MASK
            guard length >= attributeHeaderLength, length <= message.count - start else {
                return true
            }
            if type == 1 {
                let value = message.extracting(start + attributeHeaderLength..<start + length)
                return value.count == table.count + 1 && value[table.count] == 0
                    && table.indices.allSatisfy { value[$0] == table[$0] }
            }
            start += length + 3 & ~3
        }
        return false  // a generation message names no table
    }
}

extension Span<UInt8> {
    /// In the host's byte order, as netlink has it.
    fileprivate func number16(at index: Int) -> UInt16 {
        unsafe bytes.unsafeLoadUnaligned(fromByteOffset: index, as: UInt16.self)
    }

    fileprivate func number32(at index: Int) -> UInt32 {
        unsafe bytes.unsafeLoadUnaligned(fromByteOffset: index, as: UInt32.self)
    }
}
