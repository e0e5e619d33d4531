// SPDX-License-Identifier: Apache-2.0
import Glibc

/// What stands behind a name, as lstat(2) tells: a symbolic link is not followed.
public struct FileStatus: Equatable, Sendable {
    public enum Kind: Sendable { case regular, directory, link, other }

    public let kind: Kind
    /// The low 12 bits of st_mode (inode(7)).
    public let permissions: UInt32
    /// User and group id.
    public let owner, group: UInt32
    /// Bytes.
    public let size: Int64
    /// Seconds since 1970, of the last change of its bytes.
    public let modified: Int64
    /// Its number on its file system.
    public let inode: UInt64

    /// nil when there is nothing of that name.
    public static func of(_ path: String) throws(HostError) -> FileStatus? {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else {
            guard errno != ENOENT, errno != ENOTDIR else { return nil }
            throw HostError(reading: path, errno)
        }
        let kind: Kind =
            switch status.st_mode & S_IFMT {
            case S_IFREG: .regular
            case S_IFDIR: .directory
            case S_IFLNK: .link
            default: .other
            }
        return FileStatus(
            kind: kind, permissions: status.st_mode & 0o7777, owner: status.st_uid,
            group: status.st_gid, size: Int64(status.st_size),
            modified: Int64(status.st_mtim.tv_sec), inode: UInt64(status.st_ino))
    }
}

extension HostFile {
    /// The names in a directory in its own order, without `.` and `..`. Unlike `Host.names`, which
    /// takes a directory that cannot be read for an empty one, it throws.
    public static func names(in directory: String) throws(HostError) -> [String] {
        guard let stream = unsafe opendir(directory) else {
            throw HostError(reading: directory, errno)
        }
        defer { unsafe closedir(stream) }
        var names: [String] = []
        errno = 0
        while let entry = unsafe readdir(stream) {
            let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
            errno = 0
        }
        guard errno == 0 else { throw HostError(reading: directory, errno) }
        return names
    }

    /// Not of what a symbolic link leads to: whoever owns the directory could put one there, and have
    /// root change any file (fchmodat(2)).
    public static func setPermissions(_ path: String, _ permissions: UInt32) throws(HostError) {
        guard unsafe fchmodat(AT_FDCWD, path, permissions, AT_SYMLINK_NOFOLLOW) == 0 else {
            throw HostError(writing: path, errno)
        }
    }

    /// lchown(2): for root only.
    public static func setOwner(_ path: String, user: UInt32, group: UInt32) throws(HostError) {
        guard unsafe lchown(path, user, group) == 0 else { throw HostError(writing: path, errno) }
    }

    /// rename(2): what has the new name is replaced.
    public static func rename(_ path: String, to target: String) throws(HostError) {
        guard unsafe Glibc.rename(path, target) == 0 else { throw HostError(writing: path, errno) }
    }

    /// Makes an empty file (0600) or sets the time of its last change to now (touch(1)).
    public static func touch(_ path: String) throws(HostError) {
        let flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW
        let number = unsafe open(path, flags, 0o600)
        guard number >= 0 else { throw HostError(writing: path, errno) }
        defer { close(number) }
        guard futimens(number, nil) == 0 else { throw HostError(writing: path, errno) }
    }
}

extension Host {
    /// The user that this process acts as.
    public static var user: UInt32 { geteuid() }

    /// "alice", or "user 1000" for one without a name.
    public static func userName(_ number: UInt32) -> String {
        guard let entry = unsafe getpwuid(number) else { return "user \(number)" }
        return unsafe String(cString: entry.pointee.pw_name)
    }
}
