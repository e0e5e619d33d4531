// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import Testing

private struct Vector: Decodable { let json, canonical: String }

private func canonical(_ json: String) throws(WireError) -> String {
    String(decoding: try CanonicalJSON.canonicalize(Array(json.utf8)), as: UTF8.self)
}

@Suite struct CanonicalJSONTests {
    @Test func known_answers() throws {
        let vectors: [Vector] = try vectors("canonicaljson.json")
        #expect(vectors.count >= 15)
        for test in vectors {
            #expect(try canonical(test.json) == test.canonical)
            // What is canonical stays as it is.
            #expect(try canonical(test.canonical) == test.canonical)
        }
    }

    /// RFC 8785 section 3.2.3.
    @Test func names_are_sorted_by_utf16() throws {
        let input = #"""
            {"\u20ac": "Euro Sign", "\r": "Carriage Return",
             "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
             "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control",
             "\u00f6": "Latin Small Letter O With Diaeresis"}
            """#
        let expected =
            "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\","
            + "\"\u{F6}\":\"Latin Small Letter O With Diaeresis\",\"\u{20AC}\":\"Euro Sign\","
            + "\"\u{1F600}\":\"Emoji: Grinning Face\","
            + "\"\u{FB33}\":\"Hebrew Letter Dalet With Dagesh\"}"
        // As bytes: Swift's strings are equal by canonical equivalence.
        #expect(Array(try canonical(input).utf8) == Array(expected.utf8))
    }

    /// RFC 8785 section 3.2.2, the string and the literals.
    @Test func strings_and_literals_have_one_spelling() throws {
        let input = #"""
            {"string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
             "literals": [null, true, false]}
            """#
        let expected =
            #"{"literals":[null,true,false],"string":"€$\u000f\nA'B\"\\\\\"/"}"#
        #expect(Array(try canonical(input).utf8) == Array(expected.utf8))
    }

    @Test func only_whole_numbers_that_doubles_hold() throws {
        #expect(try canonical("[0, -0, 9007199254740991]") == "[0,0,9007199254740991]")
        for number in ["9007199254740992", "-9007199254740992", "0.5", "1e400", "1e-7"] {
            #expect(throws: WireError.self, "\(number)", performing: { try canonical(number) })
        }
    }

    @Test func what_is_no_json_is_refused() {
        let texts = [
            "", " ", "{", "{\"a\":1", "{\"a\"}", "\"\\ud800\"", "nul", "1 2",
            String(repeating: "[", count: 100_000),
        ]
        for text in texts {
            #expect(
                throws: WireError.self, "\(text.prefix(20))", performing: { try canonical(text) })
        }
        #expect(
            throws: WireError.self,
            performing: { try CanonicalJSON.canonicalize([0x22, 0xFF, 0x22]) })
    }
}
