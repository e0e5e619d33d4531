// SPDX-License-Identifier: Apache-2.0
import CSQLite
import Glibc

/// A connection to one database file, used by one thread at a time: it is not `Sendable`, so that
/// the compiler asks for the caller's lock (`Mutex<Database>`) where threads share it.
///
/// What is committed is on disk (a write-ahead log, synchronised at every commit); deleted content
/// is overwritten. Several processes may have the same file open.
@safe public final class Database {
    /// Where the file is; "" for one in memory.
    public let path: String
    let handle: OpaquePointer
    private var statements: [String: Statement] = [:]
    private var depth = 0

    public struct Options: Sendable {
        /// Nothing is written; the file must exist.
        public var isReadOnly = false
        /// How long to wait for another process, in milliseconds.
        public var busyTimeout: Int32 = 5000
        /// False: a power failure may take the last transactions, but damages nothing.
        public var synchronisesEveryCommit = true
        /// Bytes, from two pages (8192) up: a transaction that would need more fails with `.full`.
        public var sizeLimit: Int64?

        public init() {}
    }

    /// Opens the file at `path`, which is made (0600) where it is not there, unless read-only.
    public init(_ path: String, _ options: Options = Options()) throws(SQLiteError) {
        self.path = path
        if !options.isReadOnly { try Self.make(path) }
        let flags =
            (options.isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE)
            | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        unsafe handle = try Self.open(path, flags: flags)
        unsafe sqlite3_busy_timeout(handle, options.busyTimeout)
        try configure(options)
    }

    /// A database in memory, for tests and for what need not be kept.
    public init() throws(SQLiteError) {
        path = ""
        unsafe handle = try Self.open(
            ":memory:", flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE)
        try execute("PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF")
    }

    deinit {
        statements.removeAll()
        unsafe sqlite3_close_v2(handle)
    }

    /// SQLite would make it under the umask (C94). The files beside it take its permissions.
    private static func make(_ path: String) throws(SQLiteError) {
        let number = unsafe Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard number < 0 else {
            Glibc.close(number)
            return
        }
        let reason = unsafe String(cString: strerror(errno))
        let kind: SQLiteError.Kind =
            switch errno {
            case EROFS: .readOnly
            case ENOSPC, EDQUOT: .full
            default: .cannotOpen
            }
        throw SQLiteError(kind, "cannot open the database \(path): \(reason)\(kind.advice)")
    }

    private static func open(_ path: String, flags: Int32) throws(SQLiteError) -> OpaquePointer {
        var made: OpaquePointer?
        let status = unsafe sqlite3_open_v2(path, &made, flags, nil)
        if status == SQLITE_OK, let made = unsafe made { return unsafe made }
        defer { unsafe sqlite3_close_v2(made) }
        let reason = unsafe String(cString: sqlite3_errstr(status))
        let kind = SQLiteError.Kind(code: status, errno: 0)
        throw SQLiteError(
            kind, code: status, "cannot open the database \(path): \(reason)\(kind.advice)")
    }

    private func configure(_ options: Options) throws(SQLiteError) {
        try execute("PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF")
        try execute("PRAGMA cell_size_check = ON")
        guard !options.isReadOnly else { return }
        let mode = try rows("PRAGMA journal_mode = WAL").first?[0]
        guard mode == "wal" else {
            throw SQLiteError(
                .cannotOpen,
                "cannot open the database \(path): no write-ahead log on this file system; "
                    + "put it on a local one")
        }
        try execute("PRAGMA synchronous = \(options.synchronisesEveryCommit ? "FULL" : "NORMAL")")
        try execute("PRAGMA secure_delete = ON")
        // The log's file shrinks again after a large transaction.
        try execute("PRAGMA journal_size_limit = 1048576")
        guard let limit = options.sizeLimit else { return }
        let pageSize = try rows("PRAGMA page_size").first?.integer("page_size") ?? 4096
        try execute("PRAGMA max_page_count = \(max(2, limit / pageSize))")
    }
}

// MARK: statements

extension Database {
    /// Runs statements that take no values and whose results nobody wants.
    public func execute(_ sql: String) throws(SQLiteError) {
        try checkTransaction(sql)
        let status = unsafe sqlite3_exec(handle, sql, nil, nil, nil)
        guard status == SQLITE_OK else { throw error(status, sql) }
    }

    /// Runs one statement with a value for each `?`; how many rows it inserted, changed or deleted.
    @discardableResult
    public func run(_ sql: String, _ values: [Value] = []) throws(SQLiteError) -> Int {
        let before = unsafe sqlite3_total_changes64(handle)
        _ = try rows(sql, values)
        guard unsafe sqlite3_total_changes64(handle) != before else { return 0 }
        return unsafe Int(sqlite3_changes64(handle))
    }

    /// All rows of one statement with a value for each `?`.
    public func rows(_ sql: String, _ values: [Value] = []) throws(SQLiteError) -> [Row] {
        var rows: [Row] = []
        try forEachRow(sql, values) { row in
            rows.append(row)
            return true
        }
        return rows
    }

    /// The rows of one statement with a value for each `?`, one after the other: a large table is
    /// never in memory as a whole. `body` says whether it wants more; it does not use this connection.
    public func forEachRow(
        _ sql: String, _ values: [Value] = [], _ body: (Row) -> Bool
    ) throws(SQLiteError) {
        try checkTransaction(sql)
        let statement = try prepared(sql)
        guard statement.parameterCount == values.count else {
            throw SQLiteError(
                .other,
                "\(shortened(sql)): takes \(statement.parameterCount) values, not \(values.count)")
        }
        if let failed = statement.run(values, body) { throw error(failed, sql) }
    }

    /// A full disk ends the whole transaction. Who goes on in spite of the error must not find
    /// statements committed that were meant to be part of it.
    private func checkTransaction(_ sql: String) throws(SQLiteError) {
        guard depth > 0, !isInTransaction else { return }
        throw SQLiteError(.other, "\(shortened(sql)): an error has ended the transaction")
    }

    /// The rowid of the row that this connection inserted last.
    public var lastInsertedRow: Int64 { unsafe sqlite3_last_insert_rowid(handle) }

    /// Statements stay prepared: there are as many as the program has.
    private func prepared(_ sql: String) throws(SQLiteError) -> Statement {
        if let statement = statements[sql] { return statement }
        var made: OpaquePointer?
        let status = unsafe sqlite3_prepare_v3(
            handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &made, nil)
        guard status == SQLITE_OK else { throw error(status, sql) }
        guard let made = unsafe made else {
            throw SQLiteError(.other, "\(shortened(sql)): no statement")
        }
        let statement = unsafe Statement(owning: made)
        // A program that puts values into its statements' text must not fill the memory.
        if statements.count >= 128 { statements.removeAll() }
        statements[sql] = statement
        return statement
    }

    func error(_ code: Int32, _ sql: String) -> SQLiteError {
        let kind = unsafe SQLiteError.Kind(code: code, errno: sqlite3_system_errno(handle))
        let reason = unsafe String(cString: sqlite3_errmsg(handle))
        let name = path.isEmpty ? "the database in memory" : path
        return SQLiteError(
            kind, code: code, "\(name): \(shortened(sql)): \(reason)\(kind.advice)")
    }
}

// MARK: transactions

extension Database {
    /// Runs `body` as one transaction: all of it is kept, or nothing when it throws. Inside another
    /// one it is a part that can fail alone (a savepoint). `body` throws a type that can hold
    /// SQLite's errors, or SQLite's own.
    public func transaction<Result, Failure: SQLiteFailure>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let part = depth == 0 ? nil : "part\(depth)"
        // IMMEDIATE: a reader that becomes a writer could meet SQLITE_BUSY without being able to
        // wait (sqlite.org/lang_transaction.html).
        try wrapping(as: Failure.self) { () throws(SQLiteError) in
            try self.execute(part.map { "SAVEPOINT \($0)" } ?? "BEGIN IMMEDIATE")
        }
        depth += 1
        defer { depth -= 1 }
        do throws(Failure) {
            let result = try body()
            try wrapping(as: Failure.self) { () throws(SQLiteError) in
                try self.execute(part.map { "RELEASE \($0)" } ?? "COMMIT")
            }
            return result
        } catch {
            undo(part)
            throw error
        }
    }

    /// Runs `body`, which only reads, on one state of the database, whatever others write meanwhile.
    public func reading<Result, Failure: SQLiteFailure>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        guard depth == 0 else { return try body() }
        try wrapping(as: Failure.self) { () throws(SQLiteError) in
            try self.execute("BEGIN DEFERRED")
        }
        depth += 1
        defer {
            depth -= 1
            undo(nil)
        }
        return try body()
    }

    /// A full disk and some other errors undo the whole transaction themselves.
    private func undo(_ part: String?) {
        guard unsafe sqlite3_get_autocommit(handle) == 0 else { return }
        try? execute(part.map { "ROLLBACK TO \($0); RELEASE \($0)" } ?? "ROLLBACK")
    }

    private func wrapping<Failure: SQLiteFailure>(
        as failure: Failure.Type, _ body: () throws(SQLiteError) -> Void
    ) throws(Failure) {
        do throws(SQLiteError) {
            try body()
        } catch {
            throw Failure(error)
        }
    }

    /// Whether a transaction is open.
    public var isInTransaction: Bool { unsafe sqlite3_get_autocommit(handle) == 0 }
}
