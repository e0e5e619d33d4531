// SPDX-License-Identifier: Apache-2.0
import HostProcess
import TunnelPlan
import WireGuard

let fileVerbs = [
    checkVerb,
    Verb(
        name: "strip", operands: "FILE", operandCount: 1...1,
        summary: "Print the part of a configuration that wg setconf takes.",
        details: "Settings of wg-quick, unknown ones and hooks are left out.",
        options: readingOptions, completes: [.file, .configured], run: strip),
    Verb(
        name: "import", operands: "FILE", operandCount: 1...1,
        summary: "Copy a configuration to /etc/nexusguard, in a uniform spelling.",
        details: """
            FILE is a path or - for standard input. The copy belongs to its owner alone (0600) and
            is complete or not there. Commands (PreUp, PostUp, PreDown, PostDown) are run as root,
            so they are refused unless you have read them.
            """,
        options: readingOptions + hookOptions + outputOptions + [
            Option(long: "name", short: "n", argument: "IFNAME", help: "the tunnel's name")
        ],
        completes: [.file], run: importFile),
    Verb(
        name: "export", operands: "FILE", operandCount: 1...1,
        summary: "Print a configuration in a uniform spelling, with its keys.",
        details: "FILE is a path, the name of a tunnel or - for standard input.",
        options: readingOptions + outputOptions, completes: [.file, .configured], run: export),
]

let hookOptions = [
    Option(long: "allow-hooks", help: "keep and run the commands that the file has"),
    Option(long: "no-hooks", help: "leave out the commands that the file has"),
]
private let outputOptions = [
    Option(
        long: "output", short: "o", argument: "PATH", help: "write there; - is standard output"),
    Option(long: "force", short: "f", help: "replace a file that is there"),
]

private func strip(_ invocation: Invocation) throws(Failure) -> UInt8 {
    let loaded = try LoadedConfiguration(ConfigurationSource(invocation.operands[0]), invocation)
    loaded.noteWarnings(invocation)
    var text = loaded.configuration.strip()
    try Output.write(secret: &text, invocation)
    return ExitCode.ok
}

private func export(_ invocation: Invocation) throws(Failure) -> UInt8 {
    let loaded = try LoadedConfiguration(ConfigurationSource(invocation.operands[0]), invocation)
    loaded.noteWarnings(invocation)
    try write(loaded.configuration, to: invocation.values["output"] ?? "-", invocation)
    return ExitCode.ok
}

private func importFile(_ invocation: Invocation) throws(Failure) -> UInt8 {
    let operand = invocation.operands[0]
    // A name would be looked up where imported files already are.
    let source: ConfigurationSource = operand == "-" ? .standardInput : .file(operand)
    let destination = try importDestination(source, invocation)
    var loaded = try LoadedConfiguration(source, invocation)
    try loaded.decideHooks(invocation)
    loaded.noteWarnings(invocation)
    try write(loaded.configuration, to: destination, invocation)
    return ExitCode.ok
}

private func importDestination(
    _ source: ConfigurationSource, _ invocation: Invocation
) throws(Failure) -> String {
    if let output = invocation.values["output"] { return output }
    let name: InterfaceName
    if let given = invocation.values["name"] {
        guard let valid = InterfaceName(given) else {
            throw .usage(
                "--name: \(quoted(given)) is not an interface's name: 1 to 15 characters of "
                    + "a-zA-Z0-9_=+.-")
        }
        name = valid
    } else if let own = source.interfaceName {
        name = own
    } else {
        throw .usage("what is the tunnel called? Give --name IFNAME, or --output PATH")
    }
    let directory = ConfigurationSource.directories[0]
    try asking { () throws(HostError) in
        try HostFile.makeDirectory(directory, permissions: 0o750)
    }
    return "\(directory)/\(name).conf"
}

extension LoadedConfiguration {
    /// A stranger's commands are neither run nor kept unless the operator says so (C26).
    mutating func decideHooks(_ invocation: Invocation) throws(Failure) {
        guard !invocation.has("allow-hooks") || !invocation.has("no-hooks") else {
            throw .usage("--allow-hooks and --no-hooks contradict each other")
        }
        let hooks = configuration.interface.hooks
        guard !hooks.isEmpty, !invocation.has("allow-hooks") else { return }
        let list = hooks.map { "  \($0.event.name) = \($0.command)" }.joined(separator: "\n")
        guard invocation.has("no-hooks") else {
            throw Failure(
                code: ExitCode.configurationInvalid,
                "\(source.displayName) has commands that would run as root:\n\(list)\n"
                    + "give --allow-hooks when you have read them, or --no-hooks to leave them out")
        }
        Output.note("left out of \(source.displayName):\n\(list)", invocation)
        configuration.interface.hooks = []
    }
}

extension ConfigurationFile.Hook.Event {
    /// As the file has it.
    var name: String {
        switch self {
        case .preUp: "PreUp"
        case .postUp: "PostUp"
        case .preDown: "PreDown"
        case .postDown: "PostDown"
        }
    }
}

/// Says where it went, unless that is standard output itself.
private func write(
    _ configuration: ConfigurationFile, to path: String, _ invocation: Invocation
) throws(Failure) {
    var text = configuration.write()
    guard path != "-" else { return try Output.write(secret: &text, invocation) }
    defer { erase(&text) }
    guard invocation.has("force") || !HostFile.exists(path) else { throw alreadyThere(path) }
    try asking { () throws(HostError) in
        try HostFile.write(text, to: path, replacing: invocation.has("force"))
    }
    if !invocation.has("quiet") { try Output.write("\(visible(path))\n") }
}

private func alreadyThere(_ path: String) -> Failure {
    Failure("\(visible(path)) is already there; give --force to replace it")
}
