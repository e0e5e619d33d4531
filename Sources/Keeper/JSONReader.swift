// SPDX-License-Identifier: Apache-2.0
// Reads JSON (RFC 8259) in the order of the text, without a tree. Not Foundation's decoder: requests
// hold keys, its strings would leave copies of them that nobody erases; and it would double the size
// of the program for a dozen fields.
import WireGuard

/// Where and why a text is no JSON, or not the JSON that was expected.
struct JSONError: Error, Equatable, Sendable {
    /// Byte, counted from 0.
    let offset: Int
    let reason: String
}

/// The caller names what it expects; everything else throws. After a throw the reader is done.
struct JSONReader: ~Copyable {
    private static let deepest = 16

    private var text: [UInt8]
    private var position = 0
    private var depth = 0
    /// In an object or array: a comma must come before the next member.
    private var needsComma = false

    /// The only reference to `text`, so that `eraseText` erases it.
    init(_ text: consuming [UInt8]) { self.text = text }

    mutating func eraseText() { erase(&text) }

    // MARK: structure

    mutating func beginObject() throws(JSONError) { try open(UInt8(ascii: "{")) }
    mutating func beginArray() throws(JSONError) { try open(UInt8(ascii: "[")) }

    /// The next member's name; nil at the end of the object, which is left.
    mutating func nextKey() throws(JSONError) -> String? {
        guard try nextMember(until: UInt8(ascii: "}")) else { return nil }
        let key = try string()
        try expect(UInt8(ascii: ":"))
        needsComma = false
        return String(decoding: key, as: UTF8.self)
    }

    /// Whether an element follows; at the end of the array it is left.
    mutating func nextElement() throws(JSONError) -> Bool {
        try nextMember(until: UInt8(ascii: "]"))
    }

    /// Nothing but white space may follow.
    mutating func end() throws(JSONError) {
        skipSpace()
        guard position == text.count else { throw error("something follows the value") }
    }

    // MARK: values

    /// Decoded, in UTF-8 if the text was. The caller erases it where it may be a secret.
    mutating func string() throws(JSONError) -> [UInt8] {
        try expect(UInt8(ascii: "\""))
        let end = try endOfString()
        var result: [UInt8] = []
        // No escape is longer when it is decoded; growing would leave copies behind.
        result.reserveCapacity(end - position)
        while position < end {
            let byte = text[position]
            position += 1
            if byte == UInt8(ascii: "\\") {
                do throws(JSONError) {
                    try appendEscaped(to: &result, end)
                } catch {
                    erase(&result)
                    throw error
                }
            } else {
                result.append(byte)
            }
        }
        position = end + 1
        needsComma = true
        return result
    }

    /// A whole number from 0 to 2^53: more has no exact meaning in JSON (RFC 8259 section 6).
    mutating func number() throws(JSONError) -> UInt64 {
        skipSpace()
        let start = position
        var value: UInt64 = 0
        while position < text.count, 0x30...0x39 ~= text[position] {
            value = value * 10 + UInt64(text[position] - 0x30)
            guard value <= 1 << 53 else { throw error("the number is too large") }
            position += 1
        }
        guard position > start, text[start] != 0x30 || position == start + 1 else {
            throw error("a whole number is expected")
        }
        if position < text.count,
            [UInt8(ascii: "."), UInt8(ascii: "e"), UInt8(ascii: "E")].contains(text[position])
        {
            throw error("a whole number is expected")
        }
        needsComma = true
        return value
    }

    mutating func bool() throws(JSONError) -> Bool {
        skipSpace()
        if take("true") { return true }
        if take("false") { return false }
        throw error("true or false is expected")
    }

    /// True, and the null is behind, when one is next.
    mutating func null() -> Bool {
        skipSpace()
        return take("null")
    }

    /// Whatever value is next.
    mutating func skip() throws(JSONError) {
        skipSpace()
        switch position < text.count ? text[position] : 0 {
        case UInt8(ascii: "{"):
            try beginObject()
            while try nextKey() != nil { try skip() }
        case UInt8(ascii: "["):
            try beginArray()
            while try nextElement() { try skip() }
        case UInt8(ascii: "\""):
            var value = try string()
            erase(&value)
        case UInt8(ascii: "t"), UInt8(ascii: "f"): _ = try bool()
        case UInt8(ascii: "n"):
            guard null() else { throw error("a value is expected") }
        default: try skipNumber()
        }
    }
}

// MARK: parts

extension JSONReader {
    private func error(_ reason: String) -> JSONError {
        JSONError(offset: position, reason: reason)
    }

    private mutating func skipSpace() {
        while position < text.count, [0x20, 0x09, 0x0A, 0x0D].contains(text[position]) {
            position += 1
        }
    }

    private mutating func expect(_ character: UInt8) throws(JSONError) {
        skipSpace()
        guard position < text.count, text[position] == character else {
            throw error("'\(Unicode.Scalar(character))' is expected")
        }
        position += 1
    }

    private mutating func open(_ bracket: UInt8) throws(JSONError) {
        try expect(bracket)
        guard depth < Self.deepest else { throw error("too many levels") }
        depth += 1
        needsComma = false
    }

    private mutating func nextMember(until close: UInt8) throws(JSONError) -> Bool {
        skipSpace()
        if position < text.count, text[position] == close {
            position += 1
            depth -= 1
            needsComma = true
            return false
        }
        if needsComma { try expect(UInt8(ascii: ",")) }
        return true
    }

    private mutating func take(_ word: StaticString) -> Bool {
        let characters = Array("\(word)".utf8)
        guard text.count - position >= characters.count else { return false }
        for index in characters.indices where text[position + index] != characters[index] {
            return false
        }
        position += characters.count
        needsComma = true
        return true
    }

    /// Index of the closing quotation mark.
    private func endOfString() throws(JSONError) -> Int {
        var index = position
        while index < text.count {
            switch text[index] {
            case UInt8(ascii: "\""): return index
            case UInt8(ascii: "\\"): index += 2
            case 0..<0x20:
                throw JSONError(offset: index, reason: "a control character must be escaped")
            default: index += 1
            }
        }
        throw error("the string has no end")
    }

    private mutating func appendEscaped(
        to result: inout [UInt8], _ end: Int
    ) throws(JSONError) {
        let escape = text[position]
        position += 1
        switch escape {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): result.append(escape)
        case UInt8(ascii: "b"): result.append(0x08)
        case UInt8(ascii: "f"): result.append(0x0C)
        case UInt8(ascii: "n"): result.append(0x0A)
        case UInt8(ascii: "r"): result.append(0x0D)
        case UInt8(ascii: "t"): result.append(0x09)
        case UInt8(ascii: "u"):
            let scalar = try escapedScalar(end)
            for byte in UTF8.encode(scalar)! { result.append(byte) }
        default: throw error("unknown escape")
        }
    }

    /// Section 7: beyond the basic plane a pair of surrogates stands for one character.
    private mutating func escapedScalar(_ end: Int) throws(JSONError) -> Unicode.Scalar {
        let first = try hexUnit(end)
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard 0xD800..<0xDC00 ~= first, end - position >= 6, text[position] == UInt8(ascii: "\\"),
            text[position + 1] == UInt8(ascii: "u")
        else { throw error("half a character") }
        position += 2
        let second = try hexUnit(end)
        guard 0xDC00..<0xE000 ~= second else { throw error("half a character") }
        return Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))!
    }

    private mutating func hexUnit(_ end: Int) throws(JSONError) -> UInt32 {
        guard end - position >= 4 else { throw error("four hexadecimal digits are expected") }
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard let digit = hexDigit(text[position]) else {
                throw error("four hexadecimal digits are expected")
            }
            value = value << 4 | digit
            position += 1
        }
        return value
    }

    private mutating func skipNumber() throws(JSONError) {
        if position < text.count, text[position] == UInt8(ascii: "-") { position += 1 }
        let start = position
        let others = Array(".eE+-".utf8)
        while position < text.count,
            0x30...0x39 ~= text[position] || others.contains(text[position])
        {
            position += 1
        }
        guard position > start, 0x30...0x39 ~= text[start] else {
            throw error("a value is expected")
        }
        needsComma = true
    }
}

private func hexDigit(_ byte: UInt8) -> UInt32? {
    switch byte {
    case 0x30...0x39: UInt32(byte - 0x30)
    case 0x41...0x46: UInt32(byte - 0x37)
    case 0x61...0x66: UInt32(byte - 0x57)
    default: nil
    }
}
