// SPDX-License-Identifier: Apache-2.0

/// An IPv4 or IPv6 address. An IPv4-mapped IPv6 address stays IPv6, as `wg` keeps it.
public enum IPAddress: Hashable, Sendable, CustomStringConvertible {
    case v4(UInt32)
    case v6(high: UInt64, low: UInt64)

    public var bitWidth: UInt8 {
        switch self {
        case .v4: 32
        case .v6: 128
        }
    }

    /// fe80::/10 (RFC 4291 section 2.5.6): the addresses whose meaning depends on an interface.
    public var isLinkLocal: Bool {
        switch self {
        case .v4: false
        case .v6(let high, _): high >> 54 == 0x3FA
        }
    }

    /// The address with every bit after the first `length` cleared.
    public func masked(to length: UInt8) -> IPAddress {
        switch self {
        case .v4(let bits): .v4(bits & ~(UInt32.max >> UInt32(length)))
        case .v6(let high, let low):
            .v6(
                high: high & ~(UInt64.max >> UInt64(length)),
                low: length <= 64 ? 0 : low & ~(UInt64.max >> UInt64(length - 64)))
        }
    }

    /// Dotted decimal, or the text forms of RFC 4291 section 2.2; no zone, no brackets, no blanks.
    /// Octets with a leading zero are refused: programs disagree about their base (C20).
    public init?(_ text: Span<UInt8>) {
        if text.firstIndex(of: UInt8(ascii: ":")) == nil {
            guard let bits = parseIPv4(text) else { return nil }
            self = .v4(bits)
        } else {
            guard let (high, low) = parseIPv6(text) else { return nil }
            self = .v6(high: high, low: low)
        }
    }

    public init?(_ text: String) {
        let text = [UInt8](text.utf8)
        self.init(text.span)
    }

    public func append(to text: inout [UInt8]) {
        switch self {
        case .v4(let bits): appendIPv4(bits, to: &text)
        case .v6(let high, let low): appendIPv6(high, low, to: &text)
        }
    }

    public var description: String {
        var text: [UInt8] = []
        append(to: &text)
        return String(decoding: text, as: UTF8.self)
    }
}

private func parseIPv4(_ text: Span<UInt8>) -> UInt32? {
    var bits: UInt32 = 0
    var octet: UInt32 = 0
    var digits = 0
    var dots = 0
    for index in text.indices {
        let character = text[index]
        if character == UInt8(ascii: ".") {
            guard digits > 0, dots < 3 else { return nil }
            bits = bits << 8 | octet
            (octet, digits, dots) = (0, 0, dots + 1)
            continue
        }
        let digit = character &- 0x30
        guard digit <= 9, digits == 0 || octet > 0 else { return nil }
        octet = octet * 10 + UInt32(digit)
        digits += 1
        guard octet <= 255 else { return nil }
    }
    guard digits > 0, dots == 3 else { return nil }
    return bits << 8 | octet
}

private func parseIPv6(_ text: Span<UInt8>) -> (high: UInt64, low: UInt64)? {
    var groups = InlineArray<8, UInt16>(repeating: 0)
    var count = 0
    var gap: Int?
    var index = 0
    if text.count >= 2, text[0] == UInt8(ascii: ":"), text[1] == UInt8(ascii: ":") {
        gap = 0
        index = 2
    }
    while index < text.count {
        guard count < 8 else { return nil }
        let start = index
        var group: UInt16 = 0
        while index < text.count, let digit = hexDigit(text[index]) {
            guard index - start < 4 else { return nil }
            group = group << 4 | UInt16(digit)
            index += 1
        }
        if index < text.count, text[index] == UInt8(ascii: ".") {
            guard count <= 6, let bits = parseIPv4(text.extracting(start...)) else { return nil }
            groups[count] = UInt16(bits >> 16)
            groups[count + 1] = UInt16(truncatingIfNeeded: bits)
            count += 2
            break
        }
        guard index > start else { return nil }
        groups[count] = group
        count += 1
        guard index < text.count else { break }
        guard text[index] == UInt8(ascii: ":"), index + 1 < text.count else { return nil }
        index += 1
        if text[index] == UInt8(ascii: ":") {
            guard gap == nil else { return nil }
            gap = count
            index += 1
        }
    }
    // "::" stands for one group or more; without it all eight must be there.
    guard gap == nil ? count == 8 : count < 8 else { return nil }
    return join(groups, count: count, gap: gap ?? count)
}

/// The first `gap` groups stay in front, the others move to the end.
private func join(_ groups: InlineArray<8, UInt16>, count: Int, gap: Int) -> (UInt64, UInt64) {
    var high: UInt64 = 0
    var low: UInt64 = 0
    for position in 0..<8 {
        let fromEnd = position - (8 - count)
        let group: UInt16 = position < gap ? groups[position] : fromEnd >= gap ? groups[fromEnd] : 0
        if position < 4 {
            high = high << 16 | UInt64(group)
        } else {
            low = low << 16 | UInt64(group)
        }
    }
    return (high, low)
}

private func appendIPv4(_ bits: UInt32, to text: inout [UInt8]) {
    for shift in stride(from: UInt32(24), through: 0, by: -8) {
        if shift != 24 { text.append(UInt8(ascii: ".")) }
        text.append(decimal: UInt64(bits >> shift & 0xFF))
    }
}

/// RFC 5952: lower case, no leading zeros, the longest run of two or more zero groups (the first
/// of equals) as "::", and dotted decimal after ::ffff:0:0/96 (section 5).
private func appendIPv6(_ high: UInt64, _ low: UInt64, to text: inout [UInt8]) {
    if high == 0, low >> 32 == 0xFFFF {
        text.append("::ffff:")
        return appendIPv4(UInt32(truncatingIfNeeded: low), to: &text)
    }
    func group(_ index: Int) -> UInt16 {
        UInt16(truncatingIfNeeded: (index < 4 ? high : low) >> UInt64(48 - 16 * (index & 3)))
    }
    var run = 0..<0
    var start = 0
    for index in 0..<8 {
        if group(index) != 0 {
            start = index + 1
        } else if index + 1 - start > max(1, run.count) {
            run = start..<index + 1
        }
    }
    var index = 0
    while index < 8 {
        if index == run.lowerBound, !run.isEmpty {
            text.append("::")
            index = run.upperBound
            continue
        }
        if index > 0, index != run.upperBound || run.isEmpty { text.append(UInt8(ascii: ":")) }
        appendHexGroup(group(index), to: &text)
        index += 1
    }
}

private func appendHexGroup(_ group: UInt16, to text: inout [UInt8]) {
    var started = false
    for shift in stride(from: UInt16(12), through: 0, by: -4) {
        let digit = UInt8(group >> shift & 15)
        started = started || digit != 0 || shift == 0
        if started { text.append(digit < 10 ? 0x30 + digit : 0x57 + digit) }
    }
}
