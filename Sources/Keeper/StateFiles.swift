// SPDX-License-Identifier: Apache-2.0
// What a keeper leaves for the next one, below /run: gone with the machine, as is the tunnel.
//
//   IFNAME.conf      the last good configuration
//   IFNAME.pending   the one after it: being applied, or waiting for a confirmation
//
// Both are configuration files; a comment on their first line has the rest.
import HostProcess
import TunnelPlan
import WireGuard

struct StateFiles: Sendable {
    static let defaultDirectory = "/run/nexusguard"
    private static let mark = "# nexusguard-keeper 1"

    let directory: String
    let name: InterfaceName

    var confirmedPath: String { "\(directory)/\(name).conf" }
    var pendingPath: String { "\(directory)/\(name).pending" }
    var lockPath: String { "\(directory)/\(name).lock" }
    var socketPath: String { "\(directory)/\(name).keeper.sock" }

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

    private func write(
        _ intent: Intent?, _ phase: Stored.Phase?, to path: String
    ) throws(HostError) {
        var text = Array("\(Self.mark) \(Self.describe(intent, phase))\n".utf8)
        var configuration = intent?.configuration.write() ?? []
        text.reserveCapacity(text.count + configuration.count)
        text += configuration
        defer {
            erase(&text)
            erase(&configuration)
        }
        try HostFile.write(text, to: path, replacing: true)
    }

    private static func describe(_ intent: Intent?, _ phase: Stored.Phase?) -> String {
        let state =
            switch phase {
            case nil: "good"
            case .applying: "applying"
            case .unconfirmed(let deadline): "unconfirmed:\(deadline)"
            case .ending: "ending"
            }
        guard let intent else { return "\(state) none refuse" }
        return "\(state) \(intent.backend?.rawValue ?? "auto") \(intent.hooks.rawValue)"
    }

    /// nil: no such file. An intent of nil: nothing was running.
    private func read(_ path: String) throws(KeeperFailure) -> (Intent?, Stored.Phase?)? {
        guard HostFile.exists(path) else { return nil }
        var file: HostFile
        do throws(HostError) {
            file = try HostFile.read(path, limit: ConfigurationFile.sizeLimit + 4096)
        } catch {
            throw KeeperFailure(error)
        }
        defer { erase(&file.bytes) }
        let end = file.bytes.firstIndex(of: 0x0A) ?? file.bytes.count
        let head = String(decoding: file.bytes[..<end], as: UTF8.self)
        guard head.hasPrefix(Self.mark + " "),
            let (phase, hasIntent, backend, hooks) = Self.parse(
                head.dropFirst(Self.mark.count + 1).split(separator: " "))
        else { throw unreadable(path, "its first line is not one of this program's") }
        guard hasIntent else { return (nil, phase) }
        do throws(ConfigurationError) {
            // What the lenient reader let in, it must let in again.
            let parsed = try ConfigurationFile.parse(
                file.bytes.span, file: path, lenient: true)
            return (Intent(parsed.configuration, backend: backend, hooks: hooks), phase)
        } catch {
            throw unreadable(path, error.description)
        }
    }

    private static func parse(
        _ words: [Substring]
    ) -> (Stored.Phase?, hasIntent: Bool, BackendKind?, HookPolicy)? {
        guard words.count == 3, let hooks = HookPolicy(rawValue: String(words[2])) else {
            return nil
        }
        let backend = BackendKind(rawValue: String(words[1]))
        guard backend != nil || words[1] == "auto" || words[1] == "none" else { return nil }
        let phase: Stored.Phase?
        switch words[0] {
        case "good": phase = nil
        case "applying": phase = .applying
        case "ending": phase = .ending
        default:
            let parts = words[0].split(separator: ":")
            guard parts.count == 2, parts[0] == "unconfirmed", let deadline = Int64(parts[1])
            else { return nil }
            phase = .unconfirmed(deadline: deadline)
        }
        return (phase, words[1] != "none", backend, hooks)
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
