// SPDX-License-Identifier: Apache-2.0
// Numbers and words in ASCII text, without String.

extension Span where Element == UInt8 {
    func firstIndex(of byte: UInt8) -> Int? {
        for index in indices where self[index] == byte { return index }
        return nil
    }

    func lastIndex(of byte: UInt8) -> Int? {
        for index in indices.reversed() where self[index] == byte { return index }
        return nil
    }

    public func elementsEqual(_ other: [UInt8]) -> Bool {
        guard count == other.count else { return false }
        for index in indices where self[index] != other[index] { return false }
        return true
    }

    func elementsEqual(_ other: String) -> Bool { elementsEqual([UInt8](other.utf8)) }
}

/// The decimal number that is the whole of `text`; nil when it is empty, holds anything but digits
/// (no sign, no blank) or exceeds `maximum`.
public func parseDecimal(_ text: Span<UInt8>, maximum: UInt64) -> UInt64? {
    guard !text.isEmpty else { return nil }
    var value: UInt64 = 0
    for index in text.indices {
        let digit = text[index] &- 0x30
        guard digit <= 9 else { return nil }
        let (scaled, overflowed) = value.multipliedReportingOverflow(by: 10)
        let (sum, carried) = scaled.addingReportingOverflow(UInt64(digit))
        guard !overflowed, !carried, sum <= maximum else { return nil }
        value = sum
    }
    return value
}

/// As `parseDecimal`, after `0x` or `0X` hexadecimal (C15).
func parseNumber(_ text: Span<UInt8>, maximum: UInt64) -> UInt64? {
    guard text.count > 2, text[0] == 0x30, text[1] | 0x20 == UInt8(ascii: "x") else {
        return parseDecimal(text, maximum: maximum)
    }
    var value: UInt64 = 0
    for index in 2..<text.count {
        guard let digit = hexDigit(text[index]), value <= maximum >> 4 else { return nil }
        value = value << 4 | UInt64(digit)
    }
    return value
}

/// Not for secrets: branches on its argument.
func hexDigit(_ character: UInt8) -> UInt8? {
    switch character {
    case 0x30...0x39: character - 0x30
    case 0x41...0x46: character - 0x37
    case 0x61...0x66: character - 0x57
    default: nil
    }
}

extension [UInt8] {
    public mutating func append(_ text: String) { append(contentsOf: text.utf8) }

    public mutating func append(decimal value: UInt64) {
        guard value >= 10 else { return append(0x30 + UInt8(value)) }
        var divisor: UInt64 = 10
        while value / divisor >= 10 { divisor *= 10 }
        while divisor > 0 {
            append(0x30 + UInt8(value / divisor % 10))
            divisor /= 10
        }
    }
}
