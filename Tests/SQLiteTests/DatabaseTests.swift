// SPDX-License-Identifier: Apache-2.0
import SQLite
import TestSupport
import Testing

@Suite struct DatabaseTests {
    let directory = TemporaryDirectory()

    @Test(arguments: [
        Value.null, 0, -1, .integer(.min), .integer(.max), .real(0.5), .real(-1e300), "", "a",
        .text("Grüße\u{1F510}"), .text("nul\u{0}inside"), .blob([]), .blob([0, 1, 255]),
        .blob([UInt8](repeating: 7, count: 100_000)),
    ]) func whatWasStoredIsReadWithItsType(value: Value) throws {
        let database = try Database(directory.file("a.db"))
        try database.execute("CREATE TABLE t (x ANY) STRICT")
        #expect(try database.run("INSERT INTO t VALUES (?)", [value]) == 1)
        #expect(try database.rows("SELECT x FROM t").map { $0["x"] } == [value])
    }

    @Test func columnsAreReadByNameAndType() throws {
        let database = try Database()
        let row = try database.rows("SELECT 1 AS a, 'x' AS b, NULL AS c, 0.5 AS d, x'00' AS e")[0]
        #expect(row.integer("a") == 1 && row.flag("a") && row.real("a") == 1)
        #expect(row.text("b") == "x" && row.integer("b") == nil)
        #expect(row.text("c") == nil && !row.flag("c"))
        #expect(row.real("d") == 0.5 && row.blob("e") == [0])
        #expect(row[1] == "x")
    }

    @Test func valuesThatAreMissingOrTooManyAreRefused() throws {
        let database = try Database()
        #expect(kind { () throws(SQLiteError) in _ = try database.rows("SELECT ?") } == .other)
        #expect(
            kind { () throws(SQLiteError) in _ = try database.rows("SELECT 1", [1]) } == .other)
        #expect(kind { () throws(SQLiteError) in try database.run("") } == .other)
        #expect(kind { () throws(SQLiteError) in try database.run("SELEC") } == .other)
    }

    @Test func changesAreCountedForOneStatementAlone() throws {
        let database = try Database()
        try database.execute("CREATE TABLE t (x INTEGER PRIMARY KEY)")
        for x in 1...5 { try database.run("INSERT INTO t VALUES (?)", [.integer(Int64(x))]) }
        #expect(database.lastInsertedRow == 5)
        #expect(try database.run("DELETE FROM t WHERE x > ?", [2]) == 3)
        #expect(try database.run("DELETE FROM t WHERE x > ?", [2]) == 0)
        #expect(try database.run("CREATE TABLE u (x)") == 0)
    }

    /// More texts than are kept prepared.
    @Test func anyNumberOfStatementsWorks() throws {
        let database = try Database()
        for x in 0..<300 { #expect(try database.rows("SELECT \(x)")[0][0] == .integer(Int64(x))) }
        #expect(try database.rows("SELECT 0")[0][0] == 0)
    }

    @Test func case_C94_theFileAndItsLogBelongToTheirOwnerAlone() throws {
        let database = try Database(directory.file("a.db"))
        try database.execute("CREATE TABLE t (x)")
        #expect(directory.names == ["a.db", "a.db-shm", "a.db-wal"])
        for name in directory.names { #expect(permissions(directory.file(name)) == 0o600) }
    }

    @Test func commitsAreSynchronisedAndDeletedContentIsOverwritten() throws {
        let path = directory.file("a.db")
        let database = try Database(path)
        #expect(try database.rows("PRAGMA journal_mode")[0][0] == "wal")
        #expect(try database.rows("PRAGMA synchronous")[0][0] == 2)
        #expect(try database.rows("PRAGMA secure_delete")[0][0] == 1)
        #expect(try database.rows("PRAGMA foreign_keys")[0][0] == 1)
        try database.execute("CREATE TABLE t (x); INSERT INTO t VALUES ('needle-in-the-file')")
        try database.checkpoint()
        #expect(try contains(path, "needle-in-the-file"))
        try database.execute("DELETE FROM t")
        try database.checkpoint()
        #expect(try !contains(path, "needle-in-the-file"))
    }

    private func contains(_ path: String, _ text: String) throws -> Bool {
        String(decoding: try bytes(of: path), as: UTF8.self).contains(text)
    }
}

@Suite struct TransactionTests {
    let database: Database

    init() throws {
        database = try Database()
        try database.execute("CREATE TABLE t (x INTEGER PRIMARY KEY)")
    }

    struct Refused: SQLiteFailure, Equatable {
        var error: SQLiteError?
        init(_ error: SQLiteError) { self.error = error }
        init() {}
    }

    private func insert(_ x: Int64) throws(Refused) {
        do throws(SQLiteError) {
            try database.run("INSERT INTO t VALUES (?)", [.integer(x)])
        } catch {
            throw Refused(error)
        }
    }

    private func stored() throws -> [Value] {
        try database.rows("SELECT x FROM t ORDER BY x").map { $0["x"] }
    }

    @Test func allIsKeptOrNothing() throws {
        let result = try database.transaction { () throws(Refused) in
            try insert(1)
            return 42
        }
        #expect(result == 42)
        #expect(throws: Refused()) {
            try database.transaction { () throws(Refused) in
                try insert(2)
                throw Refused()
            }
        }
        #expect(try stored() == [1])
        #expect(!database.isInTransaction)
    }

    @Test func anInnerOneFailsAlone() throws {
        try database.transaction { () throws(Refused) in
            try insert(1)
            #expect(throws: Refused()) {
                try database.transaction { () throws(Refused) in
                    try insert(2)
                    throw Refused()
                }
            }
            try database.transaction { () throws(Refused) in try insert(3) }
        }
        #expect(try stored() == [1, 3])
    }

    @Test func theOuterOneUndoesTheInnerOne() throws {
        #expect(throws: Refused()) {
            try database.transaction { () throws(Refused) in
                try database.transaction { () throws(Refused) in try insert(1) }
                throw Refused()
            }
        }
        #expect(try stored() == [])
    }

    @Test func aConstraintThatFailsAtTheEndUndoesAll() throws {
        try database.execute(
            "CREATE TABLE child (x REFERENCES t (x) DEFERRABLE INITIALLY DEFERRED)")
        let failure = #expect(throws: Refused.self) {
            try database.transaction { () throws(Refused) in
                try insert(1)
                do throws(SQLiteError) {
                    try database.run("INSERT INTO child VALUES (2)")
                } catch {
                    throw Refused(error)
                }
            }
        }
        #expect(failure?.error?.kind == .constraint)
        #expect(try stored() == [])
        #expect(!database.isInTransaction)
    }
}
