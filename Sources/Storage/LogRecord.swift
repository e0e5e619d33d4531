// SPDX-License-Identifier: Apache-2.0
import HostProcess
import WireGuard

public enum LogLevel: Int, Comparable, CaseIterable, Sendable {
    case debug, info, warn, error

    /// As records and options spell it.
    public var name: String {
        switch self {
        case .debug: "debug"
        case .info: "info"
        case .warn: "warn"
        case .error: "error"
        }
    }

    public init?(name: String) {
        guard let level = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = level
    }

    public static func < (left: LogLevel, right: LogLevel) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// The text of a record. Written as a literal with parts in it; a part is shown by its description,
/// and a type that holds a secret has none ("(hidden)"). Raw bytes cannot be put in: they could be
/// anything (C93).
public struct LogMessage: ExpressibleByStringInterpolation, Sendable {
    public let text: String

    public init(stringLiteral value: String) { text = value }
    public init(stringInterpolation: StringInterpolation) { text = stringInterpolation.text }

    public struct StringInterpolation: StringInterpolationProtocol {
        var text = ""

        public init(literalCapacity: Int, interpolationCount: Int) {}
        public mutating func appendLiteral(_ literal: String) { text += literal }
        public mutating func appendInterpolation(_ part: some CustomStringConvertible) {
            text += part.description
        }
        @available(*, unavailable, message: "bytes may be secret: log what they mean instead")
        public mutating func appendInterpolation(_ bytes: [UInt8]) {}
        @available(*, unavailable, message: "bytes may be secret: log what they mean instead")
        public mutating func appendInterpolation(_ bytes: ArraySlice<UInt8>) {}
    }
}

/// What a field of a record says: a number stays one in JSON. As in messages, a secret shows as
/// "(hidden)" and bytes cannot be given.
public enum LogValue: Equatable, Sendable, ExpressibleByStringInterpolation,
    ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral, CustomStringConvertible
{
    case text(String)
    case number(Int64)
    case flag(Bool)

    public init(stringLiteral value: String) { self = .text(value) }
    public init(stringInterpolation: LogMessage.StringInterpolation) {
        self = .text(stringInterpolation.text)
    }
    public init(integerLiteral value: Int64) { self = .number(value) }
    public init(booleanLiteral value: Bool) { self = .flag(value) }
    public init(_ number: some BinaryInteger) { self = .number(Int64(clamping: number)) }
    public init(_ flag: Bool) { self = .flag(flag) }

    public var description: String {
        switch self {
        case .text(let text): text
        case .number(let number): String(number)
        case .flag(let flag): flag ? "true" : "false"
        }
    }
}

public struct LogField: Equatable, Sendable {
    public let name: String
    public let value: LogValue

    public init(_ name: String, _ value: LogValue) {
        self.name = name
        self.value = value
    }
}

public struct LogRecord: Equatable, Sendable {
    /// Grows with each record of a history, whatever the clock does.
    public var sequence: Int64
    /// Since 1970, of the wall clock.
    public let milliseconds: Int64
    public let level: LogLevel
    /// Which part of the program speaks, such as "heartbeat".
    public let tag: String
    public let message: String
    public let fields: [LogField]
}

extension LogRecord {
    /// Bytes of what it says, and some for the rest.
    var size: Int {
        fields.reduce(message.utf8.count + tag.utf8.count + 64) { sum, field in
            sum + field.name.utf8.count + field.value.description.utf8.count + 8
        }
    }

    /// One JSON object, without a line end: `ts` (RFC 3339, UTC, milliseconds), `level`, `tag`,
    /// `msg` and the fields. A field of one of those names gets a `_` behind it.
    public var json: [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.string("ts", UniversalTime.text(milliseconds))
        writer.string("level", level.name)
        writer.string("tag", tag)
        writer.string("msg", message)
        var taken: Set<String> = ["ts", "level", "tag", "msg"]
        for field in fields {
            var name = field.name
            while !taken.insert(name).inserted { name += "_" }
            writer.write(name, field.value)
        }
        writer.endObject()
        return writer.text
    }
}

/// What others send may end up in a message: its length is limited, to so many bytes.
func shortened(_ text: String, to limit: Int) -> String {
    guard text.utf8.count > limit else { return text }
    // The last character may be cut in two, and then shows as one that stands for that.
    return String(decoding: text.utf8.prefix(limit), as: UTF8.self) + "…"
}

extension LogField {
    var shortened: LogField {
        guard case .text(let text) = value else { return self }
        return LogField(name, .text(Storage.shortened(text, to: 1000)))
    }
}

extension JSONWriter {
    mutating func write(_ name: String, _ value: LogValue) {
        switch value {
        case .text(let text): string(name, text)
        case .flag(let flag): bool(name, flag)
        case .number(let number): self.number(name, signed: number)
        }
    }
}
