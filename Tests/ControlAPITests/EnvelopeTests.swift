// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import TestSupport
import Testing

private struct Vectors: Decodable {
    struct Good: Decodable { let title, hwid, salt, nonce, plaintext, encrypted: String }
    struct Refused: Decodable { let title, hwid, salt, encrypted: String }
    let good: [Good]
    let refused: [Refused]
}

private func bytes(hex: String) -> [UInt8] {
    let digits = hex.map { UInt8($0.hexDigitValue!) }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}

@Suite struct EnvelopeTests {
    @Test func known_answers_in_both_directions() throws {
        let vectors: Vectors = try vectors("envelope.json")
        #expect(vectors.good.count >= 4)
        for test in vectors.good {
            let plaintext = Array(test.plaintext.utf8)
            let sealed = Envelope.seal(
                plaintext, hwid: test.hwid, salt: test.salt, nonce: bytes(hex: test.nonce))
            #expect(sealed == test.encrypted, "\(test.title)")
            let opened = try Envelope.open(test.encrypted, hwid: test.hwid, salt: test.salt)
            #expect(opened == plaintext, "\(test.title)")
        }
    }

    @Test func case_C69_what_is_damaged_or_of_another_device_is_refused() throws {
        let vectors: Vectors = try vectors("envelope.json")
        #expect(vectors.refused.count >= 10)
        for test in vectors.refused {
            #expect(
                throws: EnvelopeError.self, "\(test.title)",
                performing: { try Envelope.open(test.encrypted, hwid: test.hwid, salt: test.salt) })
        }
    }

    @Test func random_mutations_never_open() throws {
        var random = SeededRandom(seed: 11)
        let hwid = "00112233445566778899aabbccddeeff"
        let alphabet = Array(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=".utf8)
        for round in 0..<5000 {
            let salt = Envelope.newSalt()
            let original = Array(
                Envelope.seal(random.bytes(random.below(40)), hwid: hwid, salt: salt).utf8)
            var text = original
            let position = random.below(text.count)
            switch random.below(4) {
            case 0: text[position] = alphabet[random.below(alphabet.count)]
            case 1: text.remove(at: position)
            case 2: text.insert(alphabet[random.below(alphabet.count)], at: position)
            default: text.swapAt(position, random.below(text.count))
            }
            guard text != original else { continue }
            let mutated = String(decoding: text, as: UTF8.self)
            let failure = thrown { () throws(EnvelopeError) in
                try Envelope.open(mutated, hwid: hwid, salt: salt)
            }
            hold(failure != nil, "round \(round): \(mutated)")
        }
    }

    @Test func nothing_of_the_plaintext_or_nonce_repeats() throws {
        var seen: Set<String> = []
        for _ in 0..<100 {
            let salt = Envelope.newSalt()
            #expect(salt.utf8.count == Envelope.saltLength)
            seen.insert(Envelope.seal([], hwid: "h", salt: salt))
            seen.insert(salt)
        }
        #expect(seen.count == 200)
    }
}
