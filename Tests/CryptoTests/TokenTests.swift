// SPDX-License-Identifier: Apache-2.0
import Crypto
import Testing

@Suite struct TokenTests {
    @Test func tokensAre256BitsInBase64URL() throws {
        let alphabet = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var seen: Set<[UInt8]> = []
        for _ in 0..<64 {
            let token = BearerToken.generate()
            let text = token.withText { Array($0) }
            #expect(text.count == BearerToken.textLength)
            #expect(text.allSatisfy { alphabet.contains($0) })
            let read = try #require(BearerToken(text: text))
            #expect(read == token && read.digest == token.digest)
            seen.insert(text)
        }
        #expect(seen.count == 64)
    }

    /// The text is that of 32 bytes 0xFB; the digest is that of sha256sum(1).
    @Test func theDigestIsThatOfTheText() throws {
        let text = String(repeating: "-_v7", count: 10) + "-_s"
        let token = try #require(BearerToken(text: Array(text.utf8)))
        #expect(token.digest == hexadecimal(SHA256.hash(Array(text.utf8))))
        #expect(token.digest.utf8.count == 64)
    }

    @Test func onlyTheOneSpellingIsAToken() {
        let good = String(repeating: "A", count: 43)
        #expect(BearerToken(text: Array(good.utf8)) != nil)
        let rest = String(good.dropFirst())
        let start = String(good.dropLast())
        let bad: [String] = [
            "", "A", start, "\(good)A", "\(good)=", "\(good)\n", "+\(rest)", "/\(rest)", " \(rest)",
            "é\(rest.dropFirst())",
            // Bits in the last character that belong to no byte (RFC 4648 section 3.5).
            "\(start)B", "\(start)D",
        ]
        for text in bad { #expect(BearerToken(text: Array(text.utf8)) == nil, "\(text)") }
    }

    @Test func aTokenShowsNothing() {
        let token = BearerToken(text: Array(String(repeating: "A", count: 43).utf8))!
        var dumped = ""
        dump(token, to: &dumped)
        for text in ["\(token)", String(reflecting: token), dumped] {
            #expect(!text.contains("AAAA"), "\(text)")
        }
    }
}
