// SPDX-License-Identifier: Apache-2.0
import HostNetwork
import HostProcess
import Keeper
import TunnelPlan

/// Settings of the host that tunnels changed, in a file for each: what was there before the first,
/// and which tunnels need it. So the last that goes puts it back, in whatever order they go and
/// whoever died between. Keepers of several tunnels take turns: a lock is held from the first look to
/// the last write.
struct SettingRecord: Sendable {
    /// How long another keeper may take, in milliseconds: it writes two small files.
    private static let patience: Int64 = 10_000

    /// Of the files.
    let directory: String
    private let settings: HostSettings

    init(directory: String, settings: HostSettings = HostSettings()) {
        self.directory = directory
        self.settings = settings
    }

    private struct Record: Equatable {
        var original: UInt32
        var written: UInt32
        var tunnels: Set<String>

        mutating func forget(allBut links: Set<String>?, _ name: InterfaceName) {
            guard let links else { return }
            tunnels = tunnels.filter { links.contains($0) || $0 == name.description }
        }
    }

    /// As it is now; nil when this tunnel does not hold it.
    func value(
        of setting: HostSetting, for name: InterfaceName
    ) throws(KeeperFailure) -> UInt32? {
        guard let record = read(setting), record.tunnels.contains(name.description) else {
            return nil
        }
        return try askingNetwork { () throws(NetworkError) in try settings.read(setting) }
    }

    /// `links`: those that there are; nil: unknown. A tunnel without its link is dead and needs
    /// nothing.
    func set(
        _ setting: HostSetting, _ value: UInt32, for name: InterfaceName,
        links: Set<String>? = nil
    ) throws(KeeperFailure) {
        try locked { () throws(KeeperFailure) in
            let before = try askingNetwork { () throws(NetworkError) in try settings.read(setting) }
            var record = Record(original: before, written: value, tunnels: [])
            if var found = read(setting) {
                found.forget(allBut: links, name)
                // Whoever is left knows what was there before. When all are dead it is believed only
                // where the setting is as they left it: the number of a namespace may be another's
                // now.
                if !found.tunnels.isEmpty || before == found.written { record = found }
            }
            record.written = value
            record.tunnels.insert(name.description)
            // Before the deed: a crash between the two leaves something to undo.
            try write(record, setting)
            try askingNetwork { () throws(NetworkError) in _ = try settings.write(setting, value) }
        }
    }

    func restore(
        _ setting: HostSetting, for name: InterfaceName, links: Set<String>? = nil
    ) throws(KeeperFailure) {
        // Only this tunnel's keeper writes its name: without it there is nothing to wait for.
        guard read(setting)?.tunnels.contains(name.description) == true else { return }
        try locked { () throws(KeeperFailure) in
            guard var record = read(setting), record.tunnels.remove(name.description) != nil else {
                return
            }
            record.forget(allBut: links, name)
            guard record.tunnels.isEmpty else { return try write(record, setting) }
            try askingNetwork { () throws(NetworkError) in
                // Not over what somebody else has set since.
                guard try settings.read(setting) == record.written else { return }
                _ = try settings.write(setting, record.original)
            }
            try asking { () throws(HostError) in try HostFile.remove(path(setting)) }
        }
    }

    /// While no other keeper looks or writes.
    private func locked(_ body: () throws(KeeperFailure) -> Void) throws(KeeperFailure) {
        let lock = try asking { () throws(HostError) in
            try HostFile.makeDirectory(directory, permissions: 0o755)
            return try FileLock.take("\(directory)/settings.lock", waiting: Self.patience)
        }
        try body()
        _ = consume lock
    }

    // MARK: the file: the original value, the one written, then a name on each line

    private func path(_ setting: HostSetting) -> String {
        // Settings belong to a network namespace, /run to all of them.
        let namespace = Host.networkNamespace.map { ".\($0)" } ?? ""
        let word =
            switch setting {
            case .sourceValidMark: "src_valid_mark"
            case .forwardsIPv4: "ip_forward"
            case .forwardsIPv6: "ipv6_forwarding"
            case .sendsRedirects: "send_redirects"
            }
        return "\(directory)/\(word)\(namespace).setting"
    }

    private func read(_ setting: HostSetting) -> Record? {
        guard let file = try? HostFile.read(path(setting), limit: 1 << 16) else { return nil }
        let lines = String(decoding: file.bytes, as: UTF8.self).split(separator: "\n")
        guard lines.count >= 3, let original = UInt32(lines[0]), let written = UInt32(lines[1])
        else { return nil }
        return Record(
            original: original, written: written, tunnels: Set(lines[2...].map(String.init)))
    }

    private func write(_ record: Record, _ setting: HostSetting) throws(KeeperFailure) {
        let lines = ["\(record.original)", "\(record.written)"] + record.tunnels.sorted()
        let text = lines.map { $0 + "\n" }.joined()
        // Of a keeper that was killed: nobody else writes while the lock is held.
        HostFile.removeDrafts(of: path(setting))
        try asking { () throws(HostError) in
            try HostFile.write(Array(text.utf8), to: path(setting), replacing: true)
        }
    }
}

/// The host's errors as the keeper's.
private func asking<Value: ~Copyable>(
    _ body: () throws(HostError) -> Value
) throws(KeeperFailure) -> Value {
    do throws(HostError) {
        return try body()
    } catch {
        throw KeeperFailure(error.kind == .busy ? .busy : .failed, error.description)
    }
}
