// SPDX-License-Identifier: Apache-2.0
import CHostProcess
import Glibc

/// Who is at the other end of a unix socket, as the kernel noted it at connect(2).
public struct LocalPeer: Equatable, Sendable {
    public let process: Int32
    public let user: UInt32
    /// Its own group first, then the supplementary ones.
    public let groups: [UInt32]

    public var isRoot: Bool { user == 0 }
    /// The user that this process runs as.
    public var isSelf: Bool { user == geteuid() }

    /// Of a connected socket that somebody else owns. nil when it is no unix socket, or the kernel
    /// does not tell.
    public static func of(socket number: Int32) -> LocalPeer? {
        var peer = host_peer()
        guard unsafe host_peer_identify(number, &peer) == 0 else { return nil }
        // What the kernel says of sockets of other families.
        guard peer.user != .max else { return nil }
        return LocalPeer(
            process: peer.process, user: peer.user,
            groups: [peer.group] + supplementaryGroups(number))
    }

    private static func supplementaryGroups(_ number: Int32) -> [UInt32] {
        var groups = [UInt32](repeating: 0, count: 64)
        while true {
            let count = unsafe host_peer_groups(number, &groups, groups.count)
            guard count > groups.count else { return Array(groups.prefix(max(0, count))) }
            groups = [UInt32](repeating: 0, count: count)
        }
    }
}

extension Descriptor {
    /// nil when the kernel does not tell.
    public var localPeer: LocalPeer? { LocalPeer.of(socket: number) }

    /// Readable once the process at the other end has ended; nil when that is this process, or has
    /// ended already, or the kernel does not tell.
    public var peerProcess: Descriptor? {
        let process = host_peer_process_open(number)
        return process < 0 ? nil : Descriptor(owning: process)
    }
}

extension Host {
    /// The number of a group of group(5); nil when there is none of that name.
    public static func group(named name: String) -> UInt32? {
        guard let entry = unsafe getgrnam(name) else { return nil }
        return unsafe entry.pointee.gr_gid
    }

    /// CLOCK_BOOTTIME in milliseconds: goes on while the machine sleeps.
    public static func bootMilliseconds() -> Int64 {
        var now = timespec()
        unsafe clock_gettime(CLOCK_BOOTTIME, &now)
        return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
    }

    /// 64 bits that nobody can guess (getrandom(2)).
    public static func randomNumber() -> UInt64 { UInt64.random(in: .min ... .max) }

    public static var processNumber: Int32 { getpid() }
}

extension HostFile {
    /// Lets the members of `group` read and write what `path` names (0660), and never what a symbolic
    /// link there leads to.
    public static func share(_ path: String, withGroup group: UInt32) throws(HostError) {
        guard unsafe lchown(path, uid_t.max, group) == 0,
            unsafe fchmodat(AT_FDCWD, path, 0o660, AT_SYMLINK_NOFOLLOW) == 0
        else {
            throw HostError(
                errno: errno,
                "cannot give \(path) to group \(group): \(textOfErrno(errno))")
        }
    }
}
