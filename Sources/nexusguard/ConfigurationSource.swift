// SPDX-License-Identifier: Apache-2.0
import HostProcess
import TunnelPlan
import WireGuard

/// Where a configuration comes from: what FILE, IFNAME or `-` on the command line stand for.
enum ConfigurationSource: Equatable {
    case standardInput
    case file(String)

    /// Searched in this order for a tunnel that is given by its name.
    static let directories = ["/etc/nexusguard", "/etc/wireguard"]

    /// `-`, a path, or a name. With a slash in it or `.conf` at its end it is a path.
    init(
        _ operand: String, directories: [String] = directories,
        exists: (String) -> Bool = HostFile.exists
    ) throws(Failure) {
        if operand == "-" {
            self = .standardInput
        } else if operand.contains("/") || operand.hasSuffix(".conf") {
            self = .file(operand)
        } else {
            guard InterfaceName(operand) != nil else {
                throw .usage(
                    "\(quoted(operand)) is neither a path nor the name of an interface; write "
                        + "./NAME for a file in this directory")
            }
            let paths = directories.map { "\($0)/\(operand).conf" }
            guard let path = paths.first(where: exists) else {
                throw Failure(
                    "cannot find the configuration \(operand): there is no "
                        + paths.joined(separator: " and no ")
                        + "; put it there, or name a file by its path")
            }
            self = .file(path)
        }
    }

    /// What messages call it.
    var displayName: String {
        switch self {
        case .standardInput: "<stdin>"
        case .file(let path): visible(path)
        }
    }

    /// The file's name without `.conf`, as wg-quick(8) has it; nil where that is no interface's.
    var interfaceName: InterfaceName? {
        guard case .file(let path) = self, let last = path.split(separator: "/").last,
            last.hasSuffix(".conf")
        else { return nil }
        return InterfaceName(String(last.dropLast(5)))
    }
}

/// A path as it is, or in quotation marks when a character of it cannot be seen.
func visible(_ path: String) -> String {
    path.unicodeScalars.contains { $0.value < 0x20 || 0x7F...0x9F ~= $0.value }
        ? quoted(path) : path
}

/// A configuration that was read and understood.
struct LoadedConfiguration {
    let source: ConfigurationSource
    var configuration: ConfigurationFile
    let warnings: [ConfigurationDiagnostic]
    let omittedWarnings: Int
    /// Somebody besides root and this user can change the file.
    let isWritableByOthers: Bool
}

let readingOptions = [
    Option(long: "lenient", help: "accept what wg accepts, with warnings"),
    Option(
        long: "insecure-permissions", help: "accept a file with keys that everybody may read"),
]

extension LoadedConfiguration {
    /// Reads what `source` has, and refuses it as a whole when it is not a configuration, or when
    /// it has keys and everybody may read it (C95).
    init(_ source: ConfigurationSource, _ invocation: Invocation) throws(Failure) {
        var text: [UInt8] = []
        defer { erase(&text) }
        try self.init(source, invocation, text: &text)
    }

    /// `text` becomes what was read; the caller erases it.
    init(
        _ source: ConfigurationSource, _ invocation: Invocation, text: inout [UInt8]
    ) throws(Failure) {
        let file = try Self.read(source)
        text = file.bytes
        let parsed: ConfigurationFile.Parsed
        do throws(ConfigurationError) {
            parsed = try ConfigurationFile.parse(
                text.span, file: source.displayName, lenient: invocation.has("lenient"))
        } catch {
            throw .diagnostics(lines(of: error))
        }
        self.source = source
        configuration = parsed.configuration
        warnings = parsed.warnings
        omittedWarnings = parsed.omittedWarnings
        isWritableByOthers = file.isRegular && file.isWritableByOthers
        if file.isOpenToAll, configuration.hasSecrets {
            try refuseOpenFile(invocation)
        }
    }

    static func read(_ source: ConfigurationSource) throws(Failure) -> HostFile {
        // One byte more than the parser takes: it then says what is wrong in its own way.
        let limit = ConfigurationFile.sizeLimit + 1
        return switch source {
        case .standardInput:
            try asking { () throws(HostError) in try HostFile.readStandardInput(limit: limit) }
        case .file(let path):
            try asking { () throws(HostError) in try HostFile.read(path, limit: limit) }
        }
    }

    private func refuseOpenFile(_ invocation: Invocation) throws(Failure) {
        guard case .file(let path) = source else { return }
        let what = "\(source.displayName) holds keys and is open to everybody"
        let remedy = "run chmod 600 \(shellQuoted(path))"
        guard invocation.has("insecure-permissions") else {
            throw Failure(
                code: ExitCode.configurationInvalid,
                "\(what); \(remedy), or give --insecure-permissions to go on")
        }
        Output.note("warning: \(what); \(remedy)", invocation)
    }

    func noteWarnings(_ invocation: Invocation) {
        for warning in warnings { Output.note(line(warning, "warning"), invocation) }
        if omittedWarnings > 0 {
            Output.note("and \(omittedWarnings) more warnings", invocation)
        }
    }
}

extension ConfigurationFile {
    var hasSecrets: Bool {
        interface.privateKey != nil || peers.contains { $0.presharedKey != nil }
    }
}

// MARK: diagnostics

/// One line as compilers write it.
func line(_ diagnostic: ConfigurationDiagnostic, _ severity: String) -> String {
    let text = diagnostic.text.map { " \"\($0)\"" } ?? ""
    return "\(diagnostic.file):\(diagnostic.line):\(diagnostic.column): \(severity): "
        + "\(diagnostic.cause.message)\(text); \(diagnostic.cause.advice)"
}

private func lines(of error: ConfigurationError) -> String {
    var lines = error.diagnostics.map { line($0, "error") }
    if error.omitted > 0 { lines.append("and \(error.omitted) more errors") }
    return lines.joined(separator: "\n")
}
