// SPDX-License-Identifier: Apache-2.0

/// Makes text from a configuration file fit to be shown: every character can be seen (C01), and no
/// key can be read, wherever in the file a slip has put it (C14, C93).
struct VisibleText {
    private static let limit = 48
    /// Runs of base64 characters from this length on are not shown. Longer than every setting but
    /// PersistentKeepalive, which is shown as a known name.
    private static let longestRun = 15

    private var result = ""
    /// Base64 characters that may still be shown. Where a line is not understood, pieces of a key
    /// may stand anywhere in it: 7 characters give away 42 of its 256 bits.
    private var budget: Int

    /// `text` up to the first `=`: whatever follows it may be another setting's value.
    static func make(_ text: Span<UInt8>, understood: Bool) -> String {
        var visible = VisibleText(budget: understood ? .max : 7)
        visible.append(text)
        return visible.result
    }

    private init(budget: Int) { self.budget = budget }

    private mutating func append(_ text: Span<UInt8>) {
        var index = 0
        while index < text.count {
            guard result.utf8.count < Self.limit else {
                result += "…"
                return
            }
            let start = index
            while index < text.count, isBase64(text[index]) { index += 1 }
            if index > start {
                append(run: text.extracting(start..<index))
                continue
            }
            guard text[index] != UInt8(ascii: "=") else { return }
            index += append(character: text.extracting(index...))
        }
    }

    private mutating func append(run: Span<UInt8>) {
        let isKnown =
            ConfigurationKey(run) != nil || ConfigurationKey.nearest(to: run) != nil
            || ConfigurationSection(run) != nil
        guard isKnown || run.count <= min(Self.longestRun, budget) else {
            result += "(\(run.count) characters)"
            return
        }
        if !isKnown { budget -= run.count }
        for index in run.indices { result.unicodeScalars.append(Unicode.Scalar(run[index])) }
    }

    /// Appends the first character of `text`, and returns its length.
    private mutating func append(character text: Span<UInt8>) -> Int {
        let (scalar, length) = firstScalar(text)
        switch scalar?.value {
        case nil: result += "<0x" + String(text[0], radix: 16, uppercase: true) + ">"
        case 0x09: result += "<TAB>"
        case 0x0D: result += "<CR>"
        case 0xA0: result += "<NBSP>"
        case 0xFEFF: result += "<BOM>"
        case .some(0x20..<0x7F): result.unicodeScalars.append(scalar!)
        default:
            let digits = String(scalar!.value, radix: 16, uppercase: true)
            result += "<U+" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits + ">"
        }
        return length
    }
}

private func isBase64(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "+"), UInt8(ascii: "/"): true
    default: false
    }
}

/// nil and 1 for a byte that begins no scalar.
private func firstScalar(_ text: Span<UInt8>) -> (Unicode.Scalar?, length: Int) {
    var head: [UInt8] = []
    for index in 0..<min(4, text.count) { head.append(text[index]) }
    var iterator = head.makeIterator()
    var decoder = UTF8()
    guard case .scalarValue(let scalar) = decoder.decode(&iterator) else { return (nil, 1) }
    return (scalar, UTF8.width(scalar))
}
