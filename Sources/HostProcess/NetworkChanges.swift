// SPDX-License-Identifier: Apache-2.0
import CHostProcess
import Glibc

/// Tells that something about this host's addresses or routes changed, without saying what
/// (rtnetlink(7)). Needs no right.
public final class NetworkChanges {
    private let source: Descriptor

    /// nil where the kernel or a sandbox has no such socket.
    public init?() {
        let number = host_network_changes_open()
        guard number >= 0 else { return nil }
        source = Descriptor(owning: number)
    }

    /// Readable when something changed.
    public var descriptor: Int32 { source.number }

    /// Forgets what was told.
    public func drain() {
        var buffer = [UInt8](repeating: 0, count: 8192)
        // ENOBUFS reads as the end: too much was told, which says the same.
        while case .bytes = source.read(into: &buffer) {}
    }
}

extension Host {
    /// Sends an empty datagram to port 9, discard (RFC 863), at a numeric address; whether the
    /// kernel took it. Never waits.
    public static func sendDiscard(to address: String) -> Bool {
        var hints = unsafe addrinfo()
        unsafe hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
        unsafe hints.ai_socktype = Int32(SOCK_DGRAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard unsafe getaddrinfo(address, "9", &hints, &list) == 0, let entry = unsafe list else {
            return false
        }
        defer { unsafe freeaddrinfo(entry) }
        let number = unsafe socket(
            entry.pointee.ai_family,
            Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard number >= 0 else { return false }
        defer { close(number) }
        return unsafe sendto(
            number, nil, 0, 0, entry.pointee.ai_addr, entry.pointee.ai_addrlen) == 0
    }
}
