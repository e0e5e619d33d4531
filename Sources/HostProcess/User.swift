// SPDX-License-Identifier: Apache-2.0
import CHostProcess
import Glibc

/// A user of passwd(5).
public struct User: Equatable, Sendable {
    public let name: String
    public let number: UInt32
    /// Its first group.
    public let group: UInt32

    /// nil when there is none of that name.
    public static func named(_ name: String) -> User? {
        guard let entry = unsafe getpwnam(name) else { return nil }
        return unsafe User(
            name: name, number: entry.pointee.pw_uid, group: entry.pointee.pw_gid)
    }

    /// Whom this process runs as.
    public static var current: User {
        User(name: "", number: geteuid(), group: getegid())
    }

    public static var isRoot: Bool { geteuid() == 0 }

    /// This process becomes that user, without any capability, for good. Started as another user
    /// than root it only gives up what there is. Before any thread exists.
    public func become() throws(HostError) {
        try unsafe withErrorText { text, result in
            result = unsafe host_become_user(name, number, group, text)
        }
    }
}

extension Host {
    /// No core dumps of this process, and no debugger: for those that hold secrets and do not
    /// `become` a user, which forbids them too.
    public static func forbidDumps() throws(HostError) {
        let status = host_forbid_dumps()
        guard status == 0 else {
            throw HostError(
                errno: -status, "cannot forbid core dumps: \(textOfErrno(-status))")
        }
    }

    /// Lets this process have `wanted` open files, or as many as its hard limit allows.
    public static func raiseFileLimit(to wanted: UInt) { host_raise_file_limit(wanted) }
}
