// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import HostProcess
import Hub
import WireGuard

let hubBackupCommands = [
    Verb(
        name: "backup", operands: "FILE", operandCount: 1...1,
        summary: "Write everything of the hub to a file, sealed under a passphrase.",
        details: "The hub goes on meanwhile. The passphrase has at least 12 bytes.",
        options: [
            passwordFile("passphrase-file"),
            Option(long: "force", help: "replace FILE if it is there"),
        ] + hubClientOptions, completes: [.file], run: backUp),
    Verb(
        name: "restore", operands: "FILE", operandCount: 1...1,
        summary: "Make the hub of a backup this machine's.",
        details: """
            The state directory must have no hub. Afterwards start it with `\(programName) hub
            run`, and lead the endpoint's name to this machine.
            """,
        options: [
            passwordFile("passphrase-file"),
            Option(long: "state", argument: "DIR", help: "(default \(defaultHubState))"),
            Option(
                long: "user", argument: "NAME", help: "whose it is when run as root (nexusguard)"),
        ], completes: [.file], run: restore),
]

private func backUp(_ invocation: Invocation) throws(Failure) -> UInt8 {
    var passphrase = try secretFile(invocation, "passphrase-file")
    defer { erase(&passphrase) }
    let text = SecretText(String(decoding: passphrase, as: UTF8.self))
    let file = try HubClient(invocation).ask(
        "POST", "/backup", body: BackupRequest(passphrase: text))
    try asking { () throws(HostError) in
        try HostFile.write(
            file, to: invocation.operands[0], replacing: invocation.has("force"))
    }
    return ExitCode.ok
}

private func restore(_ invocation: Invocation) throws(Failure) -> UInt8 {
    var passphrase = try secretFile(invocation, "passphrase-file")
    defer { erase(&passphrase) }
    let file = try asking { () throws(HostError) in
        try HostFile.read(invocation.operands[0], limit: 1 << 30)
    }
    let directory = invocation.values["state"] ?? defaultHubState
    let machine = try machineIdentity()
    try becomeHubUser(invocation, stateDirectory: directory)
    do throws(HubError) {
        try HubRestore.restore(
            file.bytes, passphrase: passphrase, stateDirectory: directory, machine: machine)
    } catch {
        throw Failure(error)
    }
    Output.note("the hub is restored in \(directory)", invocation)
    return ExitCode.ok
}
