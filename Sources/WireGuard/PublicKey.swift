// SPDX-License-Identifier: Apache-2.0

/// A Curve25519 public key: the name of a peer. Opaque; `/` and `+` in its base64 mean nothing
/// (C07).
public struct PublicKey: Hashable, Sendable, CustomStringConvertible {
    public let bytes: InlineArray<32, UInt8>

    public init(bytes: InlineArray<32, UInt8>) { self.bytes = bytes }

    public init(hex text: Span<UInt8>) throws(KeyError) {
        var key = KeyBytes(repeating: 0)
        try Hex.decode(text, into: &key)
        bytes = key
    }

    public init(base64 text: Span<UInt8>) throws(KeyError) {
        var key = KeyBytes(repeating: 0)
        try Base64.decode(text, into: &key)
        bytes = key
    }

    public init(hex text: String) throws(KeyError) {
        let text = [UInt8](text.utf8)
        try self.init(hex: text.span)
    }

    public init(base64 text: String) throws(KeyError) {
        let text = [UInt8](text.utf8)
        try self.init(base64: text.span)
    }

    public var hex: String {
        var text: [UInt8] = []
        Hex.append(bytes, to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    public var base64: String {
        var text: [UInt8] = []
        Base64.append(bytes, to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    public var description: String { base64 }

    /// Bytes 8 × `index` to 8 × `index` + 7 as one word, for comparing and hashing.
    private func word(_ index: Int) -> UInt64 {
        var word: UInt64 = 0
        for offset in 0..<8 { word = word << 8 | UInt64(bytes[8 * index + offset]) }
        return word
    }

    public static func == (left: PublicKey, right: PublicKey) -> Bool {
        for index in 0..<4 where left.word(index) != right.word(index) { return false }
        return true
    }

    public func hash(into hasher: inout Hasher) {
        for index in 0..<4 { hasher.combine(word(index)) }
    }
}
