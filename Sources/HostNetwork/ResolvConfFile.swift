// SPDX-License-Identifier: Apache-2.0
import Glibc
import TunnelPlan

/// /etc/resolv.conf where nobody manages it: changed while a tunnel is up, and put back exactly.
/// Several tunnels, each with its own keeper, share the file: a lock orders them.
struct ResolvConfFile: Sendable {
    var path: String
    /// Survives a restart of the host: what we wrote does so too (C32).
    var statePath: String
    var lockPath: String

    /// Puts the tunnel's servers in. Somebody's edit since counts as what is to be put back.
    func apply(_ settings: DNSSettings, for name: InterfaceName) throws(NetworkError) {
        let lock = try FileLock(lockPath)
        defer { lock.release() }
        let now = try entry()
        var state = try load() ?? ResolvConfState(original: now)
        if !state.isOurs(now) { state.original = now }
        state.set(settings, for: name)
        try write(&state)
    }

    /// Takes the tunnel out; the last one puts back what was there, unless somebody wrote since:
    /// theirs stays. Nothing happens for a tunnel that never asked.
    func revert(_ name: InterfaceName) throws(NetworkError) {
        try remove { $0 == name }
    }

    /// Does so for tunnels that did not come to revert: their keeper or the host was killed.
    func recover(isAlive: (InterfaceName) -> Bool) throws(NetworkError) {
        try remove { !isAlive($0) }
    }

    private func remove(_ isGone: (InterfaceName) -> Bool) throws(NetworkError) {
        // Without a state there is nothing of ours, and no directory for a lock is made.
        guard unsafe access(statePath, F_OK) == 0 || SmallFile.hasDraft(of: statePath) else {
            return
        }
        let lock = try FileLock(lockPath)
        defer { lock.release() }
        for file in [statePath, path] { SmallFile.removeDraft(of: file) }
        guard var state = try load(), state.tunnels.contains(where: { isGone($0.name) }) else {
            return
        }
        for tunnel in state.tunnels where isGone(tunnel.name) { state.remove(tunnel.name) }
        let isOurs = state.isOurs(try entry())
        if !state.tunnels.isEmpty {
            if isOurs { try write(&state) } else { try store(state) }
            return
        }
        if isOurs { try restore(state.original) }
        unsafe unlink(statePath)
    }

    /// Whether the file is as we wrote it for these settings.
    func isApplied(_ settings: DNSSettings, for name: InterfaceName) -> Bool {
        guard let state = try? load(), let now = try? entry() else { return false }
        return state.tunnels.contains { $0.name == name && $0.settings == settings }
            && now.bytes == state.content(stateFile: statePath) && state.isOurs(now)
    }

    // MARK: the edge

    /// The state first: at any moment after it, a start finds the way back.
    private func write(_ state: inout ResolvConfState) throws(NetworkError) {
        let content = state.content(stateFile: statePath)
        state.willWrite(content)
        try store(state)
        if case .file(_, let mode, let user, let group) = state.original {
            try put(content, mode: mode, owner: (user, group))
        } else {
            try put(content, mode: 0o644, owner: nil)
        }
    }

    private func restore(_ original: ResolvConfEntry) throws(NetworkError) {
        switch original {
        case .absent:
            guard unsafe unlink(path) == 0 || errno == ENOENT else { throw failed(errno) }
        case .file(let bytes, let mode, let user, let group):
            try put(bytes, mode: mode, owner: (user, group))
        case .link(let target, _):
            do throws(SmallFile.Failure) {
                try SmallFile.replace(path, linkTo: target)
            } catch {
                throw failed(error.errno)
            }
        }
    }

    private func put(
        _ bytes: [UInt8], mode: UInt32, owner: (user: UInt32, group: UInt32)?
    ) throws(NetworkError) {
        do throws(SmallFile.Failure) {
            do throws(SmallFile.Failure) {
                try SmallFile.replace(path, bytes, mode: mode, owner: owner)
            } catch {
                // A container's file is a mount point, which cannot be exchanged.
                guard error.errno == EBUSY else { throw error }
                try SmallFile.overwrite(path, bytes, truncating: true)
            }
        } catch {
            throw failed(error.errno)
        }
    }

    func entry() throws(NetworkError) -> ResolvConfEntry {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else {
            if errno == ENOENT { return .absent }
            throw failed(errno)
        }
        do throws(SmallFile.Failure) {
            if status.st_mode & S_IFMT == S_IFLNK {
                let target = try linkTarget()
                return .link(target: target, bytes: (try? SmallFile.read(path)) ?? [])
            }
            return .file(
                bytes: try SmallFile.read(path), mode: status.st_mode & 0o7777,
                user: status.st_uid, group: status.st_gid)
        } catch {
            throw failed(error.errno)
        }
    }

    private func linkTarget() throws(SmallFile.Failure) -> String {
        var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let length = unsafe buffer.withUnsafeMutableBytes { bytes in
            unsafe readlink(path, bytes.baseAddress!, bytes.count)
        }
        guard length > 0 else { throw SmallFile.Failure(errno: errno) }
        return String(decoding: buffer[..<length], as: UTF8.self)
    }

    private func load() throws(NetworkError) -> ResolvConfState? {
        let bytes: [UInt8]
        do throws(SmallFile.Failure) {
            bytes = try SmallFile.read(statePath)
        } catch {
            if error.errno == ENOENT { return nil }
            throw NetworkError(
                .other, errno: error.errno,
                "cannot read \(statePath): \(textOfErrno(error.errno))")
        }
        guard let state = ResolvConfState(bytes) else {
            throw NetworkError(
                .other, "\(statePath) is damaged; check \(path), then remove \(statePath)")
        }
        return state
    }

    private func store(_ state: ResolvConfState) throws(NetworkError) {
        makeDirectory(of: statePath, mode: 0o700)
        do throws(SmallFile.Failure) {
            try SmallFile.replace(statePath, state.serialised, mode: 0o600)
        } catch {
            throw NetworkError(
                error.errno == EACCES ? .permission : .other, errno: error.errno,
                "cannot write \(statePath): \(textOfErrno(error.errno)); \(path) is left alone")
        }
    }

    private func failed(_ errno: Int32) -> NetworkError {
        let advice =
            switch errno {
            case EACCES: "; it needs root"
            case EPERM: "; is the file immutable (lsattr)?"
            case EROFS: "; the file system is read-only: set the servers elsewhere"
            default: ""
            }
        return NetworkError(
            errno == EACCES || errno == EPERM ? .permission : .other, errno: errno,
            "cannot change \(path): \(textOfErrno(errno))\(advice)")
    }
}

/// Makes the directory that `path` is in, unless it is there; who needs it sees the failure.
func makeDirectory(of path: String, mode: UInt32) {
    guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return }
    _ = unsafe mkdir(String(path[..<slash]), mode)
}

/// flock(2): it ends with its process.
struct FileLock {
    private let number: Int32

    /// Waits a second at most: nobody holds it for longer than a few writes.
    init(_ path: String) throws(NetworkError) {
        makeDirectory(of: path, mode: 0o755)
        number = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard number >= 0 else { throw Self.error(path, errno) }
        for _ in 0..<100 {
            if flock(number, LOCK_EX | LOCK_NB) == 0 { return }
            guard errno == EWOULDBLOCK || errno == EINTR else { break }
            usleep(10_000)
        }
        let failure = errno
        close(number)
        throw Self.error(path, failure)
    }

    func release() { close(number) }

    private static func error(_ path: String, _ errno: Int32) -> NetworkError {
        NetworkError(
            errno == EWOULDBLOCK ? .busy : errno == EACCES ? .permission : .other, errno: errno,
            "cannot lock \(path): \(textOfErrno(errno))")
    }
}
