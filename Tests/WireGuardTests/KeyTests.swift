// SPDX-License-Identifier: Apache-2.0
import TestSupport
import Testing

@testable import WireGuard

@Suite struct KeyTests {
    /// Keys of RFC 7748 section 6.1; their base64 was made with coreutils' base64(1).
    static let known: [(hex: String, base64: String)] = [
        (
            "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a",
            "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo="
        ),
        (
            "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a",
            "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="
        ),
    ]

    @Test(arguments: known) func known_keys_read_and_print(hex: String, base64: String) throws {
        let key = try PublicKey(hex: hex)
        #expect(key.base64 == base64)
        #expect(try PublicKey(base64: base64) == key)
        #expect(key.hex == hex)
        #expect(try PublicKey(hex: hex.uppercased()) == key)
    }

    @Test func every_random_key_survives_both_texts() throws {
        var random = SeededRandom(seed: 1)
        for _ in 0..<2000 {
            let key = PublicKey(bytes: random.key())
            hold(try PublicKey(hex: key.hex) == key, key.hex)
            hold(try PublicKey(base64: key.base64) == key, key.hex)
        }
    }

    @Test func every_byte_is_a_digit_exactly_when_the_alphabet_has_it() {
        let alphabet = Set(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        let hexadecimal = Set("0123456789abcdefABCDEF".utf8)
        for byte in UInt8.min...UInt8.max {
            for position in [0, 20, 41] {
                var text = [UInt8](repeating: UInt8(ascii: "A"), count: 43) + [UInt8(ascii: "=")]
                text[position] = byte
                let failure = thrown { () throws(KeyError) in try PublicKey(base64: text.span) }
                hold(failure == (alphabet.contains(byte) ? nil : .character), "\(byte)")
            }
            for position in [0, 63] {
                var text = [UInt8](repeating: UInt8(ascii: "0"), count: 64)
                text[position] = byte
                let failure = thrown { () throws(KeyError) in try SecretKey(hex: text.span) }
                hold(failure == (hexadecimal.contains(byte) ? nil : .character), "\(byte)")
            }
        }
    }

    @Test func c07_slash_and_plus_are_ordinary_characters() throws {
        let text = "/+" + String(repeating: "/", count: 40) + "8="
        #expect(try PublicKey(base64: text).base64 == text)
    }

    @Test func c14_only_the_canonical_spelling_is_a_key() {
        let good = "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo="
        func failure(_ text: String) -> KeyError? {
            thrown { () throws(KeyError) in try PublicKey(base64: text) }
        }
        #expect(failure(good) == nil)
        #expect(failure(String(good.dropLast(2)) + "p=") == .notCanonical)
        #expect(failure(String(good.dropLast(2)) + "q=") == .notCanonical)
        #expect(failure(String(good.dropLast(2)) + "r=") == .notCanonical)
        #expect(failure(String(good.dropLast(1))) == .length(43))
        #expect(failure(good + "=") == .length(45))
        #expect(failure(String(good.dropLast(1)) + "A") == .character)
        #expect(failure("=" + String(good.dropLast(1))) == .character)
        #expect(failure("(none)") == .length(6))
        #expect(failure("") == .length(0))
    }

    @Test func c14_c93_an_error_carries_nothing_of_the_text() {
        let text = [UInt8]("dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LC!=".utf8)
        let error = thrown { () throws(KeyError) in try SecretKey(base64: text.span) }
        #expect(error == .character)
        #expect(String(reflecting: error!) == "WireGuard.KeyError.character")
    }

    @Test func c93_a_secret_shows_nothing_to_print_dump_or_mirror() throws {
        let secret = SecretKey(filledWith: 0xAB)
        let change = DeviceChange(privateKey: secret)
        var dumped = ""
        dump(change, to: &dumped)
        dump(PresharedKey(filledWith: 0xAB), to: &dumped)
        var texts = [dumped, "\(secret)", String(reflecting: secret), "\(change)"]
        texts.append("\(Optional(secret) as Any)")
        texts.append(String(describing: Mirror(reflecting: secret).children.map { "\($0)" }))
        // 0xAB is 171; a leak would show one of these.
        for text in texts {
            #expect(!text.contains("171") && !text.contains("abab") && !text.contains("q6ur"))
            #expect(!text.lowercased().contains("0xab"))
        }
        #expect(Mirror(reflecting: secret).children.isEmpty)
        #expect("\(secret)" == "(hidden)")
    }

    @Test func secrets_compare_by_every_byte_and_print_on_demand() throws {
        for position in 0..<32 {
            var bytes = [UInt8](repeating: 7, count: 32)
            bytes[position] ^= 1
            #expect(PresharedKey(copying: bytes.span) != PresharedKey(filledWith: 7))
            bytes = [UInt8](repeating: 0, count: 32)
            bytes[position] = 0x80
            #expect(!SecretKey(copying: bytes.span).isZero)
        }
        #expect(PresharedKey(filledWith: 7) == PresharedKey(filledWith: 7))
        #expect(SecretKey(filledWith: 0).isZero)
        var text: [UInt8] = []
        SecretKey(filledWith: 0xAB).appendHex(to: &text)
        #expect(text == [UInt8](hex(0xAB).utf8))
        let base64 = PublicKey(filledWith: 0xAB).base64
        text = []
        try PresharedKey(base64: [UInt8](base64.utf8).span).appendBase64(to: &text)
        #expect(text == [UInt8](base64.utf8))
    }

    @Test func erasing_a_buffer_leaves_zeros_of_the_same_length() {
        var bytes: [UInt8] = [1, 2, 3]
        erase(&bytes)
        #expect(bytes == [0, 0, 0])
    }
}
