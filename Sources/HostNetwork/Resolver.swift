// SPDX-License-Identifier: Apache-2.0
import Glibc
import TunnelPlan
import WireGuard

/// Who decides which servers this host asks.
public enum ResolverManager: Equatable, Sendable, CustomStringConvertible {
    case systemdResolved
    /// resolvconf(8): the program's path.
    case resolvconf(String)
    /// Nobody: the file itself.
    case file(String)

    public var description: String {
        switch self {
        case .systemdResolved: "systemd-resolved"
        case .resolvconf(let path): path
        case .file(let path): path
        }
    }
}

/// The host's resolver, told about tunnels. A failure here is worth a warning and never a reason to
/// take a tunnel down (C33). Nothing waits for the network.
public struct Resolver: Sendable {
    /// Where things are; others than the defaults are for tests.
    public struct Paths: Sendable {
        public var resolvConf = "/etc/resolv.conf"
        public var nameServiceSwitch = "/etc/nsswitch.conf"
        public var resolvconfPrograms = ["/usr/sbin/resolvconf", "/sbin/resolvconf"]
        /// Where it is there, resolvconf is Debian's.
        public var interfaceOrder = "/etc/resolvconf/interface-order"
        /// Of the D-Bus; nil: the system's.
        public var busAddress: String?
        /// What the file was before: it survives a restart of the host, as the file does (C32).
        public var state = "/var/lib/nexusguard/resolv.conf.state"
        /// For records of what tunnels asked for, and the lock.
        public var run = "/run/nexusguard"

        public init() {}
    }

    private let paths: Paths

    public init(_ paths: Paths = Paths()) { self.paths = paths }

    private var file: ResolvConfFile {
        ResolvConfFile(
            path: paths.resolvConf, statePath: paths.state,
            lockPath: "\(paths.run)/resolv.conf.lock")
    }

    private func resolvconf(_ path: String) -> ResolvconfProgram {
        ResolvconfProgram(
            path: path, ordersByName: unsafe access(paths.interfaceOrder, F_OK) == 0)
    }

    /// Who it is now.
    public func manager() -> ResolverManager {
        let entry = (try? file.entry()) ?? .absent
        return Self.choose(
            resolvedRuns: ResolvedClient(busAddress: paths.busAddress) != nil, entry: entry,
            nameServiceSwitch: (try? SmallFile.read(paths.nameServiceSwitch)) ?? [],
            resolvconf: ResolvconfProgram.find(paths.resolvconfPrograms)?.path,
            path: paths.resolvConf)
    }

    /// resolved counts only where lookups lead to it: by the file or by nss-resolve(8). It may run
    /// and be asked by nobody.
    static func choose(
        resolvedRuns: Bool, entry: ResolvConfEntry, nameServiceSwitch: [UInt8],
        resolvconf: String?, path: String
    ) -> ResolverManager {
        if resolvedRuns, leadsToResolved(entry) || usesResolve(nameServiceSwitch) {
            return .systemdResolved
        }
        return resolvconf.map { .resolvconf($0) } ?? .file(path)
    }

    /// The stub listeners and files of systemd-resolved(8).
    private static func leadsToResolved(_ entry: ResolvConfEntry) -> Bool {
        if case .link(let target, _) = entry, target.text(after: "systemd/resolve/") != nil {
            return true
        }
        return words(entry.bytes).contains { line in
            line.count == 2 && line[0] == "nameserver"
                && (line[1] == "127.0.0.53" || line[1] == "127.0.0.54")
        }
    }

    /// `hosts: … resolve …` of nsswitch.conf(5).
    private static func usesResolve(_ bytes: [UInt8]) -> Bool {
        words(bytes).contains { $0.first == "hosts:" && $0.contains("resolve") }
    }

    private static func words(_ bytes: [UInt8]) -> [[Substring]] {
        String(decoding: bytes, as: UTF8.self).split(separator: "\n").map {
            $0.split { $0 == " " || $0 == "\t" }
        }
    }
}

// MARK: a tunnel's settings

extension Resolver {
    /// Tells the manager; again with the same settings is no harm. `index` is the link's. Returns
    /// who was told.
    @discardableResult
    public func apply(
        _ settings: DNSSettings, for name: InterfaceName, index: UInt32
    ) throws(NetworkError) -> ResolverManager {
        let manager = manager()
        if let record = record(name), record.manager != manager {
            try undo(record.manager, name, index: index)
        }
        // Before the deed: a restart after a crash between the two has something to undo.
        try store(Record(manager: manager, settings: settings), for: name)
        switch manager {
        case .systemdResolved:
            guard let client = ResolvedClient(busAddress: paths.busAddress) else {
                throw NetworkError(.notFound, "systemd-resolved went away; it is tried again")
            }
            try client.set(ResolvedLink(settings), index: index)
        case .resolvconf(let path):
            try resolvconf(path).add(settings, for: name)
        case .file: try file.apply(settings, for: name)
        }
        return manager
    }

    /// Takes back what `apply` did, also in the life of a former keeper. `index`: the link's, nil
    /// when it is gone.
    public func revert(_ name: InterfaceName, index: UInt32?) throws(NetworkError) {
        if let record = record(name) { try undo(record.manager, name, index: index) }
        // The record does not survive a restart of the host; the file does.
        try file.revert(name)
        unsafe unlink(recordPath(name))
        SmallFile.removeDraft(of: recordPath(name))
    }

    /// What the resolver has for the tunnel; nil when nothing was applied or it is no longer so.
    public func current(_ name: InterfaceName, index: UInt32) -> DNSSettings? {
        guard let record = record(name), isApplied(record, name, index: index) else { return nil }
        return record.settings
    }

    /// Whether the resolver has just these.
    public func isApplied(
        _ settings: DNSSettings, for name: InterfaceName, index: UInt32
    ) -> Bool {
        current(name, index: index) == settings
    }

    /// Puts back what tunnels left behind that are no more: for each start (C32).
    public func recover(isAlive: (InterfaceName) -> Bool) throws(NetworkError) {
        try file.recover(isAlive: isAlive)
    }

    private func undo(
        _ manager: ResolverManager, _ name: InterfaceName, index: UInt32?
    ) throws(NetworkError) {
        switch manager {
        case .systemdResolved:
            // Without the link, or without the service, its settings are gone.
            guard let index, let client = ResolvedClient(busAddress: paths.busAddress) else {
                return
            }
            try client.revert(index: index)
        case .resolvconf(let path):
            guard unsafe access(path, X_OK) == 0 else { return }
            try resolvconf(path).remove(name)
        case .file: try file.revert(name)
        }
    }

    private func isApplied(_ record: Record, _ name: InterfaceName, index: UInt32) -> Bool {
        switch record.manager {
        case .systemdResolved:
            guard let client = ResolvedClient(busAddress: paths.busAddress) else { return false }
            return (try? client.link(index: index)) == ResolvedLink(record.settings)
        case .resolvconf(let path):
            return (try? resolvconf(path).has(name)) ?? false
        case .file: return file.isApplied(record.settings, for: name)
        }
    }
}

// MARK: records

extension Resolver {
    private struct Record {
        var manager: ResolverManager
        var settings: DNSSettings
    }

    private func recordPath(_ name: InterfaceName) -> String { "\(paths.run)/\(name).dns" }

    private func store(_ record: Record, for name: InterfaceName) throws(NetworkError) {
        let path = recordPath(name)
        makeDirectory(of: path, mode: 0o755)
        let heading =
            switch record.manager {
            case .systemdResolved: "resolved"
            case .resolvconf(let program): "resolvconf \(program)"
            case .file: "file"
            }
        do throws(SmallFile.Failure) {
            try SmallFile.replace(
                path, Array("\(heading)\n".utf8) + record.settings.lines, mode: 0o644)
        } catch {
            throw NetworkError(
                error.errno == EACCES ? .permission : .other, errno: error.errno,
                "cannot write \(path): \(textOfErrno(error.errno)); the resolver is left alone")
        }
    }

    private func record(_ name: InterfaceName) -> Record? {
        guard let bytes = try? SmallFile.read(recordPath(name)) else { return nil }
        let lines = bytes.split(separator: UInt8(ascii: "\n"))
        guard let heading = lines.first else { return nil }
        let words = String(decoding: heading, as: UTF8.self).split(separator: " ", maxSplits: 1)
        let manager: ResolverManager
        switch (words.first, words.count) {
        case ("resolved", 1): manager = .systemdResolved
        case ("resolvconf", 2): manager = .resolvconf(String(words[1]))
        case ("file", 1): manager = .file(paths.resolvConf)
        default: return nil
        }
        var settings = DNSSettings()
        for line in lines.dropFirst() where !settings.read(Array(line)) { return nil }
        return Record(manager: manager, settings: settings)
    }
}
