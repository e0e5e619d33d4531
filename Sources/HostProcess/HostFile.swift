// SPDX-License-Identifier: Apache-2.0
import Glibc

/// A file that was read as a whole, and who else could have read it.
public struct HostFile: Sendable {
    /// May hold secrets: the caller erases them.
    public var bytes: [UInt8]
    /// Not a pipe, a terminal or a device: permissions mean something.
    public let isRegular: Bool
    /// The low 12 bits of st_mode (inode(7)).
    public let permissions: UInt32
    /// User id.
    public let owner: UInt32

    /// Anybody may read or write it, not only its owner and group.
    public var isOpenToAll: Bool { isRegular && permissions & 0o006 != 0 }
    /// Somebody besides root and this process's user decides what is in it.
    public var isWritableByOthers: Bool {
        permissions & 0o022 != 0 || (owner != 0 && owner != geteuid())
    }

    /// Reads all of it. Throws EFBIG when there are more than `limit` bytes.
    public static func read(_ path: String, limit: Int) throws(HostError) -> HostFile {
        let number = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { throw HostError(reading: path, errno) }
        defer { close(number) }
        return try read(number, name: path, limit: limit)
    }

    /// Reads standard input to its end. Throws EFBIG when there are more than `limit` bytes.
    public static func readStandardInput(limit: Int) throws(HostError) -> HostFile {
        try read(STDIN_FILENO, name: "standard input", limit: limit)
    }

    /// Reads a descriptor that this process was started with to its end. Throws EFBIG when there are
    /// more than `limit` bytes.
    public static func read(descriptor: Int32, limit: Int) throws(HostError) -> HostFile {
        try read(descriptor, name: "descriptor \(descriptor)", limit: limit)
    }

    private static func read(
        _ number: Int32, name: String, limit: Int
    ) throws(HostError) -> HostFile {
        var status = stat()
        guard unsafe fstat(number, &status) == 0 else { throw HostError(reading: name, errno) }
        let isRegular = status.st_mode & S_IFMT == S_IFREG
        // One byte more than a regular file has: its end is seen without growing.
        let expected = isRegular ? min(Int(status.st_size), limit) + 1 : 4096
        let bytes = try readBytes(number, name: name, expected: expected, limit: limit)
        return HostFile(
            bytes: bytes, isRegular: isRegular, permissions: status.st_mode & 0o7777,
            owner: status.st_uid)
    }

    /// Every buffer that was outgrown is erased.
    private static func readBytes(
        _ number: Int32, name: String, expected: Int, limit: Int
    ) throws(HostError) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: expected)
        var length = 0
        while true {
            if length == buffer.count {
                var larger = [UInt8](repeating: 0, count: min(2 * length, limit + 1))
                for index in buffer.indices { larger[index] = buffer[index] }
                zero(&buffer)
                buffer = larger
            }
            let count = unsafe buffer.withUnsafeMutableBytes { bytes in
                unsafe Glibc.read(number, bytes.baseAddress! + length, bytes.count - length)
            }
            if count < 0, errno == EINTR { continue }
            let failure: Int32? = count < 0 ? errno : length + count > limit ? EFBIG : nil
            if let failure {
                zero(&buffer)
                guard failure == EFBIG else { throw HostError(reading: name, failure) }
                throw HostError(
                    errno: EFBIG, "cannot read \(name): it has more than \(limit) bytes")
            }
            guard count > 0 else { break }
            length += count
        }
        buffer.removeLast(buffer.count - length)
        return buffer
    }

    private static func zero(_ bytes: inout [UInt8]) {
        unsafe bytes.withUnsafeMutableBytes { bytes in
            unsafe explicit_bzero(bytes.baseAddress!, bytes.count)
        }
    }
}

// MARK: writing

extension HostFile {
    /// Writes a new file (0600) beside `path` and gives it that name when it is complete and on
    /// disk: others see the old file or the new one. Throws EEXIST unless `replacing`.
    public static func write(
        _ bytes: [UInt8], to path: String, replacing: Bool
    ) throws(HostError) {
        let (directory, name) = split(path)
        let random = String(UInt64.random(in: .min ... .max), radix: 36)
        let temporary = ".\(name).\(random)"
        // Unlike rename(2), link(2) never replaces.
        let operations: [FileOperation] =
            replacing
            ? FileOperation.replacement(of: name, with: bytes, draft: temporary)
            : [
                .create(temporary, bytes), .synchronise(temporary), .link(temporary, to: name),
                .remove(temporary), .synchroniseDirectory,
            ]
        try FileOperation.perform(operations, in: directory, writing: path)
    }

    /// Removes what writers of `path` have left beside it that were killed before their end. Only for who
    /// knows that nobody writes it now.
    public static func removeDrafts(of path: String) {
        let (directory, name) = split(path)
        let prefix = ".\(name)."
        for draft in Host.names(in: directory)
        where draft.hasPrefix(prefix) && !draft.dropFirst(prefix.count).contains(".") {
            // One that stays costs nothing but its place.
            try? remove("\(directory)/\(draft)")
        }
    }

    private static func split(_ path: String) -> (directory: String, name: String) {
        guard let slash = path.lastIndex(of: "/") else { return (".", path) }
        let directory = slash == path.startIndex ? "/" : String(path[..<slash])
        return (directory, String(path[path.index(after: slash)...]))
    }

    /// Makes it unless it is there; `permissions` as in chmod(1), whatever the umask.
    public static func makeDirectory(_ path: String, permissions: UInt32) throws(HostError) {
        if unsafe mkdir(path, permissions) == 0 {
            // Whatever the umask: a daemon's is 077, and others go through this directory.
            if unsafe chmod(path, permissions) == 0 { return }
        } else if errno == EEXIST {
            return
        }
        throw HostError(writing: path, errno)
    }

    /// Whether there is something of that name that this process may look at.
    public static func exists(_ path: String) -> Bool { unsafe access(path, F_OK) == 0 }
}

/// Writes all of `bytes` to a descriptor that blocks; an errno or 0.
func writeWhole(_ number: Int32, _ bytes: [UInt8]) -> Int32 {
    unsafe bytes.withUnsafeBytes { bytes in
        var written = 0
        while written < bytes.count {
            let count = unsafe Glibc.write(
                number, bytes.baseAddress! + written, bytes.count - written)
            if count > 0 {
                written += count
            } else if count == 0 || errno != EINTR {
                return count == 0 ? EIO : errno
            }
        }
        return 0
    }
}

extension HostError {
    init(reading name: String, _ errno: Int32) {
        let advice =
            switch errno {
            case ENOENT: "; check the name"
            case EACCES, EPERM: "; run as a user who may read it, for instance root"
            case EISDIR: "; name a file"
            default: ""
            }
        self.init(errno: errno, "cannot read \(name): \(textOfErrno(errno))\(advice)")
    }

    init(writing name: String, _ errno: Int32) {
        let advice =
            switch errno {
            case ENOENT: "; make its directory first"
            case EACCES, EPERM: "; run as a user who may write there, for instance root"
            case ENOSPC, EDQUOT: "; make room first"
            default: ""
            }
        self.init(errno: errno, "cannot write \(name): \(textOfErrno(errno))\(advice)")
    }
}
