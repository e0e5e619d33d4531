// SPDX-License-Identifier: Apache-2.0
// JSON in one spelling only (RFC 8785, JSON Canonicalization Scheme), so that it can be hashed.
// FoundationEssentials' encoder escapes `/` and sorts otherwise, so the text is made here.

/// A JSON value. Numbers are whole: that is all this interface has, and the spelling of others
/// (section 3.2.2.3) is where implementations disagree.
public indirect enum JSONValue: Equatable, Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    case string(String)
    case array([JSONValue])
    /// Names differ.
    case object([String: JSONValue])
}

public enum CanonicalJSON {
    /// Beyond ±(2^53 − 1) a number has no exact double, and no canonical form (RFC 7493 section 2.2).
    public static let integerRange: ClosedRange<Int64> =
        -9_007_199_254_740_991...9_007_199_254_740_991

    /// The canonical text in UTF-8. Integers must lie in `integerRange`.
    public static func text(_ value: JSONValue) -> [UInt8] {
        var text: [UInt8] = []
        append(value, to: &text)
        return text
    }

    /// The canonical text of `json`. Throws `.field` for numbers that are not whole or too large,
    /// and what `Wire.decode` throws.
    public static func canonicalize(_ json: [UInt8]) throws(WireError) -> [UInt8] {
        text(try Wire.decode(JSONValue.self, from: json))
    }

    private static func append(_ value: JSONValue, to text: inout [UInt8]) {
        switch value {
        case .null: text += "null".utf8
        case .bool(let value): text += (value ? "true" : "false").utf8
        case .integer(let number):
            precondition(integerRange.contains(number), "a number without a canonical form")
            text += String(number).utf8
        case .string(let string): append(string, to: &text)
        case .array(let values):
            text.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { text.append(UInt8(ascii: ",")) }
                append(value, to: &text)
            }
            text.append(UInt8(ascii: "]"))
        case .object(let members):
            text.append(UInt8(ascii: "{"))
            // Section 3.2.3: by UTF-16 code units, which differs from UTF-8 beyond U+FFFF.
            let sorted = members.sorted { $0.key.utf16.lexicographicallyPrecedes($1.key.utf16) }
            for (index, member) in sorted.enumerated() {
                if index > 0 { text.append(UInt8(ascii: ",")) }
                append(member.key, to: &text)
                text.append(UInt8(ascii: ":"))
                append(member.value, to: &text)
            }
            text.append(UInt8(ascii: "}"))
        }
    }

    /// Section 3.2.2.2: what must be escaped is, in the shortest way, and nothing else.
    private static func append(_ string: String, to text: inout [UInt8]) {
        text.append(UInt8(ascii: "\""))
        for byte in string.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): text += [UInt8(ascii: "\\"), byte]
            case 0x08: text += "\\b".utf8
            case 0x09: text += "\\t".utf8
            case 0x0A: text += "\\n".utf8
            case 0x0C: text += "\\f".utf8
            case 0x0D: text += "\\r".utf8
            case 0..<0x20:
                let digit = byte & 15
                text += "\\u00".utf8
                text += [0x30 + byte >> 4, digit < 10 ? 0x30 + digit : 0x57 + digit]
            default: text.append(byte)
            }
        }
        text.append(UInt8(ascii: "\""))
    }
}

extension JSONValue: Decodable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode(Int64.self) {
            guard CanonicalJSON.integerRange.contains(value) else {
                throw DecodingError.dataCorruptedError(
                    in: container, debugDescription: "a number without an exact double")
            }
            self = .integer(value)
        } else if let values = try? container.decode([JSONValue].self) {
            self = .array(values)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }
}
