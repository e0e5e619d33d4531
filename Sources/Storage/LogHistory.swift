// SPDX-License-Identifier: Apache-2.0
import HostProcess
import SQLite
import WireGuard

/// The log of agent or hub on disk: `log.db` in its state directory. Its size is limited, the oldest
/// records go. Used by one thread at a time, like the database in it; several processes may read.
public final class LogHistory {
    private let database: Database
    private let limit: Int64

    static let fileName = "log.db"
    /// Bytes.
    public static let defaultLimit: Int64 = 16 << 20

    private static let migrations = [
        """
        CREATE TABLE record (
            -- AUTOINCREMENT: numbers go on after a clear.
            sequence INTEGER PRIMARY KEY AUTOINCREMENT,
            milliseconds INTEGER NOT NULL,
            level INTEGER NOT NULL,
            tag TEXT NOT NULL,
            message TEXT NOT NULL,
            -- A JSON object, or NULL.
            fields TEXT
        ) STRICT;
        """
    ]

    /// Opens it for writing. `limit` (bytes, from 64 KiB up) holds for the file.
    public init(
        _ directory: StateDirectory, limit: Int64 = LogHistory.defaultLimit
    ) throws(StorageError) {
        self.limit = max(limit, 64 << 10)
        _ = try Self.exists(directory)
        var options = Database.Options()
        // Losing the last lines to a power failure is better than a disk that never rests (C111).
        options.synchronisesEveryCommit = false
        options.sizeLimit = self.limit
        do throws(SQLiteError) {
            database = try Database(directory.file(Self.fileName), options)
            try database.migrate(Self.migrations)
        } catch {
            throw StorageError(error)
        }
    }

    /// The history to write to, or nil with the reason why there is none. A damaged one is moved
    /// aside, to `log.db.damaged`, and a new one begun.
    static func openForWriting(
        _ directory: StateDirectory, limit: Int64
    ) -> (LogHistory?, problem: String?) {
        do throws(StorageError) {
            return (try LogHistory(directory, limit: limit), nil)
        } catch  where error.kind == .damaged {
            let path = directory.file(fileName)
            for suffix in ["-wal", "-shm"] { try? HostFile.remove(path + suffix) }
            try? HostFile.rename(path, to: path + ".damaged")
            let history = try? LogHistory(directory, limit: limit)
            return (history, "\(error); moved to \(path).damaged, a new history begins")
        } catch {
            return (nil, "no history: \(error)")
        }
    }

    /// Whether there is one. Root may look at it too, and must not be led elsewhere by a link.
    static func exists(_ directory: StateDirectory) throws(StorageError) -> Bool {
        let path = directory.file(fileName)
        let status = try asking { () throws(HostError) in try FileStatus.of(path) }
        guard status?.kind ?? .regular == .regular else {
            throw StorageError(.notPrivate, "\(path) is no regular file; move it away")
        }
        return status != nil
    }

    /// Opens it for looking only. Throws `.missing` where there is none.
    public init(reading directory: StateDirectory) throws(StorageError) {
        limit = 0
        let path = directory.file(Self.fileName)
        guard try Self.exists(directory) else {
            throw StorageError(.missing, "there is no log in \(directory.path) yet")
        }
        var options = Database.Options()
        options.isReadOnly = true
        do throws(SQLiteError) {
            database = try Database(path, options)
        } catch {
            throw StorageError(error)
        }
    }
}

// MARK: writing

extension LogHistory {
    /// Appends records in their order as one transaction; their own sequence numbers do not matter.
    /// How many of the oldest were left out, because together they are larger than the history may
    /// be. Throws `.full` when the file system has no room.
    func append(_ records: [LogRecord]) throws(SQLiteError) -> Int {
        let fitting = self.fitting(records)
        guard !fitting.isEmpty else { return records.count }
        do throws(SQLiteError) {
            try insert(fitting)
        } catch  where error.kind == .full {
            // The limit, or the disk: either way there is room where old records were.
            try shrink(to: limit / 2)
            try insert(fitting)
        }
        try shrink(to: limit / 10 * 9)
        return records.count - fitting.count
    }

    /// The newest ones that surely find room in half of the history.
    private func fitting(_ records: [LogRecord]) -> ArraySlice<LogRecord> {
        var room = limit / 4
        var start = records.count
        while start > 0 {
            room -= Int64(records[start - 1].size)
            guard room >= 0 else { break }
            start -= 1
        }
        return records[start...]
    }

    private func insert(_ records: ArraySlice<LogRecord>) throws(SQLiteError) {
        try database.transaction { () throws(SQLiteError) in
            for record in records {
                try database.run(
                    """
                    INSERT INTO record (milliseconds, level, tag, message, fields)
                    VALUES (?, ?, ?, ?, ?)
                    """,
                    [
                        .integer(record.milliseconds), .integer(Int64(record.level.rawValue)),
                        .text(record.tag), .text(record.message),
                        Value(Self.encoded(record.fields)),
                    ])
            }
        }
    }

    /// Removes the oldest records, a tenth at a time, until those left fit into `size` bytes. Their
    /// pages are used again.
    private func shrink(to size: Int64) throws(SQLiteError) {
        while try usedSize() > size {
            let removed = try database.run(
                """
                DELETE FROM record WHERE sequence <= (SELECT sequence FROM record ORDER BY sequence
                    LIMIT 1 OFFSET (SELECT count(*) / 10 FROM record))
                """)
            guard removed > 0 else { return }
        }
    }

    private func usedSize() throws(SQLiteError) -> Int64 {
        let free = try database.rows("PRAGMA freelist_count")[0].integer("freelist_count") ?? 0
        let pageSize = try database.rows("PRAGMA page_size")[0].integer("page_size") ?? 0
        return try database.size() - free * pageSize
    }

    /// Removes all records of a history and overwrites them. None is no error.
    public static func clear(_ directory: StateDirectory) throws(StorageError) {
        guard try exists(directory) else { return }
        try LogHistory(directory).clear()
    }

    func clear() throws(StorageError) {
        do throws(SQLiteError) {
            try database.execute("DELETE FROM record")
            try database.compact()
        } catch {
            throw StorageError(error)
        }
    }

    private static func encoded(_ fields: [LogField]) -> String? {
        guard !fields.isEmpty else { return nil }
        var writer = JSONWriter()
        writer.beginObject()
        for field in fields { writer.write(field.name, field.value) }
        writer.endObject()
        return String(decoding: writer.text, as: UTF8.self)
    }
}

// MARK: reading

extension LogHistory {
    public struct Query: Sendable {
        public var minimumLevel = LogLevel.debug
        /// Milliseconds since 1970.
        public var since: Int64?
        /// Only records behind this one.
        public var after: Int64?
        /// The newest ones of those that fit.
        public var limit: Int?

        public init() {}
    }

    /// The records that fit, in the order in which they were written.
    public func records(_ query: Query) throws(StorageError) -> [LogRecord] {
        do throws(SQLiteError) {
            return try database.reading { () throws(SQLiteError) in
                try database.rows(
                    """
                    SELECT * FROM (
                        SELECT * FROM record
                        WHERE level >= ? AND milliseconds >= ? AND sequence > ?
                        ORDER BY sequence DESC LIMIT ?)
                    ORDER BY sequence
                    """,
                    [
                        .integer(Int64(query.minimumLevel.rawValue)),
                        .integer(query.since ?? .min), .integer(query.after ?? .min),
                        .integer(Int64(query.limit ?? -1)),
                    ]
                ).map { (row) throws(SQLiteError) in try record(row) }
            }
        } catch {
            throw StorageError(error)
        }
    }

    /// The records that fit, and the number of the newest of all, behind which a follower goes on.
    /// A history that is not there is empty when it `mayBeMissing`.
    public static func read(
        _ directory: StateDirectory, _ query: Query, mayBeMissing: Bool = false
    ) throws(StorageError) -> (records: [LogRecord], last: Int64) {
        if mayBeMissing, !(try exists(directory)) { return ([], 0) }
        let history = try LogHistory(reading: directory)
        var newest = Query()
        newest.limit = 1
        let last = try history.records(newest).last?.sequence ?? 0
        // What comes in between is left to the follower.
        let records = try history.records(query).filter { $0.sequence <= last }
        return (records, last)
    }

    private func record(_ row: Row) throws(SQLiteError) -> LogRecord {
        var fields: [LogField] = []
        if let text = row.text("fields") {
            let members = try database.rows(
                "SELECT key, atom, type FROM json_each(?)", [.text(text)])
            fields = members.compactMap(field)
        }
        return LogRecord(
            sequence: row.integer("sequence") ?? 0, milliseconds: row.integer("milliseconds") ?? 0,
            level: LogLevel(rawValue: Int(row.integer("level") ?? 1)) ?? .info,
            tag: row.text("tag") ?? "", message: row.text("message") ?? "", fields: fields)
    }

    private func field(_ member: Row) -> LogField? {
        guard let name = member.text("key") else { return nil }
        switch (member.text("type"), member["atom"]) {
        case ("true", _), ("false", _): return LogField(name, .flag(member.flag("atom")))
        case (_, .integer(let number)): return LogField(name, .number(number))
        case (_, .text(let text)): return LogField(name, .text(text))
        default: return nil
        }
    }
}
