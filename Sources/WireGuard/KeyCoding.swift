// SPDX-License-Identifier: Apache-2.0
// Hexadecimal and base64 (RFC 4648 sections 4 and 8) of 32-byte keys. The same code serves public
// and secret keys, so nothing here branches on, or indexes by, a character or byte of the key:
// only the length of the text, which is public, decides the path taken.

/// Why a text is not a key. Carries nothing of the text.
public enum KeyError: Error, Equatable, Sendable {
    /// Not the length of a key; the length that was found, in characters.
    case length(Int)
    /// A character outside the alphabet, or padding in the wrong place.
    case character
    /// The last base64 character carries bits that belong to no byte (RFC 4648 section 3.5).
    case notCanonical
}

public let keyLength = 32
typealias KeyBytes = InlineArray<32, UInt8>

/// −1 when `low <= value <= high`, otherwise 0. All arguments are below 2^16.
@inline(__always)
private func mask(_ value: Int32, _ low: Int32, _ high: Int32) -> Int32 {
    ~(((value &- low) | (high &- value)) >> 31)
}

enum Hex {
    /// Digit value in bits 0–3; bit 8 and above are set when `character` is no hexadecimal digit.
    @inline(__always)
    private static func value(_ character: UInt8) -> Int32 {
        let c = Int32(character)
        let digit = mask(c, 0x30, 0x39)
        let upper = mask(c, 0x41, 0x46)
        let lower = mask(c, 0x61, 0x66)
        return (digit & (c &- 0x30)) | (upper & (c &- 0x37)) | (lower & (c &- 0x57))
            | (~(digit | upper | lower) & 0x100)
    }

    /// Writes the key that `text` stands for; both cases are accepted, as the reference does.
    static func decode(_ text: Span<UInt8>, into key: inout KeyBytes) throws(KeyError) {
        guard text.count == 2 * keyLength else { throw .length(text.count) }
        var bad: Int32 = 0
        for index in 0..<keyLength {
            let pair = value(text[2 * index]) << 4 | value(text[2 * index + 1])
            bad |= pair
            key[index] = UInt8(truncatingIfNeeded: pair)
        }
        guard bad < 0x100 else { throw .character }
    }

    @inline(__always)
    private static func character(_ nibble: Int32) -> UInt8 {
        UInt8(truncatingIfNeeded: nibble &+ 0x30 &+ (mask(nibble, 10, 15) & 0x27))
    }

    static func append(_ key: KeyBytes, to text: inout [UInt8]) {
        for index in 0..<keyLength {
            text.append(character(Int32(key[index] >> 4)))
            text.append(character(Int32(key[index] & 15)))
        }
    }
}

enum Base64 {
    /// 43 characters and one `=`.
    static let length = 44

    /// Value in bits 0–5; bit 8 and above are set when `character` is not of the alphabet.
    @inline(__always)
    private static func value(_ character: UInt8) -> Int32 {
        let c = Int32(character)
        let upper = mask(c, 0x41, 0x5A)
        let lower = mask(c, 0x61, 0x7A)
        let digit = mask(c, 0x30, 0x39)
        let plus = mask(c, 0x2B, 0x2B)
        let slash = mask(c, 0x2F, 0x2F)
        return (upper & (c &- 65)) | (lower & (c &- 71)) | (digit & (c &+ 4)) | (plus & 62)
            | (slash & 63) | (~(upper | lower | digit | plus | slash) & 0x100)
    }

    /// Writes the key that `text` stands for. Only the one canonical spelling is accepted (C14).
    static func decode(_ text: Span<UInt8>, into key: inout KeyBytes) throws(KeyError) {
        guard text.count == length else { throw .length(text.count) }
        // 10 whole groups make 30 bytes; the last group makes two from three characters.
        var bad: Int32 = 0
        for group in 0..<10 {
            let a = value(text[4 * group])
            let b = value(text[4 * group + 1])
            let c = value(text[4 * group + 2])
            let d = value(text[4 * group + 3])
            bad |= a | b | c | d
            key[3 * group] = UInt8(truncatingIfNeeded: a << 2 | b >> 4)
            key[3 * group + 1] = UInt8(truncatingIfNeeded: b << 4 | c >> 2)
            key[3 * group + 2] = UInt8(truncatingIfNeeded: c << 6 | d)
        }
        let a = value(text[40])
        let b = value(text[41])
        let c = value(text[42])
        bad |= a | b | c
        key[30] = UInt8(truncatingIfNeeded: a << 2 | b >> 4)
        key[31] = UInt8(truncatingIfNeeded: b << 4 | c >> 2)
        guard bad < 0x100, text[43] == UInt8(ascii: "=") else { throw .character }
        guard c & 3 == 0 else { throw .notCanonical }
    }

    @inline(__always)
    private static func character(_ sextet: Int32) -> UInt8 {
        let upper = mask(sextet, 0, 25) & (sextet &+ 65)
        let lower = mask(sextet, 26, 51) & (sextet &+ 71)
        let digit = mask(sextet, 52, 61) & (sextet &- 4)
        let plus = mask(sextet, 62, 62) & 0x2B
        let slash = mask(sextet, 63, 63) & 0x2F
        return UInt8(truncatingIfNeeded: upper | lower | digit | plus | slash)
    }

    static func append(_ key: KeyBytes, to text: inout [UInt8]) {
        for start in stride(from: 0, to: 30, by: 3) {
            let group = Int32(key[start]) << 16 | Int32(key[start + 1]) << 8 | Int32(key[start + 2])
            text.append(character(group >> 18))
            text.append(character(group >> 12 & 63))
            text.append(character(group >> 6 & 63))
            text.append(character(group & 63))
        }
        let last = Int32(key[30]) << 10 | Int32(key[31]) << 2
        text.append(character(last >> 12))
        text.append(character(last >> 6 & 63))
        text.append(character(last & 63))
        text.append(UInt8(ascii: "="))
    }
}
