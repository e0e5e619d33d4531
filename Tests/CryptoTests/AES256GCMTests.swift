// SPDX-License-Identifier: Apache-2.0
import Crypto
import TestSupport
import Testing

/// The test cases for 256-bit keys of McGrew and Viega, "The Galois/Counter Mode of Operation
/// (GCM)", appendix B, which NIST published with SP 800-38D.
private struct Case: Sendable {
    let key, nonce, aad, plaintext, ciphertext, tag: String
}

private let largeKey = "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308"
private let largeText =
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
    + "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
private let largeCiphertext =
    "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
    + "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
private let cases = [
    Case(
        key: String(repeating: "0", count: 64), nonce: String(repeating: "0", count: 24), aad: "",
        plaintext: "", ciphertext: "", tag: "530f8afbc74536b9a963b4f1c4cb738b"),
    Case(
        key: String(repeating: "0", count: 64), nonce: String(repeating: "0", count: 24), aad: "",
        plaintext: String(repeating: "0", count: 32),
        ciphertext: "cea7403d4d606b6e074ec5d3baf39d18", tag: "d0d1c8a799996bf0265b98b5d48ab919"),
    Case(
        key: largeKey, nonce: "cafebabefacedbaddecaf888", aad: "",
        plaintext: largeText + "1aafd255",
        ciphertext: largeCiphertext + "898015ad", tag: "b094dac5d93471bdec1a502270e3cc6c"),
    Case(
        key: largeKey, nonce: "cafebabefacedbaddecaf888",
        aad: "feedfacedeadbeeffeedfacedeadbeefabaddad2", plaintext: largeText,
        ciphertext: largeCiphertext, tag: "76fc6ece0f4e1768cddf8853bb2d551b"),
]

@Suite struct AES256GCMTests {
    @Test func publishedCasesInBothDirections() throws {
        for test in cases {
            let key = AEADKey(copying: bytes(test.key))
            let sealed = bytes(test.nonce + test.ciphertext + test.tag)
            let (aad, plaintext) = (bytes(test.aad), bytes(test.plaintext))
            #expect(
                AES256GCM.seal(plaintext, key: key, nonce: bytes(test.nonce), aad: aad) == sealed)
            #expect(try AES256GCM.open(sealed, key: key, aad: aad) == plaintext)
        }
    }

    @Test func aChangeOfAnyBitIsRefused() {
        let key = AEADKey.generate()
        let sealed = AES256GCM.seal(Array("a configuration".utf8), key: key, aad: [1, 2, 3])
        for bit in 0..<(8 * sealed.count) {
            var changed = sealed
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(
                thrown { () throws(CryptoError) in
                    try AES256GCM.open(changed, key: key, aad: [1, 2, 3])
                } == .notAuthentic)
        }
    }

    @Test func anotherKeyContextOrLengthIsRefused() {
        let key = AEADKey.generate()
        let sealed = AES256GCM.seal([1, 2, 3], key: key, aad: [9])
        func failure(_ sealed: [UInt8], _ key: AEADKey, _ aad: [UInt8]) -> CryptoError? {
            thrown { () throws(CryptoError) in try AES256GCM.open(sealed, key: key, aad: aad) }
        }
        #expect(failure(sealed, key, [9]) == nil)
        #expect(failure(sealed, .generate(), [9]) == .notAuthentic)
        #expect(failure(sealed, key, []) == .notAuthentic)
        #expect(failure(sealed, key, [8]) == .notAuthentic)
        #expect(failure(sealed + [0], key, [9]) == .notAuthentic)
        for length in 0..<sealed.count {
            let expected: CryptoError =
                length < AES256GCM.overhead ? .tooShort(length) : .notAuthentic
            #expect(failure(Array(sealed[..<length]), key, [9]) == expected)
        }
    }

    @Test func everyLengthReturnsAndNoNonceRepeats() throws {
        let key = AEADKey.generate()
        var nonces: Set<[UInt8]> = []
        for length in 0..<200 {
            let plaintext = Random.bytes(length)
            let sealed = AES256GCM.seal(plaintext, key: key)
            nonces.insert(Array(sealed[..<AES256GCM.nonceLength]))
            #expect(sealed.count == length + AES256GCM.overhead)
            #expect(try AES256GCM.open(sealed, key: key) == plaintext)
        }
        #expect(nonces.count == 200)
    }

    @Test func aKeyShowsNothing() {
        let key = AEADKey(copying: [UInt8](repeating: 0x41, count: 32))
        var dumped = ""
        dump(key, to: &dumped)
        for text in ["\(key)", String(reflecting: key), "\([key])", dumped] {
            #expect(!text.contains("AAAA") && !text.contains("65"), "\(text)")
        }
        #expect(key == AEADKey(copying: [UInt8](repeating: 0x41, count: 32)))
        #expect(key != AEADKey.generate())
    }
}
