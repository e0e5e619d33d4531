// SPDX-License-Identifier: Apache-2.0
import Glibc
import HostProcess
import SQLite
import Storage

/// Writes everything once, fills the file system, writes everything again, makes room and writes a
/// third time. After each, what is read.
struct FullDisk {
    private let directory: StateDirectory
    private let documents: LastGood
    private let secrets: SecretStore
    private let log: Logger
    private let table: Database

    init(_ directory: StateDirectory) throws {
        self.directory = directory
        documents = LastGood(directory)
        secrets = try SecretStore(
            directory, keySource: .file, machine: String(repeating: "0", count: 32))
        log = Logger(program: "storage-probe", output: .function { _ in }, directory: directory)
        table = try Database(directory.file("table.db"))
        try table.execute("CREATE TABLE t (x INTEGER PRIMARY KEY, y BLOB)")
    }

    func run() throws {
        write(1)
        try show("first")
        try fill()
        for number in 2...40 { write(number) }
        try show("full")
        try HostFile.remove(directory.file("filler"))
        write(41)
        try show("room")
    }

    private func write(_ number: Int) {
        let bytes = [UInt8](repeating: UInt8(number), count: 100_000)
        attempt("document", number) { try documents.write("config", bytes) }
        attempt("secret", number) { try secrets.seal("token", bytes) }
        attempt("table", number) {
            try table.run("INSERT INTO t VALUES (?, ?)", [.integer(Int64(number)), .blob(bytes)])
        }
        // Each from a place of its own, so that none is left out as a repetition.
        let text = String(repeating: "x", count: 20_000)
        log.log(.warn, "probe", "\(number) \(text)", file: "probe", line: UInt(number))
    }

    /// Says what went wrong in another way than by a full disk.
    private func attempt(_ what: String, _ number: Int, _ body: () throws -> Void) {
        do {
            try body()
        } catch let error as StorageError where error.kind == .full {
            if number == 2 { say("\(what): \(error)") }
        } catch let error as SQLiteError where error.kind == .full {
            if number == 2 { say("\(what): \(error)") }
        } catch {
            say("\(what) \(number): WRONG: \(error)")
        }
    }

    private func fill() throws {
        let file = unsafe open(directory.file("filler"), O_WRONLY | O_CREAT, 0o600)
        guard file >= 0 else { fail("cannot make the filler") }
        defer { close(file) }
        for size in [65_536, 4096, 1] {
            let bytes = [UInt8](repeating: 0, count: size)
            while unsafe Glibc.write(file, bytes, size) > 0 {}
        }
    }

    private func show(_ moment: String) throws {
        let document = try documents.read("config")?.bytes.first.map(String.init) ?? "none"
        let secret = try secrets.open("token")?.first.map(String.init) ?? "none"
        let rows = try table.rows("SELECT x FROM t ORDER BY x").compactMap { $0.integer("x") }
        let isSound = try table.integrityCheck().isEmpty
        let numbers = rows.map(String.init).joined(separator: ",")
        say("\(moment): document \(document), secret \(secret), table \(numbers) sound \(isSound)")
        let records = try LogHistory.read(directory, LogHistory.Query()).records
        let messages = records.map { $0.message.prefix { $0 != " " } }
        say("\(moment): log \(messages.joined(separator: ","))")
        let names = Host.names(in: directory.path).filter { $0.hasPrefix(".") }
        say("\(moment): drafts \(names.count)")
    }
}
