// SPDX-License-Identifier: Apache-2.0

/// Writes JSON (RFC 8259) in the order of the calls, on one line. The caller opens and closes in
/// pairs and names members of objects only.
public struct JSONWriter {
    /// What was written so far, in UTF-8.
    public private(set) var text: [UInt8] = []
    private var needsComma = false

    public init() {}

    public mutating func beginObject(_ key: String? = nil) { open(key, UInt8(ascii: "{")) }
    public mutating func endObject() { close(UInt8(ascii: "}")) }
    public mutating func beginArray(_ key: String? = nil) { open(key, UInt8(ascii: "[")) }
    public mutating func endArray() { close(UInt8(ascii: "]")) }

    public mutating func number(_ key: String? = nil, _ value: UInt64) {
        separate(key)
        text.append(decimal: value)
    }

    public mutating func number(_ key: String? = nil, signed value: Int64) {
        separate(key)
        if value < 0 { text.append(UInt8(ascii: "-")) }
        text.append(decimal: value.magnitude)
    }

    public mutating func null(_ key: String? = nil) {
        separate(key)
        text.append("null")
    }

    /// Rounded to three decimals. `value` is finite and not negative.
    public mutating func number(_ key: String? = nil, thousandths value: Double) {
        let rounded = UInt64((value * 1000).rounded())
        number(key, rounded / 1000)
        let digits = String(rounded % 1000)
        text.append("." + String(repeating: "0", count: 3 - digits.utf8.count) + digits)
    }

    public mutating func bool(_ key: String? = nil, _ value: Bool) {
        separate(key)
        text.append(value ? "true" : "false")
    }

    public mutating func string(_ key: String? = nil, _ value: String) {
        separate(key)
        quote(value)
    }

    private mutating func open(_ key: String?, _ bracket: UInt8) {
        separate(key)
        text.append(bracket)
        needsComma = false
    }

    private mutating func close(_ bracket: UInt8) {
        text.append(bracket)
        needsComma = true
    }

    private mutating func separate(_ key: String?) {
        if needsComma { text.append(UInt8(ascii: ",")) }
        needsComma = true
        guard let key else { return }
        quote(key)
        text.append(UInt8(ascii: ":"))
    }

    /// Section 7: the quotation mark, the backslash and control characters must be escaped.
    /// String is valid UTF-8 by construction.
    private mutating func quote(_ value: String) {
        text.append(UInt8(ascii: "\""))
        for byte in value.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                text.append(UInt8(ascii: "\\"))
                text.append(byte)
            case 0..<0x20:
                text.append("\\u00")
                text.append(byte < 0x10 ? 0x30 : 0x31)
                let digit = byte & 15
                text.append(digit < 10 ? 0x30 + digit : 0x57 + digit)
            default: text.append(byte)
            }
        }
        text.append(UInt8(ascii: "\""))
    }
}
