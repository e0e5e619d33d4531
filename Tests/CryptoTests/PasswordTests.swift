// SPDX-License-Identifier: Apache-2.0
import Crypto
import Testing

/// Known answers are those of Python's cryptography package (48.0.0, OpenSSL's Argon2id):
/// `Argon2id(salt=bytes(range(16)), length=32, iterations=3, lanes=1, memory_cost=65536)`.
@Suite(.serialized) struct PasswordTests {
    private static let passphrase = Array("correct horse battery staple".utf8)

    @Test func aPassphraseMakesTheKeyThatOthersMake() throws {
        let key = try PassphraseKey.derive(
            passphrase: Self.passphrase, salt: Array(0..<16))
        key.withBytes {
            #expect(
                hexadecimal($0)
                    == "0d1a3c6523c8f06e4e0af9c515aa5b5448cfebd6838f2d52c3d8b6ef8ddc3c2e")
        }
    }

    @Test func anotherSaltOrPassphraseMakesAnotherKey() throws {
        let salt = PassphraseKey.newSalt()
        #expect(salt.count == PassphraseKey.saltLength && salt != PassphraseKey.newSalt())
        let key = try PassphraseKey.derive(passphrase: [], salt: salt)
        #expect(try key == PassphraseKey.derive(passphrase: [], salt: salt))
        #expect(try key != PassphraseKey.derive(passphrase: [0], salt: salt))
        #expect(
            try key != PassphraseKey.derive(passphrase: [], salt: [UInt8](repeating: 0, count: 16)))
    }

    @Test func aPasswordIsVerifiedAgainstItsHashOnly() throws {
        let hash = try PasswordHash.hash(Self.passphrase)
        #expect(hash.hasPrefix("$argon2id$v=19$m=65536,t=3,p=1$"))
        #expect(PasswordHash.verify(Self.passphrase, hash))
        #expect(!PasswordHash.verify(Self.passphrase + [0x20], hash))
        #expect(!PasswordHash.verify([], hash))
        #expect(try PasswordHash.hash(Self.passphrase) != hash)
    }

    @Test func aHashThatAnotherProgramMadeIsVerified() {
        let hash =
            "$argon2id$v=19$m=65536,t=3,p=1$AAECAwQFBgcICQoLDA0ODw$"
            + "DRo8ZSPI8G5OCvnFFapbVEjP69aDjy1Sw9i2743cPC4"
        #expect(PasswordHash.verify(Self.passphrase, hash))
        #expect(!PasswordHash.verify(Array("correct horse".utf8), hash))
    }

    @Test func whatIsNoHashVerifiesNothing() {
        let texts = [
            "", "$", "plain", "$argon2id$v=19$m=65536,t=3,p=1$", "a\u{0}b",
            String(repeating: "x", count: 127), String(repeating: "x", count: 4096),
        ]
        for text in texts { #expect(!PasswordHash.verify([], text), "\(text.prefix(20))") }
    }
}
