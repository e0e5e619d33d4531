// SPDX-License-Identifier: Apache-2.0
// Making a backup of a hub that runs, and putting one in the place of a hub that does not.
import ControlAPI
import HTTP
import HostProcess
import SQLite
import Storage
import WireGuard

/// Where a running hub takes a backup from.
public struct BackupSource: Sendable {
    let databasePath: String
    let certificatePath: String
    let secrets: SecretStore

    /// The caller erases the contents.
    func contents() throws(HubError) -> BackupContents {
        var contents = BackupContents()
        do throws(SQLiteError) {
            contents.database = try Database(databasePath).snapshot()
        } catch {
            throw HubError(error)
        }
        do throws(StorageError) {
            for name in HubState.secretNames {
                if let bytes = try secrets.open(name) { contents.secrets[name] = bytes }
            }
        } catch {
            throw HubError(error)
        }
        if HostFile.exists(certificatePath) {
            contents.certificate = try hosting { () throws(HostError) in
                try HostFile.read(certificatePath, limit: 1 << 20).bytes
            }
        }
        return contents
    }
}

extension Hub {
    static let backupRoutes: [Route] = [
        Route("POST", "/api/v1/admin/backup", .administrator) { (hub, call) throws(Refusal) in
            guard case .unix = call.request.origin else {
                throw Refusal(.forbidden, "a backup holds every secret: ask on the hub's machine")
            }
            var passphrase = Array(try call.decode(BackupRequest.self).passphrase.exposed.utf8)
            defer { erase(&passphrase) }
            guard 12...1024 ~= passphrase.count else {
                throw Refusal(.badRequest, "passphrase has not 12 to 1024 bytes")
            }
            let file = try hub.makeBackup(passphrase)
            try hub.locked { (core) throws(Refusal) in
                try core.commit([
                    core.log("backup", "a backup was made", by: call.actor, at: call.now)
                ])
            }
            return HTTPResponse(
                status: 200,
                headers: [
                    "Content-Type": "application/octet-stream", "Cache-Control": "no-store",
                ], body: file)
        }
    ]

    private func makeBackup(_ passphrase: [UInt8]) throws(Refusal) -> [UInt8] {
        guard let backup else { throw Refusal(.unavailable, "there is nothing to back up") }
        do throws(HubError) {
            var contents = try backup.contents()
            defer { contents.erase() }
            do throws(BackupError) {
                return try Backup.seal(contents, passphrase: passphrase)
            } catch {
                throw HubError(.failed, error.description)
            }
        } catch {
            throw Refusal(.unavailable, "cannot make the backup: \(error)", retryAfter: 30)
        }
    }
}

public enum HubRestore {
    /// Makes the hub of `file` that of this machine's state directory, which must be new or empty of
    /// a hub. The caller erases `passphrase`.
    public static func restore(
        _ file: [UInt8], passphrase: [UInt8], stateDirectory: String, machine: String
    ) throws(HubError) {
        var contents: BackupContents
        do throws(BackupError) {
            contents = try Backup.open(file, passphrase: passphrase)
        } catch {
            throw HubError(.failed, "cannot restore the backup: \(error)")
        }
        defer { contents.erase() }
        let state = try HubState(stateDirectory, machine: machine)
        guard !HostFile.exists(state.databasePath) else {
            throw HubError(
                .failed,
                "there is a hub in \(stateDirectory) already; move that directory away first")
        }
        try state.put(contents)
    }
}

extension HubState {
    static let secretNames = [tunnelSecret, sealingSecret, certificateSecret]

    var protection: String { secrets.protection.description }

    func backupSource(certificatePath: String) -> BackupSource {
        BackupSource(
            databasePath: databasePath, certificatePath: certificatePath, secrets: secrets)
    }

    /// The database comes last: with it the hub is there.
    fileprivate func put(_ contents: borrowing BackupContents) throws(HubError) {
        do throws(StorageError) {
            for name in Self.secretNames {
                if let bytes = contents.secrets[name] { try secrets.seal(name, bytes) }
            }
        } catch {
            throw HubError(error)
        }
        let draft = databasePath + ".restored"
        try hosting { () throws(HostError) in
            if !contents.certificate.isEmpty {
                try HostFile.write(contents.certificate, to: certificatePath, replacing: true)
            }
            try HostFile.write(contents.database, to: draft, replacing: true)
        }
        try check(draft)
        try hosting { () throws(HostError) in
            try HostFile.write(contents.database, to: databasePath, replacing: false)
            for name in ["", "-wal", "-shm"] { try HostFile.remove(draft + name) }
        }
    }

    /// It opens, is whole, and is understood.
    private func check(_ path: String) throws(HubError) {
        let problems: [String]
        let store: Store
        do throws(SQLiteError) {
            let database = try Database(path)
            problems = try database.integrityCheck()
            store = try Store(database)
        } catch {
            throw HubError(error)
        }
        guard problems.isEmpty else {
            throw HubError(.failed, "the database of the backup is damaged: \(problems[0])")
        }
        do throws(StoreError) {
            _ = try store.load()
        } catch {
            throw HubError(error)
        }
    }
}
