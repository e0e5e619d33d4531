// SPDX-License-Identifier: Apache-2.0
import HostProcess
import Storage

/// Records to standard output, for people or as JSON lines.
struct LogPrinter {
    private let isJSON: Bool
    private let isColoured: Bool

    init(_ invocation: Invocation) {
        isJSON = invocation.has("json")
        isColoured =
            StandardStream.output.isTerminal && Host.environment("NO_COLOR") == nil
            && Host.environment("TERM") != "dumb"
    }

    func print(_ records: [LogRecord]) throws(Failure) {
        guard !records.isEmpty else { return }
        var bytes: [UInt8] = []
        for record in records {
            bytes += isJSON ? record.json : Array(line(record).utf8)
            bytes.append(0x0A)
        }
        try Output.write(bytes: bytes)
    }

    /// `2026-01-31T23:59:59.123Z warn  heartbeat  no answer  status=503`.
    private func line(_ record: LogRecord) -> String {
        let level = record.level.name
        let padding = String(repeating: " ", count: 5 - level.utf8.count)
        let fields = record.fields.map { "  \($0.name)=\(Self.visible($0.value.description))" }
        return UniversalTime.text(record.milliseconds) + " " + coloured(level, record.level)
            + padding + "  \(Self.visible(record.tag))  \(Self.visible(record.message))"
            + fields.joined()
    }

    private func coloured(_ text: String, _ level: LogLevel) -> String {
        guard isColoured else { return text }
        let code =
            switch level {
            case .debug: "2"
            case .info: "32"
            case .warn: "33"
            case .error: "31"
            }
        return "\u{1B}[\(code)m\(text)\u{1B}[0m"
    }

    /// What came from outside must not steer a terminal: control characters are escaped.
    static func visible(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator:
                result += scalar.escaped(asASCII: true)
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
