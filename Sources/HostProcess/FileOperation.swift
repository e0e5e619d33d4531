// SPDX-License-Identifier: Apache-2.0
import Glibc

/// One step of a change to a directory that must survive a power failure. Names are within the
/// directory. Lists of them are values, so that a test can try what is left of them at every moment.
public enum FileOperation: Equatable, Sendable {
    /// A new file (0600) with these bytes; fails where there is one of that name.
    case create(String, [UInt8])
    /// The file's bytes are on disk.
    case synchronise(String)
    /// The file of that name, if there is one, is replaced.
    case rename(String, to: String)
    /// A second name; fails where there is a file of that name.
    case link(String, to: String)
    /// No error where there is none.
    case remove(String)
    /// The names are on disk (fsync(2)).
    case synchroniseDirectory

    /// Steps after which `name` has these bytes, whatever had it before: at every moment in between,
    /// and after a failure of power, that is the old file or the new one. `draft` is a name that
    /// nobody else uses; what a process left there that did not come to its end is removed.
    public static func replacement(
        of name: String, with bytes: [UInt8], draft: String
    ) -> [FileOperation] {
        [
            .remove(draft),
            .create(draft, bytes),
            .synchronise(draft),
            .rename(draft, to: name),
            .synchroniseDirectory,
        ]
    }

    /// Performs them in this order up to the first that fails, and then removes what they created
    /// and have not renamed. Errors name `path`. Throws ENOSPC or EDQUOT on a full disk.
    public static func perform(
        _ operations: [FileOperation], in directory: String, writing path: String
    ) throws(HostError) {
        var created: [String] = []
        for operation in operations {
            let failure = operation.perform(in: directory)
            guard failure == 0 else {
                for name in created { unsafe unlink("\(directory)/\(name)") }
                throw HostError(writing: path, failure)
            }
            switch operation {
            case .create(let name, _): created.append(name)
            case .rename(let name, _): created.removeAll { $0 == name }
            default: break
            }
        }
    }

    /// An errno or 0.
    private func perform(in directory: String) -> Int32 {
        func path(_ name: String) -> String { "\(directory)/\(name)" }
        switch self {
        case .create(let name, let bytes): return Self.create(path(name), bytes)
        case .synchronise(let name): return Self.synchronise(path(name), flags: O_RDONLY)
        case .rename(let name, let target):
            return unsafe Glibc.rename(path(name), path(target)) == 0 ? 0 : errno
        case .link(let name, let target):
            return unsafe Glibc.link(path(name), path(target)) == 0 ? 0 : errno
        case .remove(let name):
            return unsafe unlink(path(name)) == 0 || errno == ENOENT ? 0 : errno
        case .synchroniseDirectory:
            return Self.synchronise(directory, flags: O_RDONLY | O_DIRECTORY)
        }
    }

    private static func create(_ path: String, _ bytes: [UInt8]) -> Int32 {
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW
        let number = unsafe open(path, flags, 0o600)
        guard number >= 0 else { return errno }
        let failure = writeWhole(number, bytes)
        // close(2): some file systems tell of a full disk only now.
        let closing = close(number) == 0 ? 0 : errno
        guard failure != 0 || closing != 0 else { return 0 }
        unsafe unlink(path)
        return failure != 0 ? failure : closing
    }

    private static func synchronise(_ path: String, flags: Int32) -> Int32 {
        let number = unsafe open(path, flags | O_CLOEXEC)
        // A directory that may be written but not read cannot be opened for it.
        guard number >= 0 else { return flags & O_DIRECTORY != 0 && errno == EACCES ? 0 : errno }
        defer { close(number) }
        // EINVAL: a file system that has nothing to synchronise (fsync(2)).
        return fsync(number) == 0 || errno == EINVAL ? 0 : errno
    }
}
