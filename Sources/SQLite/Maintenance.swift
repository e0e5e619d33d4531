// SPDX-License-Identifier: Apache-2.0
import CSQLite
import Glibc

extension Database {
    /// What SQLite finds wrong with the file's structure, constraints and foreign keys, a line for
    /// each; empty when all is well. Reads all of it.
    public func integrityCheck() throws(SQLiteError) -> [String] {
        var findings: [String] = []
        for row in try rows("PRAGMA integrity_check") {
            if case .text(let line) = row[0], line != "ok" { findings.append(line) }
        }
        for row in try rows("PRAGMA foreign_key_check") {
            let table = row.text("table") ?? "?"
            let parent = row.text("parent") ?? "?"
            findings.append("a row of \(table) refers to one of \(parent) that is not there")
        }
        return findings
    }

    /// Moves what the write-ahead log holds into the file and empties the log. With another reader
    /// at work it does what it can.
    public func checkpoint() throws(SQLiteError) {
        _ = try rows("PRAGMA wal_checkpoint(TRUNCATE)")
    }

    /// Gives the room of deleted rows back to the file system.
    public func compact() throws(SQLiteError) {
        try execute("VACUUM")
        try checkpoint()
    }

    /// Bytes of the database's pages, those of deleted rows included.
    public func size() throws(SQLiteError) -> Int64 {
        let pages = try rows("PRAGMA page_count").first?.integer("page_count") ?? 0
        return pages * (try rows("PRAGMA page_size").first?.integer("page_size") ?? 0)
    }

    /// The whole database, as one consistent state, as the bytes of a file: for a backup that is
    /// sealed before it reaches a disk.
    public func snapshot() throws(SQLiteError) -> [UInt8] {
        var size: Int64 = 0
        guard let start = unsafe sqlite3_serialize(handle, "main", &size, 0) else {
            throw SQLiteError(.other, "\(path): cannot read all of it: not enough memory")
        }
        defer { unsafe sqlite3_free(start) }
        return unsafe Array(UnsafeRawBufferPointer(start: start, count: Int(size)))
    }

    /// Copies the database, as one consistent state and while others use it, to the new file
    /// `destination` (0600), which is complete or not there. Throws `.cannotOpen` when there is a
    /// file of that name.
    public func backup(to destination: String) throws(SQLiteError) {
        guard unsafe access(destination, F_OK) != 0 else {
            throw SQLiteError(
                .cannotOpen, "cannot back up to \(destination): it exists; choose another name")
        }
        let temporary = "\(destination).\(getpid()).part"
        unsafe unlink(temporary)
        do throws(SQLiteError) {
            try copy(to: temporary)
            try publish(temporary, as: destination)
        } catch {
            for suffix in ["", "-wal", "-shm"] { unsafe unlink(temporary + suffix) }
            throw error
        }
    }

    private func copy(to path: String) throws(SQLiteError) {
        let target = try Database(path)
        guard let backup = unsafe sqlite3_backup_init(target.handle, "main", handle, "main") else {
            throw unsafe target.error(sqlite3_extended_errcode(target.handle), "backup")
        }
        let status = unsafe sqlite3_backup_step(backup, -1)
        unsafe sqlite3_backup_finish(backup)
        guard status == SQLITE_DONE else { throw target.error(status, "backup") }
        try target.checkpoint()
    }

    private func publish(_ temporary: String, as path: String) throws(SQLiteError) {
        func failed(_ what: String) -> SQLiteError {
            let reason = unsafe String(cString: strerror(errno))
            return SQLiteError(.io, "cannot back up to \(path): \(what): \(reason)")
        }
        let number = unsafe open(temporary, O_RDWR | O_CLOEXEC)
        guard number >= 0 else { throw failed("open") }
        defer { close(number) }
        guard fsync(number) == 0 else { throw failed("fsync") }
        // Unlike rename(2), link(2) never replaces.
        guard unsafe link(temporary, path) == 0 else { throw failed("link") }
        unsafe unlink(temporary)
        let parent = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        let directory = unsafe open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { throw failed("open its directory") }
        defer { close(directory) }
        guard fsync(directory) == 0 else { throw failed("fsync of its directory") }
    }
}
