// SPDX-License-Identifier: Apache-2.0
import Glibc
import SQLite
import TestSupport
import Testing

@Suite struct BackupTests {
    let directory = TemporaryDirectory()
    let database: Database

    init() throws {
        database = try Database(directory.file("a.db"))
        try database.execute("CREATE TABLE t (x); INSERT INTO t VALUES ('kept')")
    }

    private func content(_ path: String) throws -> [Value] {
        let copy = try Database(path)
        #expect(try copy.integrityCheck() == [])
        return try copy.rows("SELECT x FROM t").map { $0["x"] }
    }

    @Test func aBackupHoldsWhatWasCommittedAndIsPrivate() throws {
        let path = directory.file("b.db")
        try database.backup(to: path)
        #expect(directory.names == ["a.db", "a.db-shm", "a.db-wal", "b.db"])
        #expect(permissions(path) == 0o600)
        try database.execute("DELETE FROM t")
        #expect(try content(path) == ["kept"])
    }

    @Test func anotherFileIsNotOverwritten() throws {
        let path = directory.file("b.db")
        try write([1, 2, 3], to: path)
        #expect(kind { () throws(SQLiteError) in try database.backup(to: path) } == .cannotOpen)
        #expect(try bytes(of: path) == [1, 2, 3])
    }

    @Test func aFailureLeavesNothing() throws {
        let before = directory.names
        #expect(throws: SQLiteError.self) {
            try database.backup(to: directory.file("none/b.db"))
        }
        #expect(directory.names == before)
    }

    @Test func aSnapshotIsAFileOfItsOwn() throws {
        let path = directory.file("b.db")
        try write(try database.snapshot(), to: path)
        #expect(try content(path) == ["kept"])
    }
}
