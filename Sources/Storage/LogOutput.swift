// SPDX-License-Identifier: Apache-2.0
import HostProcess
import Systemd

/// Where records go at once, besides the history.
public enum LogOutput: Sendable {
    /// The journal's native protocol, with fields of our own.
    case journal
    /// One JSON object a line, on standard error.
    case jsonLines
    /// For tests.
    case function(@Sendable (LogRecord) -> Void)

    /// The journal where standard error leads to it or nowhere, and JSON lines elsewhere.
    public static var automatic: LogOutput { Journal.isWanted ? .journal : .jsonLines }

    func write(_ record: LogRecord, program: String) {
        switch self {
        case .journal: Journal.send(journalFields(record, program: program))
        case .jsonLines:
            // One write: lines of several threads never mix.
            StandardStream.error.write(String(decoding: record.json + [0x0A], as: UTF8.self))
        case .function(let function): function(record)
        }
    }
}

/// MESSAGE, PRIORITY (syslog(3)) and SYSLOG_IDENTIFIER as systemd.journal-fields(7) has them; the
/// tag and each field with NEXUSGUARD_ before it.
func journalFields(_ record: LogRecord, program: String) -> [(name: String, value: String)] {
    let priority =
        switch record.level {
        case .debug: "7"
        case .info: "6"
        case .warn: "4"
        case .error: "3"
        }
    let head = [
        ("MESSAGE", record.message), ("PRIORITY", priority), ("SYSLOG_IDENTIFIER", program),
        ("NEXUSGUARD_TAG", record.tag),
    ]
    return head
        + record.fields.map { field in
            ("NEXUSGUARD_\(journalName(field.name))", field.value.description)
        }
}

/// `configHash` becomes CONFIG_HASH. What the journal has no letter for becomes `_`.
private func journalName(_ name: String) -> String {
    var result = ""
    for character in name.unicodeScalars.prefix(40) {
        switch character {
        case "a"..."z", "0"..."9": result += String(character).uppercased()
        case "A"..."Z": result += (result.isEmpty ? "" : "_") + String(character)
        default: result += "_"
        }
    }
    return result
}
