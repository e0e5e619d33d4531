// SPDX-License-Identifier: Apache-2.0
import HostProcess
import WireGuard

let checkVerb = Verb(
    name: "check", operands: "FILE...", operandCount: 1...Int.max,
    summary: "Check configuration files.",
    details: """
        Prints every error and warning with file, line and column. FILE is a path, the name of a
        tunnel or - for standard input. Exit code 5 when one of them is refused.
        """,
    options: readingOptions + [Option(long: "json", help: "print the findings as JSON")],
    completes: [.file, .configured], run: check)

private func check(_ invocation: Invocation) throws(Failure) -> UInt8 {
    var reports: [CheckReport] = []
    for operand in invocation.operands {
        let report = try CheckReport(of: try ConfigurationSource(operand), invocation)
        if !invocation.has("json") { try report.print(invocation) }
        reports.append(report)
    }
    if invocation.has("json") { try Output.write(bytes: json(reports)) }
    return reports.allSatisfy(\.isValid) ? ExitCode.ok : ExitCode.configurationInvalid
}

/// What is to be said about one file.
private struct CheckReport {
    let name: String
    var peers = 0
    var errors: [ConfigurationDiagnostic] = []
    var warnings: [ConfigurationDiagnostic] = []
    var omitted = 0
    /// Says that everybody may read the file's keys.
    var permissions: String?

    var isValid: Bool { errors.isEmpty && permissions == nil }

    init(of source: ConfigurationSource, _ invocation: Invocation) throws(Failure) {
        name = source.displayName
        var file = try LoadedConfiguration.read(source)
        defer { erase(&file.bytes) }
        do throws(ConfigurationError) {
            let parsed = try ConfigurationFile.parse(
                file.bytes.span, file: name, lenient: invocation.has("lenient"))
            peers = parsed.configuration.peers.count
            warnings = parsed.warnings
            omitted = parsed.omittedWarnings
            if file.isOpenToAll, parsed.configuration.hasSecrets, case .file(let path) = source,
                !invocation.has("insecure-permissions")
            {
                permissions =
                    "the file holds keys and is open to everybody; "
                    + "run chmod 600 \(shellQuoted(path))"
            }
        } catch {
            errors = error.diagnostics
            omitted = error.omitted
        }
    }

    /// Findings go to standard error, the good news to standard output.
    func print(_ invocation: Invocation) throws(Failure) {
        for error in errors { StandardStream.error.write(line(error, "error") + "\n") }
        for warning in warnings { Output.note(line(warning, "warning"), invocation) }
        if omitted > 0 { StandardStream.error.write("\(name): and \(omitted) more\n") }
        if let permissions { StandardStream.error.write("\(name):1:1: error: \(permissions)\n") }
        guard isValid, !invocation.has("quiet") else { return }
        try Output.write("\(name): ok, \(peers) peer\(peers == 1 ? "" : "s")\n")
    }
}

private func json(_ reports: [CheckReport]) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.number("schemaVersion", 1)
    writer.beginArray("files")
    for report in reports {
        writer.beginObject()
        writer.string("file", report.name)
        writer.bool("valid", report.isValid)
        writer.beginArray("findings")
        for error in report.errors { writer.finding(error, "error") }
        if let permissions = report.permissions {
            writer.beginObject()
            writer.string("severity", "error")
            writer.string("message", permissions)
            writer.endObject()
        }
        for warning in report.warnings { writer.finding(warning, "warning") }
        writer.endArray()
        writer.number("omitted", UInt64(report.omitted))
        writer.endObject()
    }
    writer.endArray()
    writer.endObject()
    return writer.text + [UInt8(ascii: "\n")]
}

extension JSONWriter {
    fileprivate mutating func finding(_ diagnostic: ConfigurationDiagnostic, _ severity: String) {
        beginObject()
        string("severity", severity)
        number("line", UInt64(diagnostic.line))
        number("column", UInt64(diagnostic.column))
        string("message", diagnostic.cause.message)
        if let text = diagnostic.text { string("text", text) }
        string("advice", diagnostic.cause.advice)
        endObject()
    }
}
