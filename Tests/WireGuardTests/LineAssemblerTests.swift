// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import WireGuard

@Suite struct LineAssemblerTests {
    /// What the assembler says to each fragment: lines as text, "!" for one that is too long.
    private func lines(_ fragments: [String]) -> [String] {
        var assembler = LineAssembler()
        var result: [String] = []
        for fragment in fragments {
            let bytes = [UInt8](fragment.utf8)
            var position = 0
            reading: while true {
                switch assembler.next(in: bytes.span, at: &position) {
                case .incomplete: break reading
                case .within(let range):
                    result.append(String(decoding: bytes[range], as: UTF8.self))
                case .assembled(let line):
                    result.append(String(decoding: line, as: UTF8.self))
                    assembler.recycle(line)
                case .tooLong: result.append("!")
                }
            }
            #expect(position == bytes.count)
        }
        return result
    }

    @Test func lines_come_whole_from_any_fragments() {
        #expect(lines(["a\nbc\n\nd"]) == ["a", "bc", ""])
        #expect(lines(["a", "b", "", "c\nd", "\n", "\n"]) == ["abc", "d", ""])
    }

    @Test func a_long_line_is_said_once_and_skipped_to_its_end() {
        let half = String(repeating: "x", count: LineAssembler.limit)
        #expect(lines(["a\n" + half + half + "\nb\n"]) == ["a", "!", "b"])
        #expect(lines(["a\n", half, half, half, "x\nb\n"]) == ["a", "!", "b"])
        #expect(lines([half + "y", "rest", "\n", "b", "\n"]) == ["!", "b"])
        #expect(lines([half, "y\nb\n"]) == ["!", "b"])
    }

    @Test func a_line_of_exactly_the_limit_is_a_line() {
        let full = String(repeating: "x", count: LineAssembler.limit)
        #expect(lines([full + "\n"]) == [full])
        #expect(lines([full, "\n"]) == [full])
        #expect(lines(["x", String(full.dropLast()), "\n"]) == [full])
    }

    @Test func reset_forgets_a_beginning() {
        var assembler = LineAssembler()
        let beginning = [UInt8]("abc".utf8)
        var position = 0
        guard case .incomplete = assembler.next(in: beginning.span, at: &position) else {
            Issue.record("a beginning is no line")
            return
        }
        assembler.reset()
        let next = [UInt8]("d\n".utf8)
        position = 0
        guard case .within(0..<1) = assembler.next(in: next.span, at: &position) else {
            Issue.record("the beginning was kept")
            return
        }
    }
}
