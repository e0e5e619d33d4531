// SPDX-License-Identifier: Apache-2.0
import Glibc
import HostProcess
import SQLite
import TestSupport
import Testing

@testable import Storage

@Suite struct LogHistoryTests {
    let directory = TemporaryDirectory()

    private func record(_ text: String, _ level: LogLevel = .info, at time: Int64 = 0) -> LogRecord
    {
        LogRecord(
            sequence: 0, milliseconds: time, level: level, tag: "t", message: text, fields: [])
    }

    private var size: Int64 {
        get throws {
            try ["log.db", "log.db-wal"].reduce(0) { sum, name in
                sum + (try FileStatus.of(directory.file(name))?.size ?? 0)
            }
        }
    }

    @Test func case_C109_theSizeOnDiskStaysBelowTheLimit() throws {
        let limit: Int64 = 256 << 10
        let history = try LogHistory(try directory.state(), limit: limit)
        let text = String(repeating: "x", count: 500)
        var largest: Int64 = 0
        for batch in 0..<100 {
            #expect(try history.append((0..<50).map { record("\(batch).\($0) \(text)") }) == 0)
            largest = max(largest, try FileStatus.of(directory.file("log.db"))?.size ?? 0)
        }
        #expect(largest <= limit)
        // The write-ahead log is emptied at 1000 pages, and cut to a MiB (Database).
        #expect(try size <= limit + 5 << 20)
        let records = try history.records(LogHistory.Query())
        #expect(records.last?.message.hasPrefix("99.49 ") == true)
        #expect(records.count > 100 && records.count < 5000)
        // Without a gap: the oldest ones are those that went.
        #expect(records.map(\.sequence) == Array(5000 - Int64(records.count) + 1...5000))
    }

    @Test func ofABatchLargerThanTheLimitTheNewestAreKept() throws {
        let history = try LogHistory(try directory.state(), limit: 128 << 10)
        #expect(try history.append([record("first")]) == 0)
        let text = String(repeating: "x", count: 1000)
        let leftOut = try history.append((0..<200).map { record("\($0) \(text)") })
        let records = try history.records(LogHistory.Query())
        #expect(records.last?.message.hasPrefix("199 ") == true)
        #expect(leftOut > 100 && records.count == 1 + 200 - leftOut)
        #expect(try history.append([record(String(repeating: "x", count: 1 << 20))]) == 1)
        #expect(try history.append([record("next")]) == 0)
        #expect(try history.records(LogHistory.Query()).map(\.message).last == "next")
    }

    @Test func queriesChooseByLevelTimeAndNumber() throws {
        let history = try LogHistory(try directory.state())
        _ = try history.append([
            record("a", .debug, at: 10), record("b", .info, at: 20), record("c", .warn, at: 5),
            record("d", .error, at: 30),
        ])
        func found(_ change: (inout LogHistory.Query) -> Void) throws -> [String] {
            var query = LogHistory.Query()
            change(&query)
            return try history.records(query).map(\.message)
        }
        #expect(try found { _ in } == ["a", "b", "c", "d"])
        #expect(try found { $0.minimumLevel = .warn } == ["c", "d"])
        #expect(try found { $0.since = 10 } == ["a", "b", "d"])
        #expect(try found { $0.after = 2 } == ["c", "d"])
        #expect(try found { $0.limit = 2 } == ["c", "d"])
        #expect(try found { $0.limit = 0 } == [])
    }

    @Test func clearingLeavesNothingAndNumbersGoOn() throws {
        let history = try LogHistory(try directory.state())
        _ = try history.append([record("needle-in-the-log"), record("b")])
        try LogHistory.clear(try directory.state())
        for name in ["log.db", "log.db-wal"] {
            let text = String(decoding: try directory.read(name), as: UTF8.self)
            #expect(!text.contains("needle"), "\(name)")
        }
        _ = try history.append([record("c")])
        let records = try history.records(LogHistory.Query())
        #expect(records.map(\.message) == ["c"])
        #expect(records[0].sequence == 3)
    }

    @Test func aHistoryThatIsNotThereIsSaid() throws {
        let state = try directory.state()
        let error = failure { () throws(StorageError) in
            _ = try LogHistory.read(state, LogHistory.Query())
        }
        #expect(error?.kind == .missing)
        try LogHistory.clear(state)
        #expect(directory.names == [])
    }

    @Test func aLinkInItsPlaceIsRefused() throws {
        let state = try directory.state()
        unsafe symlink("/nowhere", directory.file("log.db"))
        let reading = failure { () throws(StorageError) in
            _ = try LogHistory.read(state, LogHistory.Query())
        }
        #expect(reading?.kind == .notPrivate)
        #expect(
            failure { () throws(StorageError) in try LogHistory.clear(state) }?.kind == .notPrivate)
    }

    @Test func fieldsOfTheJournalHaveItsNames() {
        let record = LogRecord(
            sequence: 1, milliseconds: 0, level: .warn, tag: "sync", message: "m",
            fields: [
                LogField("configHash", "x"), LogField("device-id", 7), LogField("ÄÖ", "y"),
                LogField("Upper", "z"),
            ])
        let fields = journalFields(record, program: "nexusguard-agent")
        #expect(
            fields.map { "\($0.name)=\($0.value)" } == [
                "MESSAGE=m", "PRIORITY=4", "SYSLOG_IDENTIFIER=nexusguard-agent",
                "NEXUSGUARD_TAG=sync", "NEXUSGUARD_CONFIG_HASH=x", "NEXUSGUARD_DEVICE_ID=7",
                "NEXUSGUARD___=y", "NEXUSGUARD_UPPER=z",
            ])
    }

    @Test func membersOfJSONDoNotCollide() {
        let record = LogRecord(
            sequence: 1, milliseconds: 0, level: .info, tag: "t", message: "m",
            fields: [LogField("msg", "x"), LogField("a", 1), LogField("a", 2)])
        #expect(
            String(decoding: record.json, as: UTF8.self)
                == #"{"ts":"1970-01-01T00:00:00.000Z","level":"info","tag":"t","msg":"m","#
                + #""msg_":"x","a":1,"a_":2}"#)
    }
}
