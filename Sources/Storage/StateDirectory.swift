// SPDX-License-Identifier: Apache-2.0
import HostProcess

/// A directory (0700) whose files (0600) only their owner reads, as agent and hub keep their state
/// in. Opening it makes it so (C94, C95): permissions that are too wide are corrected and said;
/// what belongs to somebody else is refused.
public struct StateDirectory: Sendable {
    public let path: String
    /// User id of the directory and all in it.
    public let owner: UInt32
    /// What was corrected, a line for each. A secret that others could read is to be thought known.
    public let corrections: [String]

    /// Makes `path` where it is not there, for `owner` (this process's user when nil), whose group
    /// is `group`; also its parent (0755), but nothing above. Only root makes one for somebody else. Throws
    /// `.notPrivate` and `.noPermission`.
    public init(
        _ path: String, owner: UInt32? = nil, group: UInt32? = nil
    ) throws(StorageError) {
        let owner = owner ?? Host.user
        self.path = path
        self.owner = owner
        if try status(of: path) == nil {
            try asking { () throws(HostError) in
                if let slash = path.lastIndex(of: "/"), slash != path.startIndex {
                    try HostFile.makeDirectory(String(path[..<slash]), permissions: 0o755)
                }
                try HostFile.makeDirectory(path, permissions: 0o700)
                if owner != Host.user {
                    try HostFile.setOwner(path, user: owner, group: group ?? owner)
                }
            }
        }
        corrections = try Self.correct(path, owner)
    }

    /// An existing directory, for looking only: its owner, or root. Throws `.missing`.
    public init(existing path: String) throws(StorageError) {
        guard let status = try status(of: path), status.kind == .directory else {
            throw StorageError(
                .missing, "there is no state directory \(path); name the right one with --state")
        }
        guard status.owner == Host.user || Host.user == 0 else {
            throw StorageError(
                .noPermission,
                "\(path) belongs to \(Host.userName(status.owner)); run as root or as that user")
        }
        self.path = path
        owner = status.owner
        corrections = []
    }

    public func file(_ name: String) -> String { "\(path)/\(name)" }

    /// A directory in it, with the same rules.
    public func directory(_ name: String) throws(StorageError) -> StateDirectory {
        try StateDirectory(file(name), owner: owner)
    }
}

private func status(of path: String) throws(StorageError) -> FileStatus? {
    try asking { () throws(HostError) in try FileStatus.of(path) }
}

// MARK: permissions

extension StateDirectory {
    private static func correct(_ path: String, _ owner: UInt32) throws(StorageError) -> [String] {
        guard let status = try status(of: path) else {
            throw StorageError(.missing, "\(path) was removed while it was opened; try again")
        }
        guard status.kind == .directory else {
            throw StorageError(.notPrivate, "\(path) is no directory; move it away")
        }
        try checkOwner(path, status, owner)
        var corrections: [String] = []
        if status.permissions & 0o077 != 0 {
            corrections.append(try narrow(path, status, to: 0o700))
        }
        for name in Host.names(in: path).sorted() {
            let path = "\(path)/\(name)"
            guard let status = try Storage.status(of: path) else { continue }
            guard status.kind != .link else {
                throw StorageError(
                    .notPrivate, "\(path) is a symbolic link; move what it leads to in its place")
            }
            // Root may have a file there, such as the mark of a reader of the log.
            guard status.owner != 0 || owner == 0 else { continue }
            try checkOwner(path, status, owner)
            guard status.kind == .regular, status.permissions & 0o077 != 0 else { continue }
            corrections.append(try narrow(path, status, to: 0o600))
        }
        return corrections
    }

    private static func checkOwner(
        _ path: String, _ status: FileStatus, _ owner: UInt32
    ) throws(StorageError) {
        guard status.owner != owner else { return }
        let found = Host.userName(status.owner)
        let wanted = Host.userName(owner)
        throw StorageError(
            .notPrivate,
            "\(path) belongs to \(found), not to \(wanted); run chown \(owner) on it if nobody has "
                + "put it there")
    }

    private static func narrow(
        _ path: String, _ status: FileStatus, to permissions: UInt32
    ) throws(StorageError) -> String {
        try asking { () throws(HostError) in try HostFile.setPermissions(path, permissions) }
        let before = String(status.permissions, radix: 8)
        let after = String(permissions, radix: 8)
        return "\(path) was open to others (\(before)); its permissions are \(after) now"
    }
}
