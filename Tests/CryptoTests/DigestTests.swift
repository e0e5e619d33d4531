// SPDX-License-Identifier: Apache-2.0
import Crypto
import Testing

@Suite struct DigestTests {
    /// The examples of FIPS 180-4 that NIST publishes with the standard.
    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
        (
            String(repeating: "a", count: 1_000_000),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        ),
    ])
    func sha256OfFIPS1804(text: String, digest: String) {
        #expect(hexadecimal(SHA256.hash(Array(text.utf8))) == digest)
    }

    @Test func comparisonSeesEveryByteAndTheLength() {
        let original = Random.bytes(64)
        #expect(equalInConstantTime(original, original))
        #expect(equalInConstantTime([], []))
        #expect(!equalInConstantTime(original, []))
        #expect(!equalInConstantTime(original, original + [0]))
        for index in original.indices {
            var other = original
            other[index] ^= 1
            #expect(!equalInConstantTime(original, other))
        }
    }

    @Test func randomBytesDifferAndHaveTheirLength() {
        #expect(Random.bytes(0).isEmpty)
        #expect(Set((0..<256).map { _ in Random.bytes(16) }).count == 256)
    }

    /// RFC 9562 section 5.4: version 4, variant 10.
    @Test func uuidsAreOfVersion4() {
        for _ in 0..<64 {
            let text = Array(Random.uuid().utf8)
            #expect(text.count == 36)
            for (index, character) in text.enumerated() {
                switch index {
                case 8, 13, 18, 23: #expect(character == UInt8(ascii: "-"))
                case 14: #expect(character == UInt8(ascii: "4"))
                case 19: #expect("89ab".utf8.contains(character))
                default: #expect("0123456789abcdef".utf8.contains(character))
                }
            }
        }
    }
}
