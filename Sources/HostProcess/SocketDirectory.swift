// SPDX-License-Identifier: Apache-2.0

/// The directory of a socket that a program without rights makes and removes: its own, since the one
/// above belongs to root.
public enum SocketDirectory {
    /// Makes it where it is missing (0750, `owner`'s when root asks), and the one above (0755).
    public static func make(for socketPath: String, owner: User) throws(HostError) {
        guard let directory = parent(of: socketPath), !HostFile.exists(directory) else { return }
        if let above = parent(of: directory) {
            try HostFile.makeDirectory(above, permissions: 0o755)
        }
        try HostFile.makeDirectory(directory, permissions: 0o750)
        guard User.isRoot else { return }
        try HostFile.setOwner(directory, user: owner.number, group: owner.group)
    }

    /// nil: none is named, or it is the root.
    private static func parent(of path: String) -> String? {
        guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return nil }
        return String(path[..<slash])
    }
}
