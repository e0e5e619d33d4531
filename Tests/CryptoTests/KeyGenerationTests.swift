// SPDX-License-Identifier: Apache-2.0
import Crypto
import Testing
import WireGuard

@Suite struct KeyGenerationTests {
    /// RFC 7748 section 6.1: Bob's key pair.
    @Test func publicKeyOfRFC7748() throws {
        let text = [UInt8]("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb".utf8)
        let key = try SecretKey(hex: text.span)
        #expect(
            key.publicKey.hex == "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f")
    }

    /// RFC 7748 section 5: the three low bits and the top bit are 0, the bit below is 1.
    @Test func generatedPrivateKeysAreClampedAndDiffer() {
        var seen: Set<PublicKey> = []
        for _ in 0..<64 {
            let key = SecretKey.generate()
            key.withBytes { bytes in
                #expect(bytes[0] & 7 == 0)
                #expect(bytes[31] & 0xC0 == 0x40)
            }
            seen.insert(key.publicKey)
        }
        #expect(seen.count == 64)
    }

    /// Clamping changes nothing about the public key: `wg pubkey` takes unclamped ones too.
    @Test func publicKeyIsThatOfTheClampedKey() {
        var bytes = [UInt8](repeating: 0xFF, count: 32)
        let loose = SecretKey(copying: bytes.span)
        bytes[0] = 0xF8
        bytes[31] = 0x7F
        let clamped = SecretKey(copying: bytes.span)
        #expect(loose.publicKey == clamped.publicKey)
    }

    @Test func generatedPresharedKeysUseEveryBit() {
        var ones = [UInt8](repeating: 0, count: 32)
        var zeros = [UInt8](repeating: 0, count: 32)
        for _ in 0..<128 {
            PresharedKey.generate().withBytes { bytes in
                for index in 0..<32 {
                    ones[index] |= bytes[index]
                    zeros[index] |= ~bytes[index]
                }
            }
        }
        // One bit that never changes in 128 draws has a chance of 2^-127.
        #expect(ones.allSatisfy { $0 == 0xFF })
        #expect(zeros.allSatisfy { $0 == 0xFF })
    }
}
