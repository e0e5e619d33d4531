// SPDX-License-Identifier: Apache-2.0
import Glibc
import SQLite
import TestSupport
import Testing

/// A process that updates a database is killed at any moment: what it was told to be committed is
/// there, what it had begun is there as a whole or not at all.
@Suite struct KillTests {
    let directory = TemporaryDirectory()

    @Test func aKilledWriterLosesNothingCommittedAndLeavesNothingHalf() async throws {
        let path = directory.file("a.db")
        try prepare(path)
        for round in 0..<12 {
            // The first rounds die early, the last ones after many transactions.
            let microseconds = UInt32(1000 + round * round * 500)
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [path = path as String, microseconds = microseconds as UInt32] in
                try updateUntilKilled(path, after: microseconds)
            }
            try check(path)
        }
        #expect(try acknowledged(path) > 0, "no round came as far as a commit")
    }

    private func prepare(_ path: String) throws {
        let database = try Database(path)
        try database.execute(
            """
            CREATE TABLE account (name TEXT PRIMARY KEY, sum INTEGER NOT NULL) STRICT;
            CREATE TABLE entry (number INTEGER PRIMARY KEY, note BLOB NOT NULL) STRICT;
            INSERT INTO account VALUES ('from', 0), ('to', 0);
            """)
        try write([], to: path + ".acknowledged")
    }

    private func check(_ path: String) throws {
        let database = try Database(path)
        #expect(try database.integrityCheck() == [])
        let sums = try database.rows("SELECT name, sum FROM account ORDER BY name")
        let moved = sums[1].integer("sum") ?? -1
        #expect(sums[0].integer("sum") == -moved)
        let entries = try database.rows("SELECT count(*) AS n, max(number) AS last FROM entry")[0]
        #expect(entries.integer("n") == moved)
        // Killed between the commit and the acknowledgement: one more.
        let acknowledged = try acknowledged(path)
        #expect((acknowledged...acknowledged + 1).contains(moved))
        try write(Array("\(moved)\n".utf8), to: path + ".acknowledged")
    }

    private func acknowledged(_ path: String) throws -> Int64 {
        let text = String(decoding: try bytes(of: path + ".acknowledged"), as: UTF8.self)
        return text.split(separator: "\n").last.flatMap { Int64($0) } ?? 0
    }
}

/// Moves 1 from one account to the other with an entry, forever; appends the number of each
/// transaction that was committed to a file.
private func updateUntilKilled(_ path: String, after microseconds: UInt32) throws {
    let log = unsafe open(path + ".acknowledged", O_WRONLY | O_APPEND)
    let database = try Database(path)
    var thread = pthread_t()
    unsafe pthread_create(
        &thread, nil,
        { argument in
            usleep(UInt32(UInt(bitPattern: argument)))
            kill(getpid(), SIGKILL)
            return nil
        }, UnsafeMutableRawPointer(bitPattern: UInt(microseconds)))
    while true {
        let number = try database.transaction { () throws(SQLiteError) in
            try database.run("UPDATE account SET sum = sum - 1 WHERE name = 'from'")
            try database.run("UPDATE account SET sum = sum + 1 WHERE name = 'to'")
            let note = Value.blob([UInt8](repeating: 7, count: 2000))
            try database.run("INSERT INTO entry (note) VALUES (?)", [note])
            return database.lastInsertedRow
        }
        let line = Array("\(number)\n".utf8)
        unsafe _ = Glibc.write(log, line, line.count)
    }
}
