// SPDX-License-Identifier: Apache-2.0
// `nexusguard hub`: the control server, and a word for each thing an operator does with it.

/// Every command of `nexusguard hub`, in the order in which its help lists them. The names have one
/// word or two.
let hubCommands =
    [hubRunCommand] + hubSettingsCommands + hubTokenCommands + hubDeviceCommands
    + hubForwardCommands + hubAlarmCommands + hubOperatorCommands + hubBackupCommands

let hubVerb = Verb(
    name: "hub", operands: "[COMMAND [OPTION]... [OPERAND]...]", operandCount: 0...64,
    summary: "Be the control server that devices enrol with, or command it.",
    details: """
        Without a command it is `\(programName) hub run`.

        Commands:
        \(hubCommandList)

          \(programName) hub COMMAND --help    about one command
        """,
    options: hubRunCommand.options, optionsEndAtOperand: true,
    commands: hubCommands, run: runHub)

private var hubCommandList: String {
    let width = hubCommands.map(\.name.count).max() ?? 0
    return hubCommands.map { command in
        "  " + command.name + String(repeating: " ", count: width - command.name.count + 2)
            + command.summary
    }.joined(separator: "\n")
}

private func firstWord(_ command: Verb) -> String {
    String(command.name.split(separator: " ")[0])
}

private func runHub(_ invocation: Invocation) throws(Failure) -> UInt8 {
    guard let word = invocation.operands.first else { return try hubRunCommand.run(invocation) }
    guard invocation.values.isEmpty || invocation.values.keys.allSatisfy({ $0 == "quiet" }) else {
        throw .usage("options stand behind the command: \(programName) hub \(word) …")
    }
    let two = invocation.operands.prefix(2).joined(separator: " ")
    guard let command = hubCommands.first(where: { $0.name == two || $0.name == word }) else {
        let known = hubCommands.filter { firstWord($0) == word }.map(\.name)
        guard known.isEmpty else {
            throw .usage("after \(word) comes one of: \(known.joined(separator: ", "))")
        }
        throw .usage("\(quoted(word)): no such command of hub")
    }
    let rest = invocation.operands.dropFirst(command.name == word ? 1 : 2)
    let inner = try CommandLineParser.parse(Array(rest), for: command)
    if inner.has("help") {
        try Output.write(helpText(inHub(command)))
        return ExitCode.ok
    }
    return try command.run(inner)
}

/// As its help names it.
private func inHub(_ command: Verb) -> Verb {
    Verb(
        name: "hub \(command.name)", operands: command.operands,
        operandCount: command.operandCount, summary: command.summary, details: command.details,
        options: command.options, run: command.run)
}

/// Of every command that asks the hub.
let hubClientOptions = [
    Option(long: "json", help: "print the hub's answer as it is"),
    Option(
        long: "socket", argument: "PATH",
        help: "the hub's socket (default \(defaultHubSocket))"),
]

let defaultHubSocket = "/run/nexusguard/hub/hub.sock"
let defaultHubState = "/var/lib/nexusguard/hub"
