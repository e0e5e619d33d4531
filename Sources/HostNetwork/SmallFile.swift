// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Files of a few lines: settings of the kernel, the resolver's. Errors are an errno.
enum SmallFile {
    /// No file that is read here is larger.
    static let limit = 1 << 20

    struct Failure: Error, Equatable {
        var errno: Int32
    }

    /// Follows symbolic links. Fails with EFBIG over the limit, in bytes.
    static func read(_ path: String, limit: Int = limit) throws(Failure) -> [UInt8] {
        let number = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { throw Failure(errno: errno) }
        defer { close(number) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = unsafe buffer.withUnsafeMutableBytes { buffer in
                unsafe Glibc.read(number, buffer.baseAddress, buffer.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Failure(errno: errno) }
            guard count > 0 else { return bytes }
            bytes += buffer[..<count]
            guard bytes.count <= limit else { throw Failure(errno: EFBIG) }
        }
    }

    /// Writes into the file that is there: what /proc/sys wants, and the only way with a file that
    /// is a mount point. `truncating`: nothing of the old content stays.
    static func overwrite(
        _ path: String, _ bytes: [UInt8], truncating: Bool
    ) throws(Failure) {
        let flags = O_WRONLY | O_CLOEXEC | (truncating ? O_TRUNC : 0)
        let number = unsafe open(path, flags)
        guard number >= 0 else { throw Failure(errno: errno) }
        defer { close(number) }
        try writeAll(number, bytes)
    }

    /// Others see the old file or the new one, also after a power failure. `mode` as in chmod(2);
    /// `owner` is kept if this process may. One process at a time: the caller sees to that.
    static func replace(
        _ path: String, _ bytes: [UInt8], mode: UInt32, owner: (user: UInt32, group: UInt32)? = nil
    ) throws(Failure) {
        let temporary = try makeTemporary(beside: path, bytes, mode: mode, owner: owner)
        guard unsafe rename(temporary, path) == 0 else {
            let failure = errno
            unsafe unlink(temporary)
            throw Failure(errno: failure)
        }
        synchroniseDirectory(of: path)
    }

    /// The same for a symbolic link.
    static func replace(_ path: String, linkTo target: String) throws(Failure) {
        let temporary = draft(of: path)
        unsafe unlink(temporary)
        guard unsafe symlink(target, temporary) == 0 else { throw Failure(errno: errno) }
        guard unsafe rename(temporary, path) == 0 else {
            let failure = errno
            unsafe unlink(temporary)
            throw Failure(errno: failure)
        }
        synchroniseDirectory(of: path)
    }

    /// What a process that was killed had half written.
    static func removeDraft(of path: String) { unsafe unlink(draft(of: path)) }

    static func hasDraft(of path: String) -> Bool { unsafe access(draft(of: path), F_OK) == 0 }

    /// Always the same, so that the next to write takes the place of one that was killed.
    private static func draft(of path: String) -> String { "\(path).nexusguard" }

    private static func makeTemporary(
        beside path: String, _ bytes: [UInt8], mode: UInt32,
        owner: (user: UInt32, group: UInt32)?
    ) throws(Failure) -> String {
        let temporary = draft(of: path)
        unsafe unlink(temporary)
        let number = unsafe open(
            temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard number >= 0 else { throw Failure(errno: errno) }
        defer { close(number) }
        do throws(Failure) {
            try writeAll(number, bytes)
            if let owner { _ = fchown(number, owner.user, owner.group) }
            guard fchmod(number, mode) == 0, fsync(number) == 0 else {
                throw Failure(errno: errno)
            }
        } catch {
            unsafe unlink(temporary)
            throw error
        }
        return temporary
    }

    private static func writeAll(_ number: Int32, _ bytes: [UInt8]) throws(Failure) {
        var start = 0
        while start < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { bytes in
                unsafe write(number, bytes.baseAddress! + start, bytes.count - start)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Failure(errno: count < 0 ? errno : EIO) }
            start += count
        }
    }

    private static func synchroniseDirectory(of path: String) {
        let directory = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        let number = unsafe open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard number >= 0 else { return }
        fsync(number)
        close(number)
    }
}
