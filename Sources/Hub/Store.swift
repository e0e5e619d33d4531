// SPDX-License-Identifier: Apache-2.0
import SQLite
import WireGuard

/// The hub's tables. One connection, used under the caller's lock.
final class Store {
    /// Rows of the log that are kept; older ones go.
    static let logLimit = 100_000

    let database: Database
    private var writtenLogs = 0

    /// Opens or makes the file at `path`.
    convenience init(_ path: String) throws(SQLiteError) { try self.init(Database(path)) }

    init(_ database: Database) throws(SQLiteError) {
        self.database = database
        try database.migrate(StoreSchema.steps)
    }

    /// All of `changes` or none of them.
    func write(_ changes: [Change]) throws(SQLiteError) {
        guard !changes.isEmpty else { return }
        try database.transaction { () throws(SQLiteError) in
            for change in changes { try self.write(change) }
        }
        writtenLogs += changes.count
        // Now and then is enough, and cheaper.
        if writtenLogs >= 1000 { forgetLogs() }
    }

    /// `changes` are kept by now: that there is no room to tidy up makes no failure of it. The next
    /// write tries again.
    private func forgetLogs() {
        do throws(SQLiteError) {
            try database.run(
                "DELETE FROM log WHERE id <= (SELECT max(id) FROM log) - ?",
                [.integer(Int64(Self.logLimit))])
            writtenLogs = 0
        } catch {}
    }

    private func write(_ change: Change) throws(SQLiteError) {
        switch change {
        case .settings(let settings):
            for (name, value) in settings.rows {
                try put("settings", ["name", "value"], [.text(name), .text(value)])
            }
        case .device(let device): try update("devices", Device.columns, device.values)
        case .removeDevice(let id): try delete("devices", "id", id)
        case .token(let token): try put("tokens", EnrolToken.columns, token.values)
        case .removeToken(let id): try delete("tokens", "id", id)
        case .credential(let credential):
            try put("credentials", Credential.columns, credential.values)
        case .removeCredential(let digest): try delete("credentials", "digest", digest)
        case .forward(let rule): try put("forwards", ForwardRule.columns, rule.values)
        case .removeForward(let id): try delete("forwards", "id", id)
        case .quarantine(let address, let until):
            try put(
                "quarantine", ["address", "until"], [.text("\(address)"), .integer(until)])
        case .endQuarantine(let address): try delete("quarantine", "address", "\(address)")
        case .alarm(let alarm): try put("alarms", Alarm.columns, alarm.values)
        case .removeAlarm(let id): try delete("alarms", "id", .integer(id))
        case .account(let account): try put("accounts", OperatorAccount.columns, account.values)
        case .removeAccount(let name): try delete("accounts", "name", name)
        case .log(let record):
            let marks = LogRecord.columns.map { _ in "?" }.joined(separator: ",")
            try database.run(
                "INSERT INTO log (\(LogRecord.columns.joined(separator: ","))) VALUES (\(marks))",
                record.values)
        }
    }

    private func put(
        _ table: String, _ columns: [String], _ values: [Value]
    ) throws(SQLiteError) {
        let marks = columns.map { _ in "?" }.joined(separator: ",")
        try database.run(
            "INSERT OR REPLACE INTO \(table) (\(columns.joined(separator: ","))) VALUES (\(marks))",
            values)
    }

    /// As `put`, but a row that is there stays the same row: REPLACE would delete it first, and with
    /// it the rows of other tables that refer to it.
    private func update(
        _ table: String, _ columns: [String], _ values: [Value]
    ) throws(SQLiteError) {
        let marks = columns.map { _ in "?" }.joined(separator: ",")
        let sets = columns.dropFirst().map { "\($0)=excluded.\($0)" }.joined(separator: ",")
        try database.run(
            "INSERT INTO \(table) (\(columns.joined(separator: ","))) VALUES (\(marks)) "
                + "ON CONFLICT(\(columns[0])) DO UPDATE SET \(sets)", values)
    }

    private func delete(_ table: String, _ key: String, _ value: String) throws(SQLiteError) {
        try delete(table, key, .text(value))
    }

    private func delete(_ table: String, _ key: String, _ value: Value) throws(SQLiteError) {
        try database.run("DELETE FROM \(table) WHERE \(key) = ?", [value])
    }

    // MARK: reading

    /// Everything, as it was written. Throws `StoreError` for rows that this program cannot have
    /// written.
    func load() throws(StoreError) -> Model {
        var model = Model()
        model.apply([.settings(try settings())])
        try each("devices", Device.init) { model.apply(.device($0)) }
        try each("tokens", EnrolToken.init) { model.apply(.token($0)) }
        try each("credentials", Credential.init) { model.apply(.credential($0)) }
        try each("forwards", ForwardRule.init) { model.apply(.forward($0)) }
        try each("alarms", Alarm.init) { model.apply(.alarm($0)) }
        try each("accounts", OperatorAccount.init) { model.apply(.account($0)) }
        try each("quarantine", Self.quarantine) { model.apply($0) }
        return model
    }

    private static func quarantine(_ row: Row) -> Change? {
        guard let address = row.text("address").flatMap({ IPAddress($0) }),
            let until = row.integer("until")
        else { return nil }
        return .quarantine(address, until: until)
    }

    private func settings() throws(StoreError) -> HubSettings {
        var values: [String: String] = [:]
        try each("settings") { row -> (String, String)? in
            guard let name = row.text("name"), let value = row.text("value") else { return nil }
            return (name, value)
        } body: {
            values[$0.0] = $0.1
        }
        guard let settings = HubSettings(rows: values) else {
            throw StoreError(unreadable: "settings", in: database.path)
        }
        return settings
    }

    /// All rows of `table`, none of which this program cannot read.
    func each<Value>(
        _ table: String, _ read: (Row) -> Value?, body: (Value) -> Void
    ) throws(StoreError) {
        var isReadable = true
        do throws(SQLiteError) {
            try database.forEachRow("SELECT * FROM \(table)") { row in
                guard let value = read(row) else {
                    isReadable = false
                    return false
                }
                body(value)
                return true
            }
        } catch {
            throw StoreError(error)
        }
        if !isReadable { throw StoreError(unreadable: table, in: database.path) }
    }
}

/// Why the hub's memory cannot be read or written.
public struct StoreError: Error, Equatable, Sendable, CustomStringConvertible {
    public let description: String
    /// The disk is full.
    public var isFull = false

    public init(_ error: SQLiteError) {
        description = error.description
        isFull = error.kind == .full
    }

    init(unreadable table: String, in path: String) {
        description =
            "cannot use \(path): a row of the table \(table) is not understood; use the program "
            + "that wrote it, or restore a backup"
    }
}
