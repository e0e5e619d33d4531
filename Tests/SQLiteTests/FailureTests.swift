// SPDX-License-Identifier: Apache-2.0
import Glibc
import SQLite
import TestSupport
import Testing

@Suite struct FailureTests {
    let directory = TemporaryDirectory()
    var path: String { directory.file("a.db") }

    private func filled() throws -> Database {
        let database = try Database(path)
        try database.execute("CREATE TABLE t (x INTEGER PRIMARY KEY, y BLOB NOT NULL)")
        let bytes = Value.blob([UInt8](repeating: 0x5A, count: 3000))
        for _ in 0..<100 { try database.run("INSERT INTO t (y) VALUES (?)", [bytes]) }
        try database.checkpoint()
        return database
    }

    @Test func constraintsAreToldApart() throws {
        let database = try filled()
        #expect(
            kind { () throws(SQLiteError) in
                try database.run("INSERT INTO t VALUES (1, x'')")
            } == .notUnique)
        #expect(
            kind { () throws(SQLiteError) in
                try database.run("INSERT INTO t VALUES (NULL, NULL)")
            } == .constraint)
    }

    @Test func noErrorShowsAValue() throws {
        let database = try Database()
        try database.execute("CREATE TABLE t (x TEXT UNIQUE CHECK (length(x) > 9))")
        let failure = #expect(throws: SQLiteError.self) {
            try database.run("INSERT INTO t VALUES (?)", ["hunter2"])
        }
        #expect(failure?.description.contains("INSERT INTO t VALUES (?)") == true)
        #expect(failure?.description.contains("hunter2") == false)
    }

    @Test func aFullDatabaseKeepsWhatItHas() throws {
        _ = try filled()
        var options = Database.Options()
        options.sizeLimit = 500_000
        let database = try Database(path, options)
        let large = Value.blob([UInt8](repeating: 1, count: 1_000_000))
        let failure = #expect(throws: SQLiteError.self) {
            try database.transaction { () throws(SQLiteError) in
                try database.run("DELETE FROM t WHERE x = 1")
                try database.run("INSERT INTO t (y) VALUES (?)", [large])
            }
        }
        #expect(failure?.kind == .full)
        #expect(failure?.description.contains("make room") == true)
        #expect(try database.rows("SELECT count(*) AS n FROM t")[0]["n"] == 100)
        #expect(try database.integrityCheck() == [])
        try database.run("INSERT INTO t (y) VALUES (x'00')")
    }

    /// Where an error has undone the whole transaction, what follows is not committed alone.
    @Test func nothingIsCommittedAfterAFullDatabaseEndedTheTransaction() throws {
        _ = try filled()
        var options = Database.Options()
        options.sizeLimit = 500_000
        let database = try Database(path, options)
        let large = Value.blob([UInt8](repeating: 1, count: 1_000_000))
        let failure = #expect(throws: SQLiteError.self) {
            try database.transaction { () throws(SQLiteError) in
                _ = try? database.run("INSERT INTO t (y) VALUES (?)", [large])
                if database.isInTransaction { try database.execute("ROLLBACK") }
                try database.run("DELETE FROM t")
            }
        }
        #expect(failure?.description.contains("ended the transaction") == true)
        #expect(try database.rows("SELECT count(*) AS n FROM t")[0]["n"] == 100)
    }

    @Test func readOnlyIsSaid() throws {
        _ = try filled()
        var options = Database.Options()
        options.isReadOnly = true
        let database = try Database(path, options)
        #expect(try database.rows("SELECT count(*) AS n FROM t")[0]["n"] == 100)
        #expect(kind { () throws(SQLiteError) in try database.run("DELETE FROM t") } == .readOnly)
    }

    @Test func aReaderDoesNotMakeAFile() {
        var options = Database.Options()
        options.isReadOnly = true
        #expect(
            kind { () throws(SQLiteError) in _ = try Database(path, options) } == .cannotOpen)
        #expect(
            kind { () throws(SQLiteError) in _ = try Database("\(path)/none/x") } == .cannotOpen)
        #expect(directory.names == [])
    }

    @Test func whatIsNoDatabaseIsSaidAndKept() throws {
        let content = Array(String(repeating: "no database ", count: 500).utf8)
        try write(content, to: path)
        let failure = #expect(throws: SQLiteError.self) { try Database(path) }
        #expect(failure?.kind == .corrupt)
        #expect(failure?.description.contains("keep the file") == true)
        #expect(try bytes(of: path) == content)
    }

    @Test func damageInTheMiddleIsFound() throws {
        _ = try filled()
        var content = try bytes(of: path)
        for index in content.indices where index >= 8192 && index % 4096 < 100 {
            content[index] = 0xFF
        }
        try write(content, to: path)
        let database = try Database(path)
        let failure = #expect(throws: SQLiteError.self) {
            // The check itself may fail, or list what it found.
            guard try database.integrityCheck().isEmpty else {
                _ = try sum(database)
                return
            }
        }
        #expect(failure?.kind == .corrupt)
    }

    private func sum(_ database: Database) throws(SQLiteError) -> [Row] {
        try database.rows("SELECT sum(length(y)) FROM t")
    }

    @Test func aRowWhoseParentIsGoneIsFound() throws {
        let database = try Database(path)
        try database.execute(
            "CREATE TABLE p (x INTEGER PRIMARY KEY); CREATE TABLE c (x REFERENCES p)")
        try database.execute("PRAGMA foreign_keys = OFF; INSERT INTO c VALUES (9)")
        #expect(
            try database.integrityCheck()
                == ["a row of c refers to one of p that is not there"])
    }

    @Test func anotherWriterIsWaitedForAndThenNamed() throws {
        let first = try filled()
        var options = Database.Options()
        options.busyTimeout = 1
        let second = try Database(path, options)
        try first.transaction { () throws(SQLiteError) in
            let failure = kind { () throws(SQLiteError) in try second.run("DELETE FROM t") }
            #expect(failure == .busy)
            #expect(try second.rows("SELECT count(*) AS n FROM t")[0]["n"] == 100)
        }
    }
}

@Suite struct MigrationTests {
    let directory = TemporaryDirectory()
    var path: String { directory.file("a.db") }
    let steps = [
        "CREATE TABLE a (x); INSERT INTO a VALUES (1)",
        "ALTER TABLE a ADD COLUMN y; UPDATE a SET y = 2",
    ]

    @Test func everyStepIsDoneOnce() throws {
        let database = try Database(path)
        try database.migrate([steps[0]])
        #expect(try database.version() == 1)
        for _ in 0..<2 { try database.migrate(steps) }
        #expect(try database.version() == 2)
        let rows = try database.rows("SELECT x, y FROM a")
        #expect(rows.map { [$0["x"], $0["y"]] } == [[1, 2]])
    }

    @Test func aStepThatFailsLeavesTheVersionBefore() throws {
        let database = try Database(path)
        #expect(throws: SQLiteError.self) {
            try database.migrate([steps[0], "CREATE TABLE b (x); INSERT INTO missing VALUES (1)"])
        }
        #expect(try database.version() == 1)
        #expect(try database.rows("SELECT name FROM sqlite_master").map { $0["name"] } == ["a"])
    }

    @Test func aNewerFileIsRefusedAndKept() throws {
        let database = try Database(path)
        try database.migrate(steps)
        let failure = #expect(throws: SQLiteError.self) { try database.migrate([steps[0]]) }
        #expect(failure?.kind == .newer)
        #expect(failure?.description.contains("version 2") == true)
        #expect(try database.version() == 2)
    }
}
