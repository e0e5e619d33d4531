// SPDX-License-Identifier: Apache-2.0
// What people do with a tunnel: each verb asks its keeper.
import HostProcess
import Keeper
import TunnelPlan
import WireGuard

private let applyOptions =
    hookOptions + readingOptions + gatewayOptions + [
        renewOption,
        Option(
            long: "backend", argument: "KIND",
            help: "kernel, userspace or auto (default): who moves "
                + "the packets"),
        jsonOption,
    ]
private let renewOption = Option(
    long: "renew", help: "exchange the link for a new one, of a new engine, with little loss")
private let confirmOption = Option(
    long: "confirm", argument: "SECONDS",
    help: "come back to the former state unless `confirm` comes within SECONDS")
private let persistOption = Option(
    long: "persist",
    help: "come back with the machine (nexusguard-keep@IFNAME), until `down`")
private let jsonOption = Option(long: "json", help: "print the result as JSON")

let tunnelVerbs = [
    Verb(
        name: "up", operands: "FILE", operandCount: 1...1,
        summary: "Bring a tunnel up, or change the running one to what FILE says.",
        details: tunnelDetails, options: applyOptions + [confirmOption, persistOption],
        completes: [.file, .configured], run: up),
    Verb(
        name: "down", operands: "IFNAME", operandCount: 1...1,
        summary: "Take a tunnel down, with everything that was made for it.",
        options: [
            Option(
                long: "until-boot", help: "one that comes back with the machine still does"),
            jsonOption,
        ], completes: [.running], run: down),
    Verb(
        name: "sync", operands: "FILE", operandCount: 1...1,
        summary: "Change the running tunnel to what FILE says.",
        details: tunnelDetails + "\nPeers that stay keep their session, endpoint and counters.",
        options: applyOptions + [confirmOption, persistOption], completes: [.file, .configured],
        run: sync),
    Verb(
        name: "plan", operands: "FILE", operandCount: 1...1,
        summary: "Print what up or sync would change, and change nothing.",
        details: tunnelDetails, options: applyOptions, completes: [.file, .configured],
        run: planChanges),
    Verb(
        name: "confirm", operands: "IFNAME", operandCount: 1...1,
        summary: "Keep what --confirm made provisional.", completes: [.running], run: confirm),
    Verb(
        name: "status", operands: "[IFNAME]", operandCount: 0...1,
        summary: "Print how the agent, or the keeper of a tunnel, is doing.",
        details: """
            Without IFNAME: this host as a device of its hub, the tunnel and the way to the hub apart.
            """,
        options: [jsonOption, socketOption], completes: [.running], run: status),
    Verb(
        name: "save", operands: "IFNAME", operandCount: 1...1,
        summary: "Write the peers and keys of the running tunnel into its configuration.",
        details: """
            IFNAME may be the path of the file. Addresses, commands, names of peers and of hosts,
            and settings of other programs stay as they are; comments are not kept.
            """,
        options: readingOptions, completes: [.running], run: save),
]

private let tunnelDetails = """
    FILE is a path, or the name of a tunnel: then it is /etc/nexusguard/NAME.conf, or else
    /etc/wireguard/NAME.conf. The tunnel is called as the file is, without .conf.
    """

// MARK: up, sync, plan

private func up(_ invocation: Invocation) throws(Failure) -> UInt8 {
    try apply(invocation, start: .always, isPlan: false)
}

private func sync(_ invocation: Invocation) throws(Failure) -> UInt8 {
    try apply(invocation, start: .whereLeft, isPlan: false)
}

private func planChanges(_ invocation: Invocation) throws(Failure) -> UInt8 {
    try apply(invocation, start: .always, isPlan: true)
}

private func apply(
    _ invocation: Invocation, start: KeeperStart, isPlan: Bool
) throws(Failure) -> UInt8 {
    var options = try applyOptions(invocation)
    options.isDryRun = isPlan
    let source = try ConfigurationSource(invocation.operands[0])
    let name = try tunnelName(of: source)
    var text: [UInt8] = []
    defer { erase(&text) }
    var loaded = try LoadedConfiguration(source, invocation, text: &text)
    if options.hooks == .allow { try loaded.requireTrustedHooks() }
    try loaded.decideHooks(invocation)
    loaded.noteWarnings(invocation)
    let report = try askKeeper(name, start) { client throws(KeeperFailure) in
        try client.apply(text, options: options)
    }
    try tell(report, name, invocation)
    return ExitCode.ok
}

private func applyOptions(
    _ invocation: Invocation
) throws(Failure) -> KeeperClient.ApplyOptions {
    var options = KeeperClient.ApplyOptions()
    options.confirmSeconds = try invocation.number("confirm", 1...86_400).map { UInt32($0) }
    options.isLenient = invocation.has("lenient")
    options.isPersistent = invocation.has("persist")
    options.renewsLink = invocation.has("renew")
    try readGatewayOptions(invocation, into: &options)
    options.backend = try backendPreference(invocation)
    if invocation.has("allow-hooks") {
        options.hooks = .allow
    } else if invocation.has("no-hooks") {
        options.hooks = .ignore
    }
    return options
}

private func backendPreference(_ invocation: Invocation) throws(Failure) -> BackendKind? {
    guard let text = invocation.values["backend"], text != "auto" else { return nil }
    guard let kind = BackendKind(rawValue: text) else {
        throw .usage("--backend: \(quoted(text)) is not kernel, userspace or auto")
    }
    return kind
}

private func tunnelName(of source: ConfigurationSource) throws(Failure) -> InterfaceName {
    if let name = source.interfaceName { return name }
    throw .usage(
        "\(source.displayName) names no tunnel: a file is called IFNAME.conf, and IFNAME has 1 to 15 "
            + "characters of a-zA-Z0-9_=+.-")
}

extension LoadedConfiguration {
    /// Who can change the file could become root by it (C26).
    fileprivate func requireTrustedHooks() throws(Failure) {
        guard !configuration.interface.hooks.isEmpty, isWritableByOthers,
            case .file(let path) = source
        else { return }
        throw Failure(
            code: ExitCode.configurationInvalid,
            "\(source.displayName) has commands that run as root, and others than root can change "
                + "it; run chown root \(shellQuoted(path)) && chmod go-w \(shellQuoted(path))")
    }
}

/// Warnings and progress to standard error, the result to standard output.
private func tell(
    _ report: AppliedReport, _ name: InterfaceName, _ invocation: Invocation
) throws(Failure) {
    // Those about the text were said already, with the name of the file.
    for warning in report.warnings where !warning.hasPrefix("\(name).conf:") {
        Output.note(warning, invocation)
    }
    if invocation.has("json") { return try Output.write(bytes: report.json + [0x0A]) }
    if report.isPlan {
        return try Output.write(report.changes.map { $0 + "\n" }.joined())
    }
    if !report.changes.isEmpty {
        Output.note(report.changes.joined(separator: "\n"), invocation)
    }
    if let seconds = report.confirmSeconds {
        Output.note(
            "the former state comes back in \(seconds) s, unless you run "
                + "\(programName) confirm \(name)", invocation)
    }
    guard !invocation.has("quiet") else { return }
    let count = report.changes.count
    let what = count == 0 ? "nothing to change" : count == 1 ? "1 change" : "\(count) changes"
    try Output.write("\(name): \(what)\n")
}

// MARK: down, confirm, status

private func down(_ invocation: Invocation) throws(Failure) -> UInt8 {
    let name = try tunnelName(given: invocation.operands[0])
    let staysPersistent = invocation.has("until-boot")
    try refuseWhereWanted(name)
    try askKeeper(name, .whereLeft) { client throws(KeeperFailure) in
        try client.down(staysPersistent: staysPersistent)
    }
    return ExitCode.ok
}

private func confirm(_ invocation: Invocation) throws(Failure) -> UInt8 {
    let name = try tunnelName(given: invocation.operands[0])
    try askKeeper(name, .whereLeft) { client throws(KeeperFailure) in try client.confirm() }
    return ExitCode.ok
}

private func status(_ invocation: Invocation) throws(Failure) -> UInt8 {
    guard !invocation.operands.isEmpty else { return try agentStatus(invocation) }
    let name = try tunnelName(given: invocation.operands[0])
    let status = try askKeeper(name, .never) { client throws(KeeperFailure) in
        try client.status()
    }
    if invocation.has("json") {
        try Output.write(bytes: json(status, name))
    } else {
        try Output.write(text(status, name))
    }
    return ExitCode.ok
}

private func text(_ status: KeeperStatus, _ name: InterfaceName) -> String {
    var lines = ["\(name): \(status.phase.rawValue), kept by process \(status.process)"]
    if let seconds = status.confirmSeconds {
        lines.append("  the former state comes back in \(seconds) s without a confirmation")
    }
    if !status.unresolved.isEmpty {
        lines.append("  without an address: \(status.unresolved.joined(separator: ", "))")
    }
    if let seconds = status.clockBehind {
        lines.append("  the clock is \(seconds) s behind its latest handshake")
    }
    if let seconds = status.endpointsHeld {
        lines.append("  its peers get their endpoints when the clock is set, or in \(seconds) s")
    }
    if status.mended > 0 { lines.append("  mended: \(status.mended)") }
    if let warning = status.lastWarning { lines.append("  latest warning: \(warning)") }
    return lines.map { $0 + "\n" }.joined()
}

private func json(_ status: KeeperStatus, _ name: InterfaceName) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.number("schemaVersion", 1)
    writer.string("interface", name.description)
    writer.string("phase", status.phase.rawValue)
    writer.number("process", UInt64(status.process))
    if let seconds = status.confirmSeconds { writer.number("confirmSeconds", seconds) }
    writer.beginArray("unresolved")
    for host in status.unresolved { writer.string(nil, host) }
    writer.endArray()
    if let seconds = status.clockBehind { writer.number("clockBehindSeconds", seconds) }
    if let seconds = status.endpointsHeld { writer.number("endpointsHeldSeconds", seconds) }
    writer.number("mended", status.mended)
    if let warning = status.lastWarning { writer.string("lastWarning", warning) }
    writer.endObject()
    return writer.text + [0x0A]
}

/// A name, or a file that is called by it.
private func tunnelName(given operand: String) throws(Failure) -> InterfaceName {
    if operand.contains("/") || operand.hasSuffix(".conf") {
        return try tunnelName(of: .file(operand))
    }
    return try interfaceName(operand)
}

// MARK: save

private func save(_ invocation: Invocation) throws(Failure) -> UInt8 {
    let name = try tunnelName(given: invocation.operands[0])
    let source = try ConfigurationSource(invocation.operands[0])
    guard case .file(let path) = source else { throw .usage("a file has to be named") }
    let device = try RunningTunnels.snapshot(name)
    let loaded = try LoadedConfiguration(source, invocation)
    var text = loaded.configuration.saving(device).write()
    defer { erase(&text) }
    try asking { () throws(HostError) in try HostFile.write(text, to: path, replacing: true) }
    if !invocation.has("quiet") { try Output.write("\(visible(path))\n") }
    return ExitCode.ok
}
