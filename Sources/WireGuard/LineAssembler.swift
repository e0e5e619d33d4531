// SPDX-License-Identifier: Apache-2.0

/// Cuts a byte stream that arrives in fragments into lines. A line that lies within one fragment
/// is not copied; no more than `limit` bytes are ever kept.
public struct LineAssembler: Sendable {
    /// Longest line, without its newline. The longest useful one is below 100 bytes.
    public static let limit = 4096

    public enum Line {
        /// The fragment ended; what it held of the next line is kept.
        case incomplete
        /// These bytes of the fragment, without the newline.
        case within(Range<Int>)
        /// Pieces of several fragments; give it back with `recycle`.
        case assembled([UInt8])
        /// Longer than `limit`. Said once; the rest of the line is skipped.
        case tooLong
    }

    private var kept: [UInt8] = []
    private var skipping = false

    public init() {}

    /// The next line of `fragment` from `position` on, which is moved behind its newline.
    public mutating func next(in fragment: Span<UInt8>, at position: inout Int) -> Line {
        while position < fragment.count {
            let rest = fragment.extracting(position...)
            let end = rest.firstIndex(of: UInt8(ascii: "\n"))
            let length = end ?? rest.count
            let start = position
            position += length + (end == nil ? 0 : 1)
            if skipping {
                skipping = end == nil
                continue
            }
            guard kept.count + length <= Self.limit else {
                recycle(take())
                skipping = end == nil
                return .tooLong
            }
            if end != nil, kept.isEmpty { return .within(start..<start + length) }
            keep(rest.extracting(..<length))
            if end != nil { return .assembled(take()) }
        }
        return .incomplete
    }

    /// Erases `line`, which may have held a key, and keeps its memory for the next one.
    public mutating func recycle(_ line: consuming [UInt8]) {
        var line = line
        erase(&line)
        line.removeAll(keepingCapacity: true)
        if kept.isEmpty { kept = line }
    }

    /// Forgets and erases the beginning of a line that will never end.
    public mutating func reset() {
        recycle(take())
        skipping = false
    }

    private mutating func take() -> [UInt8] {
        var line: [UInt8] = []
        swap(&line, &kept)
        return line
    }

    private mutating func keep(_ piece: Span<UInt8>) {
        // Growing would leave unerased copies behind.
        kept.reserveCapacity(Self.limit)
        for index in piece.indices { kept.append(piece[index]) }
    }
}
