// SPDX-License-Identifier: Apache-2.0

/// What arrives of one answer.
///
/// Thread-safety: used by the thread that performs the request only.
final class Transfer {
    /// Bytes of all header fields; a hub's have a few hundred.
    private static let headLimit = 64 << 10

    private let bodyLimit: Int
    let isCancelled: () -> Bool
    /// For event streams.
    var onEvent: ((String, String) -> Bool)?

    private(set) var headers = HTTPHeaders()
    private(set) var body: [UInt8] = []
    private(set) var isTooLarge = false
    /// `onEvent` has had enough.
    private(set) var isSatisfied = false
    private var headSize = 0
    private var status = 0
    private var events = EventParser()

    init(bodyLimit: Int, isCancelled: @escaping () -> Bool) {
        self.bodyLimit = bodyLimit
        self.isCancelled = isCancelled
    }

    var limit: Int { bodyLimit }

    /// One line of a head. False: no more of it.
    func receive(headerLine line: [UInt8]) -> Bool {
        headSize += line.count
        guard headSize <= Self.headLimit else {
            isTooLarge = true
            return false
        }
        let text = String(decoding: line, as: UTF8.self)
        if text.hasPrefix("HTTP/") {
            // Of a 100 or of what a proxy says to CONNECT there is another head before the answer's.
            headers = HTTPHeaders()
            status = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        } else if let colon = text.firstIndex(of: ":") {
            headers.append(
                String(text[..<colon]), text[text.index(after: colon)...].trimmed)
        }
        return true
    }

    /// False: no more of it.
    func receive(_ bytes: [UInt8]) -> Bool {
        if let onEvent, status == 200, isEventStream {
            guard
                events.receive(
                    bytes,
                    { event, data in
                        if !isSatisfied { isSatisfied = !onEvent(event, data) }
                    })
            else {
                isTooLarge = true
                return false
            }
            return !isSatisfied
        }
        guard body.count + bytes.count <= bodyLimit else {
            isTooLarge = true
            return false
        }
        body += bytes
        return true
    }

    private var isEventStream: Bool {
        headers["Content-Type"]?.lowercased().hasPrefix("text/event-stream") ?? false
    }
}

/// Cuts a stream into events (HTML standard, section 9.2.6). `id` and `retry` mean nothing here.
struct EventParser {
    /// Bytes of one event.
    static let limit = 256 << 10

    private var line: [UInt8] = []
    private var name = ""
    private var data: [String] = []
    private var dataSize = 0
    /// A line may end in CR LF, whose two halves may come apart.
    private var skipsLineFeed = false
    private var isFirstLine = true

    /// False: an event has more than `limit` bytes.
    mutating func receive(_ bytes: [UInt8], _ emit: (String, String) -> Void) -> Bool {
        for byte in bytes {
            if skipsLineFeed {
                skipsLineFeed = false
                if byte == 0x0A { continue }
            }
            switch byte {
            case 0x0D, 0x0A:
                skipsLineFeed = byte == 0x0D
                endLine(emit)
            default:
                line.append(byte)
                guard line.count + dataSize <= Self.limit else { return false }
            }
        }
        return true
    }

    private mutating func endLine(_ emit: (String, String) -> Void) {
        var text = String(decoding: line, as: UTF8.self)
        line.removeAll(keepingCapacity: true)
        if isFirstLine, text.hasPrefix("\u{FEFF}") { text.removeFirst() }
        isFirstLine = false
        guard !text.isEmpty else {
            // An event without data is none.
            if !data.isEmpty { emit(name.isEmpty ? "message" : name, data.joined(separator: "\n")) }
            name = ""
            data = []
            dataSize = 0
            return
        }
        let field = text.prefix { $0 != ":" }
        var value = text.dropFirst(field.count + 1)
        if value.first == " " { value.removeFirst() }
        switch field {
        case "event": name = String(value)
        case "data":
            data.append(String(value))
            dataSize += value.utf8.count + 1
        default: break
        }
    }
}

extension Substring {
    /// Without white space at both ends.
    fileprivate var trimmed: String {
        var rest = self[...]
        while let first = rest.first, first.isWhitespace { rest.removeFirst() }
        while let last = rest.last, last.isWhitespace { rest.removeLast() }
        return String(rest)
    }
}
