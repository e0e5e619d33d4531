// SPDX-License-Identifier: Apache-2.0
import FoundationEssentials
import Testing
import WireGuard

@testable import TunnelEngine

/// The document as its readers see it: an independent JSON parser fills this.
// swift-format-ignore: AlwaysUseLowerCamelCase
struct Document: Decodable, Equatable {
    struct Direction: Decodable, Equatable {
        var packets, bytes, batches, system_calls, cpu_ns: UInt64
        var histogram: [UInt64]
    }
    struct Worker: Decodable, Equatable {
        var split: Bool
        var spun_ns, spin_hits: UInt64
        var tx, rx: Direction
    }
    var schemaVersion: Int
    var name, version, aead, timestamp_floor: String
    var sessions: UInt32
    var ladder: [String: Bool]
    var drops, fallbacks, handshakes: [String: UInt64]
    var staged_bytes, control_wakeups: UInt64
    var workers: [Worker]
}

/// A source that is nothing but a text and a floor.
final class MemorySource: StateSource {
    var document = "{}"
    var floors: [TimestampFloor] = []
    func stateDocument() -> [UInt8] { [UInt8](document.utf8) }
    func raiseTimestampFloor(to floor: TimestampFloor) { floors.append(floor) }
}

@Suite struct StateDocumentTests {
    @Test func every_member_is_where_the_description_says() throws {
        typealias Named = EngineStatistics.Named
        var statistics = EngineStatistics()
        statistics.aead = "libcrypto"
        statistics.sessions = 3
        statistics.ladder = [Named("udp_gso", true), Named("udp_gro", false)]
        statistics.drops = [Named("tag_invalid", .max), Named("link_down", 0)]
        statistics.fallbacks = [Named("udp_gso_eio", 1)]
        statistics.handshakesInitiated = 4
        statistics.handshakesCompleted = 5
        statistics.handshakeMessagesReceived = 6
        statistics.cookieRepliesSent = 7
        statistics.stagedBytes = 8
        statistics.controlWakeups = 9
        var worker = EngineStatistics.Worker()
        worker.isSplit = true
        (worker.spunNanoseconds, worker.spinHits) = (15, 16)
        worker.sending.packets = 10
        worker.sending.bytes = 11
        worker.sending.batches = 12
        worker.sending.systemCalls = 13
        worker.sending.cpuNanoseconds = 14
        worker.sending.histogram = [1, 2, 3]
        worker.receiving.packets = 20
        statistics.workers = [worker, EngineStatistics.Worker()]
        let json = StateDocument(
            name: "wg0", version: "1.2.3",
            timestampFloor: TimestampFloor(seconds: 5, nanoseconds: 6), statistics: statistics
        ).json()
        let document = try JSONDecoder().decode(Document.self, from: Data(json))
        let empty = Document.Direction(
            packets: 0, bytes: 0, batches: 0, system_calls: 0, cpu_ns: 0, histogram: [])
        var sending = empty
        (sending.packets, sending.bytes, sending.batches) = (10, 11, 12)
        (sending.system_calls, sending.cpu_ns, sending.histogram) = (13, 14, [1, 2, 3])
        var receiving = empty
        receiving.packets = 20
        #expect(
            document
                == Document(
                    schemaVersion: 1, name: "wg0", version: "1.2.3", aead: "libcrypto",
                    timestamp_floor: "5.000000006", sessions: 3,
                    ladder: ["udp_gso": true, "udp_gro": false],
                    drops: ["tag_invalid": .max, "link_down": 0], fallbacks: ["udp_gso_eio": 1],
                    handshakes: [
                        "initiated": 4, "completed": 5, "messages_received": 6,
                        "cookie_replies_sent": 7,
                    ], staged_bytes: 8, control_wakeups: 9,
                    workers: [
                        Document.Worker(
                            split: true, spun_ns: 15, spin_hits: 16, tx: sending, rx: receiving),
                        Document.Worker(
                            split: false, spun_ns: 0, spin_hits: 0, tx: empty, rx: empty),
                    ]))
    }

    @Test func every_character_survives_an_independent_reader() throws {
        var text = "\"\\/\u{7f}é€😀\u{2028}"
        for scalar in 0..<32 as Range<UInt8> { text.unicodeScalars.append(Unicode.Scalar(scalar)) }
        var writer = JSONWriter()
        writer.beginArray()
        writer.string(nil, text)
        writer.bool(nil, true)
        writer.number(nil, .max)
        writer.beginObject()
        writer.endObject()
        writer.beginObject()
        writer.string(text, "")
        writer.endObject()
        writer.endArray()
        struct Mixed: Decodable {
            init(from decoder: any Decoder) throws {
                var list = try decoder.unkeyedContainer()
                text = try list.decode(String.self)
                bool = try list.decode(Bool.self)
                number = try list.decode(UInt64.self)
                empty = try list.decode([String: String].self)
                named = try list.decode([String: String].self)
                isAtEnd = list.isAtEnd
            }
            let text: String
            let bool: Bool
            let number: UInt64
            let empty, named: [String: String]
            let isAtEnd: Bool
        }
        let mixed = try JSONDecoder().decode(Mixed.self, from: Data(writer.text))
        #expect(mixed.text == text)
        #expect(mixed.bool && mixed.number == .max && mixed.empty.isEmpty && mixed.isAtEnd)
        #expect(mixed.named == [text: ""])
        #expect(!writer.text.contains(UInt8(ascii: "\n")))
    }
}

@Suite struct StateConnectionTests {
    let source = MemorySource()

    private func converse(_ fragments: [[UInt8]]) -> (output: String, mustClose: Bool) {
        var connection = StateConnection()
        var output: [UInt8] = []
        for fragment in fragments {
            connection.receive(fragment, source: source)
            output += connection.takeOutput()
        }
        return (String(decoding: output, as: UTF8.self), connection.mustClose)
    }

    private func converse(_ input: String) -> (output: String, mustClose: Bool) {
        converse([[UInt8](input.utf8)])
    }

    @Test func get_answers_with_the_document_and_a_newline() {
        source.document = "{\"a\":1}"
        #expect(converse("get=1\n\nget=1\n\n") == ("{\"a\":1}\n{\"a\":1}\n", false))
    }

    @Test func c78_a_floor_is_raised_once_its_blank_line_was_read() {
        var connection = StateConnection()
        connection.receive(
            [UInt8]("set=1\ntimestamp_floor=1700000000.000000005\n".utf8), source: source)
        #expect(source.floors.isEmpty && connection.isWithinOperation)
        connection.receive([UInt8]("\n".utf8), source: source)
        #expect(source.floors == [TimestampFloor(seconds: 1_700_000_000, nanoseconds: 5)])
        #expect(connection.takeOutput() == [UInt8]("errno=0\n\n".utf8))
        #expect(!connection.mustClose && !connection.isWithinOperation)
    }

    @Test func byte_by_byte_means_the_same() {
        let input = "get=1\n\nset=1\ntimestamp_floor=1.000000000\n\nget=1\n\nset=1\nx=1\n\n"
        let expected = converse(input)
        #expect(expected == ("{}\nerrno=0\n\n{}\nerrno=-22\n\n", true))
        #expect(converse(input.utf8.map { [$0] }) == expected)
        #expect(source.floors.count == 2)
    }

    @Test(arguments: [
        ("set=1\ntimestamp_floor=5\n\n", 22), ("set=1\ntimestamp_floor=5.5\n\n", 22),
        ("set=1\ntimestamp_floor=.000000000\n\n", 22), ("set=1\ntimestamp_floor=\n\n", 22),
        ("set=1\ntimestamp_floor=-1.000000000\n\n", 22),
        ("set=1\ntimestamp_floor=1,000000000\n\n", 22),
        ("set=1\ntimestamp_floor=1.0000000000\n\n", 22),
        ("set=1\ntimestamp_floor=1.00000000x\n\n", 22),
        ("set=1\ntimestamp_floor=18446744073709551616.000000000\n\n", 22),
        ("set=1\ntimestamp_floo=1.000000000\n\n", 22), ("set=1\nlisten_port=1\n\n", 22),
        ("set=1\nx\n\n", 22), ("get=1\nx\n\n", 22), ("set=2\n\n", 71), ("\n", 71),
        ("get=1 \n\n", 71),
    ]) func a_bad_request_is_refused_and_changes_nothing(input: String, errno: Int) {
        #expect(converse(input) == ("errno=-\(errno)\n\n", true))
        #expect(source.floors.isEmpty)
    }

    @Test func a_long_line_is_refused_without_being_kept() {
        let flood = [UInt8](repeating: UInt8(ascii: "x"), count: LineAssembler.limit + 1)
        #expect(converse([flood]) == ("errno=-5\n\n", true))
    }

    @Test func a_floor_prints_and_reads_back_with_nine_digits() {
        for (floor, text) in [
            (TimestampFloor(seconds: 0, nanoseconds: 0), "0.000000000"),
            (
                TimestampFloor(seconds: .max, nanoseconds: 999_999_999),
                "18446744073709551615.999999999"
            ),
            (TimestampFloor(seconds: 7, nanoseconds: 10), "7.000000010"),
        ] {
            #expect(floor.description == text)
            #expect(TimestampFloor([UInt8](text.utf8).span) == floor)
        }
        #expect(
            TimestampFloor(seconds: 1, nanoseconds: 9) < TimestampFloor(seconds: 2, nanoseconds: 0))
        #expect(
            TimestampFloor(seconds: 1, nanoseconds: 1) < TimestampFloor(seconds: 1, nanoseconds: 2))
    }
}
