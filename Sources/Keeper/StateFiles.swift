// SPDX-License-Identifier: Apache-2.0
// What a keeper leaves for the next one.
//
// Below /run, gone with the machine, as is the tunnel:
//   IFNAME.conf      the last good configuration
//   IFNAME.pending   the one after it: being applied, or waiting for a confirmation
// Below /var/lib, for a tunnel that comes back with the machine (C64):
//   tunnels/IFNAME.conf   the last good configuration
// and for every tunnel, whether it comes back or not (C78):
//   tunnels/IFNAME.clock  until when the clock had come when it sent its latest handshake
import HostProcess
import TunnelPlan
import WireGuard

struct StateFiles: Sendable {
    static let defaultDirectory = "/run/nexusguard"
    static let defaultPersistentDirectory = "/var/lib/nexusguard"

    let directory: String
    let persistentDirectory: String
    let name: InterfaceName

    init(
        directory: String = defaultDirectory,
        persistentDirectory: String = defaultPersistentDirectory, name: InterfaceName
    ) {
        self.directory = directory
        self.persistentDirectory = persistentDirectory
        self.name = name
    }

    var confirmedPath: String { "\(directory)/\(name).conf" }
    var pendingPath: String { "\(directory)/\(name).pending" }
    var lockPath: String { "\(directory)/\(name).lock" }
    var socketPath: String { "\(directory)/\(name).keeper.sock" }
    private var tunnelsDirectory: String { "\(persistentDirectory)/tunnels" }
    var persistentPath: String { "\(tunnelsDirectory)/\(name).conf" }
    var clockPath: String { "\(tunnelsDirectory)/\(name).clock" }

    /// Of a keeper that was killed as it wrote: with the keys of a configuration in them. For who holds the
    /// lock.
    func removeDrafts() {
        for path in [confirmedPath, pendingPath, persistentPath, clockPath] {
            HostFile.removeDrafts(of: path)
        }
    }

    // MARK: while the machine runs

    /// Writes what is different from `old`. `pending` comes first and goes last: with it on disk a
    /// death between the two costs nothing.
    func save(_ new: Stored, replacing old: Stored) throws(HostError) {
        if let phase = new.phase { try write(new.pending, phase, to: pendingPath) }
        if new.confirmed != old.confirmed || new.phase == nil {
            if let confirmed = new.confirmed {
                try write(confirmed, nil, to: confirmedPath)
            } else {
                try HostFile.remove(confirmedPath)
            }
        }
        if new.phase == nil { try HostFile.remove(pendingPath) }
    }

    /// Throws when something is there that this version cannot read.
    func load() throws(KeeperFailure) -> Stored {
        var stored = Stored()
        if let (intent, _) = try read(confirmedPath) { stored.confirmed = intent }
        if let (intent, phase) = try read(pendingPath) {
            stored.pending = intent
            stored.phase = phase
        }
        return stored
    }

    // MARK: beyond that

    /// What comes back with the machine; nil: nothing.
    func savePersistent(_ intent: Intent?) throws(HostError) {
        guard let intent else { return try HostFile.remove(persistentPath) }
        try makeTunnelsDirectory()
        try write(intent, nil, to: persistentPath)
    }

    private func makeTunnelsDirectory() throws(HostError) {
        // Whatever the agent and the hub keep beside it is theirs, this is root's.
        try HostFile.makeDirectory(persistentDirectory, permissions: 0o755)
        try HostFile.makeDirectory(tunnelsDirectory, permissions: 0o700)
    }

    /// nil: nothing was kept. Throws for a file that is empty, cut off or damaged (C23), and for one
    /// that others can write.
    func loadPersistent() throws(KeeperFailure) -> Intent? {
        try read(persistentPath, isPersistent: true)?.0
    }

    // MARK: the clock

    func saveClock(_ record: ClockRecord) throws(HostError) {
        try makeTunnelsDirectory()
        try HostFile.write(
            Array("\(Self.clockMark) \(record.seconds) \(record.publicKey.base64)\n".utf8),
            to: clockPath, replacing: true)
    }

    /// nil: nothing was kept, or nothing that can be believed: then the clock is.
    func loadClock() -> ClockRecord? {
        guard let file = try? HostFile.read(clockPath, limit: 256), !file.isWritableByOthers else {
            return nil
        }
        let text = String(decoding: file.bytes, as: UTF8.self)
        let words = text.split(whereSeparator: \.isWhitespace)
        guard words.count == 4, text.hasPrefix(Self.clockMark), text.hasSuffix("\n"),
            let seconds = Int64(words[2]), seconds > 0,
            let key = try? PublicKey(base64: String(words[3]))
        else { return nil }
        return ClockRecord(publicKey: key, seconds: seconds)
    }

    private static let clockMark = "nexusguard-clock 1"

    // MARK: one file

    private func write(
        _ intent: Intent?, _ phase: Stored.Phase?, to path: String
    ) throws(HostError) {
        var text = StoredText.write(intent, phase)
        defer { erase(&text) }
        try HostFile.write(text, to: path, replacing: true)
    }

    /// nil: no such file. An intent of nil: nothing was running.
    private func read(
        _ path: String, isPersistent: Bool = false
    ) throws(KeeperFailure) -> (Intent?, Stored.Phase?)? {
        guard HostFile.exists(path) else { return nil }
        var file: HostFile
        do throws(HostError) {
            file = try HostFile.read(path, limit: ConfigurationFile.sizeLimit + forwardLimit * 128)
        } catch {
            throw KeeperFailure(error)
        }
        defer { erase(&file.bytes) }
        // The agent and the hub may make files beside it, and its commands run as root (C26).
        guard !file.isWritableByOthers else {
            throw unreadable(path, "others than root can change it")
        }
        do throws(StoredTextError) {
            return try StoredText.read(file.bytes, file: path, needsSum: isPersistent)
        } catch {
            throw unreadable(path, error.reason)
        }
    }

    private func unreadable(_ path: String, _ why: String) -> KeeperFailure {
        KeeperFailure(
            .failed,
            "cannot read what the last keeper of \(name) left in \(path): \(why); remove the file "
                + "and apply the configuration again")
    }
}

extension KeeperFailure {
    init(_ error: HostError) {
        let kind: Kind =
            switch error.kind {
            case .noPermission: .permission
            case .busy: .busy
            case .other: .failed
            }
        self.init(kind, error.description)
    }
}
