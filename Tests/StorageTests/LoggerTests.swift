// SPDX-License-Identifier: Apache-2.0
import Glibc
import HostProcess
import SQLite
import Synchronization
import TestSupport
import Testing
import WireGuard

@testable import Storage

@Suite struct LoggerTests {
    let directory = TemporaryDirectory()
    let clock = TestClock()

    /// What the output was given.
    final class Lines: Sendable {
        private let records = Mutex<[LogRecord]>([])
        var all: [LogRecord] { records.withLock { $0 } }
        var output: LogOutput {
            .function { record in self.records.withLock { $0.append(record) } }
        }
    }

    private func logger(
        _ output: LogOutput = .function { _ in }, minimum: LogLevel = .debug,
        limit: Int64 = LogHistory.defaultLimit
    ) throws -> Logger {
        Logger(
            program: "test", minimum: minimum, output: output, directory: try directory.state(),
            historyLimit: limit, clock: clock.clock)
    }

    private func stored(_ level: LogLevel = .debug) throws -> [LogRecord] {
        var query = LogHistory.Query()
        query.minimumLevel = level
        return try LogHistory.read(try directory.state(), query).records
    }

    @Test func aRecordKeepsItsParts() throws {
        let lines = Lines()
        let log = try logger(lines.output)
        log.warn(
            "heartbeat", "no answer from \("hub")",
            [
                LogField("status", 503), LogField("url", "https://a/b"), LogField("again", true),
                LogField("offset", -5), LogField("text", "\"\n\u{1}é"),
            ])
        let record = try #require(lines.all.first)
        #expect(try stored().map(\.message) == ["no answer from hub"])
        #expect(try stored()[0].fields[0] == LogField("status", 503))
        #expect(try stored()[0].fields[2] == LogField("again", true))
        #expect(try stored()[0].fields[4] == LogField("text", "\"\n\u{1}é"))
        #expect(
            String(decoding: record.json, as: UTF8.self)
                == #"{"ts":"1970-01-01T00:16:40.000Z","level":"warn","tag":"heartbeat","#
                + #""msg":"no answer from hub","status":503,"url":"https://a/b","again":true,"#
                + #""offset":-5,"text":"\"\u000a\u0001é"}"#)
    }

    @Test func case_C93_aSecretHasNoTextInMessagesAndFields() throws {
        let lines = Lines()
        let log = try logger(lines.output)
        let key = try SecretKey(hex: Array(String(repeating: "a5", count: 32).utf8).span)
        log.error("key", "using \(key)", [LogField("key", "\(key)")])
        #expect(lines.all.map(\.message) == ["using (hidden)"])
        #expect(lines.all[0].fields == [LogField("key", "(hidden)")])
    }

    @Test func case_C109_anErrorTenTimesASecondStaysSmall() throws {
        let lines = Lines()
        let log = try logger(lines.output)
        for _ in 0..<36_000 {
            log.error("tun", "cannot read: I/O error")
            clock.advance(100)
        }
        log.close()
        let allowed = 60 * RepeatLimit.allowed
        #expect(lines.all.filter { $0.message == "cannot read: I/O error" }.count == allowed)
        let repeated = lines.all.flatMap(\.fields).filter { $0.name == "repeated" }
        let left = repeated.reduce(Int64(0)) { sum, field in
            if case .number(let number) = field.value { sum + number } else { sum }
        }
        #expect(left == Int64(36_000 - allowed))
        #expect(try stored().count == lines.all.count)
    }

    @Test func case_C111_nothingIsWrittenToDiskBeforeHalfAMinute() throws {
        let log = try logger()
        for _ in 0..<10 {
            log.debug("a", "detail")
            log.info("a", "news")
            clock.advance(2990)
        }
        #expect(try stored() == [])
        clock.advance(100)
        log.flushIfDue()
        #expect(try stored().map(\.message) == Array(repeating: "news", count: 10))
        log.flushIfDue()
        #expect(try stored().count == 10)
    }

    @Test func case_C111_aWarningBringsWhatWentBefore() throws {
        let log = try logger()
        log.debug("a", "first")
        log.info("a", "second")
        log.debug("a", "third")
        log.warn("a", "fourth")
        #expect(try stored().map(\.message) == ["first", "second", "third", "fourth"])
    }

    @Test func debugRecordsThatNothingFollowedAreDropped() throws {
        let log = try logger()
        for number in 0..<3 * Logger.capacity {
            // Every place in the program is limited: pretend to be many.
            log.log(.debug, "a", "detail \(number)", file: "x", line: UInt(number))
        }
        log.warn("a", "now")
        let records = try stored()
        #expect(records.count == Logger.capacity)
        #expect(records.last?.message == "now")
        #expect(!records.contains { $0.message.contains("missing") })
    }

    @Test func orderIsThatOfWritingWhateverTheClockDoes() throws {
        let log = try logger()
        log.warn("a", "first")
        clock.jump(-500_000)
        log.warn("a", "second")
        clock.jump(1_000_000)
        log.warn("a", "third")
        #expect(try stored().map(\.message) == ["first", "second", "third"])
        #expect(try stored().map(\.milliseconds) == [1_000_000, 500_000, 1_500_000])
        clock.jump(-1_500_000)
        log.info("a", "fourth")
        clock.advance(Logger.flushInterval)
        log.flushIfDue()
        #expect(try stored().last?.message == "fourth")
    }

    @Test func theOutputHasItsOwnLevel() throws {
        let lines = Lines()
        let log = try logger(lines.output, minimum: .warn)
        log.info("a", "quiet")
        log.warn("a", "loud")
        #expect(lines.all.map(\.message) == ["loud"])
        #expect(try stored().map(\.message) == ["quiet", "loud"])
    }

    @Test func aFollowerSeesARecordAtOnce() throws {
        let log = try logger()
        log.warn("a", "before")
        let last = try stored().last?.sequence ?? 0
        var follower = LogFollower(try directory.state(), after: last)
        #expect(try follower.next(minimum: .info) == [])
        var poller = Poller()
        let descriptor = follower.descriptor
        let written = poller.add(try #require(descriptor))
        poller.wait(milliseconds: 0)
        #expect(!poller.isReadable(written), "its own look wakes nobody")
        // The mark is as old as the clock of the test: now.
        clock.jump(UniversalTime.now() - 1_000_000)
        log.info("a", "after")
        poller.wait(milliseconds: 0)
        #expect(poller.isReadable(written), "what is written wakes it")
        #expect(try follower.next(minimum: .info).map(\.message) == ["after"])
        #expect(try follower.next(minimum: .info) == [])
        clock.advance(60_000)
        log.info("a", "the mark of a killed follower is old by now")
        #expect(try stored().last?.message == "after")
    }

    @Test func theEndOfAFollowerRemovesItsMark() throws {
        do {
            var follower = LogFollower(try directory.state(), after: 0)
            #expect(try follower.next(minimum: .debug) == [])
            #expect(directory.names == ["log.follow"])
        }
        #expect(directory.names == [])
    }

    @Test func aDamagedHistoryIsKeptAsideAndANewOneBegun() throws {
        try directory.overwrite("log.db", Array(String(repeating: "x", count: 5000).utf8))
        let lines = Lines()
        let log = try logger(lines.output)
        #expect(lines.all.first?.message.contains("a new history begins") == true)
        log.warn("a", "goes on")
        #expect(try stored().last?.message == "goes on")
        #expect(try directory.read("log.db.damaged").count == 5000)
    }

    @Test func whatIsVeryLongIsCut() throws {
        let lines = Lines()
        let long = String(repeating: "é", count: 1_000_000)
        try logger(lines.output).warn("a", "\(long)", [LogField("b", "\(long)")])
        let record = try #require(lines.all.first)
        #expect(record.message == String(repeating: "é", count: 2000) + "…")
        #expect(record.fields == [LogField("b", "\(String(repeating: "é", count: 500))…")])
        #expect(try stored().map(\.message) == [record.message])
    }

    /// One test only: the receiver is the process's.
    @Test func linesOfTheProcessAreTakenOverWithTheirPlace() throws {
        let lines = Lines()
        let log = try logger(lines.output)
        log.receiveLines(tag: "hub")
        defer { Log.forward(to: nil) }
        for _ in 0..<RepeatLimit.allowed + 1 { Log.write(.warning, "from one place") }
        Log.write(.error, "from another")
        #expect(lines.all.count == RepeatLimit.allowed + 1)
        #expect(lines.all.last?.message == "from another")
        #expect(lines.all.last?.level == .error)
        #expect(lines.all.first?.tag == "hub")
    }

    @Test func severalThreadsLoseNothing() async throws {
        let log = try logger()
        await withTaskGroup { group in
            for thread in 0..<4 {
                group.addTask {
                    for number in 0..<200 {
                        log.log(
                            number % 50 == 0 ? .warn : .info, "t\(thread)", "\(number)",
                            file: "\(thread)", line: UInt(number))
                    }
                }
            }
        }
        log.close()
        let records = try stored()
        for thread in 0..<4 {
            let mine = records.filter { $0.tag == "t\(thread)" }.map(\.message)
            #expect(mine == (0..<200).map(String.init))
        }
    }
}
