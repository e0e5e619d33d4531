// SPDX-License-Identifier: Apache-2.0
import CSQLite
import Glibc

/// One line that names what was tried, on which database, why it failed and what to do. The values
/// that a statement was given are never part of it.
public struct SQLiteError: Error, Equatable, Sendable, CustomStringConvertible {
    public let kind: Kind
    /// SQLite's extended result code (sqlite.org/rescode.html); 0 where SQLite was not asked.
    public let code: Int32
    public let description: String

    public enum Kind: Equatable, Sendable {
        /// No room on the file system, or the database's own limit is reached. Nothing of the
        /// transaction was kept.
        case full
        /// The file or its directory cannot be written.
        case readOnly
        /// Damaged, or not a database.
        case corrupt
        /// Another process held it for longer than `Options.busyTimeout`.
        case busy
        /// UNIQUE or PRIMARY KEY.
        case notUnique
        /// Another constraint: FOREIGN KEY, CHECK, NOT NULL, a type of a STRICT table.
        case constraint
        /// The file is not there, or may not be opened.
        case cannotOpen
        /// Written by a newer version of this program.
        case newer
        /// The medium failed.
        case io
        /// An error of this program: a statement that does not fit the tables.
        case other
    }

    init(_ kind: Kind, code: Int32 = 0, _ description: String) {
        self.kind = kind
        self.code = code
        self.description = description
    }
}

/// An error type that can hold SQLite's, for `Database.transaction`.
public protocol SQLiteFailure: Error {
    init(_ error: SQLiteError)
}

extension SQLiteError: SQLiteFailure {
    public init(_ error: SQLiteError) { self = error }
}

extension SQLiteError.Kind {
    /// `code` is extended, `errno` is that of the system call that failed last, or 0.
    init(code: Int32, errno: Int32) {
        // IOERR_SHMSIZE: the index of the log, a file beside the database, could not grow.
        let sharedMemorySize = SQLITE_IOERR | 19 << 8
        switch code & 0xFF {
        case SQLITE_IOERR where errno == ENOSPC || errno == EDQUOT || code == sharedMemorySize:
            self = .full
        case SQLITE_FULL: self = .full
        case SQLITE_READONLY, SQLITE_PERM: self = .readOnly
        case SQLITE_CORRUPT, SQLITE_NOTADB: self = .corrupt
        case SQLITE_BUSY, SQLITE_LOCKED: self = .busy
        case SQLITE_CONSTRAINT:
            // CONSTRAINT_PRIMARYKEY, CONSTRAINT_UNIQUE, CONSTRAINT_ROWID.
            self = [6, 8, 10].contains(code >> 8) ? .notUnique : .constraint
        case SQLITE_MISMATCH: self = .constraint
        case SQLITE_CANTOPEN, SQLITE_AUTH: self = .cannotOpen
        case SQLITE_IOERR: self = .io
        default: self = .other
        }
    }

    /// What to do about it, to stand at the end of a message.
    var advice: String {
        switch self {
        case .full: "; make room on its file system"
        case .readOnly: "; give this user the right to write the file and its directory"
        case .corrupt: "; keep the file, and restore a backup in its place"
        case .busy: "; another program is using it, try again"
        case .cannotOpen: "; check that it exists and that this user may open it"
        case .io: "; check the disk"
        case .newer: "; install the newer version again"
        case .notUnique, .constraint, .other: ""
        }
    }
}

/// A statement as messages show it: on one line, and not all of a long one.
func shortened(_ sql: String) -> String {
    let words = sql.split { $0 == " " || $0 == "\n" || $0 == "\t" }.joined(separator: " ")
    return words.count <= 80 ? words : words.prefix(79) + "…"
}
