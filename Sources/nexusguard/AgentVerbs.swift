// SPDX-License-Identifier: Apache-2.0
// A host of a fleet: enrol it, run its agent, wait for it, let it leave.
import Agent
import ControlAPI
import HostProcess
import Keeper
import TunnelPlan
import WireGuard

private let jsonOption = Option(long: "json", help: "print the result as JSON")

let agentVerbs = [
    Verb(
        name: "enroll", operands: "URL", operandCount: 1...1,
        summary: "Enrol this host at a hub, with a token.",
        details: """
            URL is https://HOST[:PORT]. The token comes from a file, a descriptor, standard input or
            the credential nexusguard.token, never from the command line. The WireGuard key is made
            here and does not leave this host. A running agent takes the identity up at once.
            """,
        options: tokenOptions + hubOptions + [
            Option(
                long: "timeout", argument: "SECONDS",
                help: "how long to try while the hub does not answer; default 60"),
            Option(long: "replace", help: "also where there is an identity already"),
            userOption, stateOption, socketOption, jsonOption,
        ], run: enroll),
    Verb(
        name: "agent", summary: "Keep the tunnel in step with the hub.",
        details: """
            Started by root, it starts the keeper of its interface where none answers and becomes
            the user nexusguard. The tunnel stays when it ends. With --enroll it enrols first, where
            there is no identity yet.
            """,
        options: [
            Option(long: "interface", argument: "IFNAME", help: "the tunnel's name; default ng0"),
            Option(long: "enroll", argument: "URL", help: "the hub to enrol at"),
        ] + tokenOptions + hubOptions + [
            Option(long: "no-dns", help: "leave this host's resolver alone"),
            Option(long: "background", short: "b", help: "go to the background when ready"),
            Option(
                long: "keeper-directory", argument: "DIRECTORY",
                help: "where the keeper's socket is; default /run/nexusguard"),
            userOption, stateOption, socketOption,
        ], run: agent),
    Verb(
        name: "unenroll", summary: "Leave the hub, take the tunnel down, forget the identity.",
        details: "The running agent does it. The logs stay.",
        options: [
            Option(long: "force", help: "also when the hub or the keeper does not answer"),
            socketOption,
        ], run: unenroll),
    Verb(
        name: "wait", summary: "Wait until the tunnel carries data and the hub answers.",
        options: [
            Option(
                long: "timeout", argument: "SECONDS", help: "give up after SECONDS; default 60"),
            Option(
                long: "for", argument: "PLANE", help: "tunnel, control, or both (default)"),
            socketOption,
        ], run: waitForAgent),
]

// MARK: enroll

private func enroll(_ invocation: Invocation) throws(Failure) -> UInt8 {
    guard let token = try enrolmentToken(invocation) else {
        throw .usage("no token: use --token-file FILE, --token-file - or --token-fd NUMBER")
    }
    let order = try enrolmentOrder(invocation.operands[0], token, invocation)
    var options = EnrolProgram.Options(version: programVersion, machine: try machineIdentity())
    options.stateDirectory = invocation.values["state"] ?? options.stateDirectory
    options.socketPath = agentClient(invocation).path
    options.user = invocation.values["user"] ?? options.user
    options.seconds = Int64(try invocation.number("timeout", 0...86_400) ?? 60)
    options.replaces = invocation.has("replace")
    let program = EnrolProgram(options, order) { Output.note($0, invocation) }
    let report = try askingAgent { () throws(AgentFailure) in try program.run() }
    try tell(report, invocation)
    return ExitCode.ok
}

private func tell(_ report: EnrolProgram.Report, _ invocation: Invocation) throws(Failure) {
    guard !invocation.has("json") else {
        var writer = JSONWriter()
        writer.beginObject()
        writer.number("schemaVersion", 1)
        writer.string("deviceId", report.deviceId)
        writer.string("hub", report.hub)
        writer.string("ipAddress", report.ipAddress)
        writer.bool("agentRuns", report.isAgentRunning)
        writer.endObject()
        return try Output.write(bytes: writer.text + [0x0A])
    }
    guard !invocation.has("quiet") else { return }
    try Output.write("enrolled at \(report.hub) as \(report.deviceId), \(report.ipAddress)\n")
    if !report.isAgentRunning {
        Output.note(
            "now start the agent: systemctl enable --now nexusguard-agent, or \(programName) agent",
            invocation)
    }
}

// MARK: agent

private func agent(_ invocation: Invocation) throws(Failure) -> UInt8 {
    var options = AgentProgram.Options(version: programVersion, machine: try machineIdentity())
    if let name = invocation.values["interface"] { options.interface = try interfaceName(name) }
    if let url = invocation.values["enroll"] {
        guard let token = try enrolmentToken(invocation) else {
            throw .usage("--enroll needs a token: --token-file FILE or --token-fd NUMBER")
        }
        options.enrolment = try enrolmentOrder(url, token, invocation)
    }
    options.stateDirectory = invocation.values["state"] ?? options.stateDirectory
    options.socketPath = agentClient(invocation).path
    options.keeperDirectory = invocation.values["keeper-directory"] ?? options.keeperDirectory
    options.user = invocation.values["user"] ?? options.user
    options.settings.acceptsDNS = !invocation.has("no-dns")
    options.isBackground = invocation.has("background")
    options.program = programName
    if User.isRoot, options.keeperDirectory == AgentProgram.Options.standardKeeperDirectory {
        try startKeeper(of: options.interface)
    }
    return AgentProgram.run(options)
}

/// The agent has no rights to do it later. Where it fails the agent tries for ever to reach one.
private func startKeeper(of name: InterfaceName) throws(Failure) {
    _ = try askKeeper(name, .toStay) { client throws(KeeperFailure) in try client.status() }
}

// MARK: unenroll, wait

private func unenroll(_ invocation: Invocation) throws(Failure) -> UInt8 {
    try askingAgent { () throws(AgentFailure) in
        try agentClient(invocation).unenroll(isForced: invocation.has("force"))
    }
    return ExitCode.ok
}

/// Milliseconds between two questions.
private let waitPause: Int64 = 250

private func waitForAgent(_ invocation: Invocation) throws(Failure) -> UInt8 {
    let seconds = try invocation.number("timeout", 0...86_400) ?? 60
    let plane = invocation.values["for"] ?? "both"
    guard ["tunnel", "control", "both"].contains(plane) else {
        throw .usage("--for: \(quoted(plane)) is not tunnel, control or both")
    }
    let deadline = Host.monotonicMilliseconds() + Int64(seconds) * 1000
    var poller = Poller()
    while true {
        let missing: Failure
        do throws(AgentFailure) {
            guard let lack = lack(try agentClient(invocation).status(), plane) else {
                return ExitCode.ok
            }
            missing = Failure("not ready after \(seconds) s: \(lack)")
        } catch {
            guard error.exitCode == ExitCode.notRunning else { throw Failure(error) }
            missing = Failure(error)
        }
        guard Host.monotonicMilliseconds() < deadline else { throw missing }
        poller.wait(milliseconds: waitPause)
    }
}

/// What is missing; nil: nothing.
private func lack(_ status: AgentStatus, _ plane: String) -> String? {
    if plane != "control", status.tunnel.connection != "connected" {
        return status.tunnel.reason ?? status.reason ?? "the tunnel is \(status.tunnel.connection)"
    }
    if plane != "tunnel", status.control.standing != "connected" {
        return status.control.reason ?? status.reason ?? "the hub was not asked yet"
    }
    return nil
}
