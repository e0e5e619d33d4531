// SPDX-License-Identifier: Apache-2.0
import HostProcess
import Hub
import Keeper
import Storage
import TunnelPlan

let hubRunCommand = Verb(
    name: "run", summary: "Be the control server; it stays in the foreground.",
    details: """
        Started as root it starts the keeper of its interface where none answers, then becomes
        the user nexusguard. Without a certificate it makes one and logs the pin that devices
        enrol with.
        """,
    options: [
        Option(
            long: "listen", argument: "[ADDRESS:]PORT",
            help: "where devices connect to (default 8443 of all addresses)"),
        Option(
            long: "plain-loopback", argument: "PORT",
            help: "plain HTTP on 127.0.0.1, for a proxy in front or for tests"),
        Option(long: "certificate", argument: "FILE", help: "certificate chain in PEM"),
        Option(long: "key", argument: "FILE", help: "its private key in PEM"),
        Option(
            long: "name", argument: "NAME[,NAME]...",
            help: "names and addresses for a certificate of its own"),
        Option(
            long: "interface", argument: "IFNAME", help: "the hub's tunnel (default nghub0)"),
        Option(
            long: "state", argument: "DIR", help: "where it keeps its state (\(defaultHubState))"),
        Option(long: "socket", argument: "PATH", help: "for operators (\(defaultHubSocket))"),
        Option(
            long: "user", argument: "NAME", help: "whom to become when started as root (nexusguard)"
        ),
        Option(
            long: "keeper-directory", argument: "DIR",
            help: "where the keeper's socket is (/run/nexusguard); then it starts no keeper"),
    ], run: runHubProgram)

private func runHubProgram(_ invocation: Invocation) throws(Failure) -> UInt8 {
    var options = HubProgram.Options(
        interface: try interfaceName(invocation.values["interface"] ?? "nghub0"),
        machine: try machineIdentity(), version: programVersion)
    options.stateDirectory = invocation.values["state"] ?? defaultHubState
    options.socketPath = invocation.values["socket"] ?? defaultHubSocket
    options.names = (invocation.values["name"] ?? "").split(separator: ",").map(String.init)
    options.listen = try listen(invocation)
    options.keeperDirectory = invocation.values["keeper-directory"] ?? options.keeperDirectory
    if User.isRoot, !invocation.has("keeper-directory") { try startKeeper(of: options.interface) }
    try becomeHubUser(
        invocation, stateDirectory: options.stateDirectory, socketPath: options.socketPath)
    do throws(HubError) {
        try HubProgram.run(options)
    } catch {
        throw Failure(error)
    }
    return ExitCode.ok
}

/// The hub has no rights to do it later. It waits for its first configuration there.
private func startKeeper(of name: InterfaceName) throws(Failure) {
    _ = try askKeeper(name, .toStay) { client throws(KeeperFailure) in try client.status() }
}

/// What parses the network is not root: makes the state directory for the hub's user and becomes it.
func becomeHubUser(
    _ invocation: Invocation, stateDirectory: String, socketPath: String? = nil
) throws(Failure) {
    let name = invocation.values["user"] ?? "nexusguard"
    var user = User.current
    if User.isRoot {
        guard let named = User.named(name) else {
            throw Failure(
                "there is no user \(name) to run as; run useradd --system --user-group \(name), or "
                    + "name one with --user")
        }
        user = named
    }
    do throws(StorageError) {
        _ = try StateDirectory(stateDirectory, owner: user.number, group: user.group)
    } catch {
        let isPermission = error.kind == .noPermission || error.kind == .notPrivate
        throw Failure(
            code: isPermission ? ExitCode.noPermission : ExitCode.failed, error.description)
    }
    if let socketPath {
        try asking { () throws(HostError) in
            try SocketDirectory.make(for: socketPath, owner: user)
        }
    }
    // Who is not root has what its starter gave it on purpose, such as the right to a port below 1024.
    guard User.isRoot else { return try asking { () throws(HostError) in try Host.forbidDumps() } }
    try asking { () throws(HostError) in try user.become() }
}

private func listen(_ invocation: Invocation) throws(Failure) -> HubProgram.Listen {
    if invocation.has("plain-loopback") {
        for other in ["listen", "certificate", "key"] where invocation.has(other) {
            throw .usage("--plain-loopback and --\(other) exclude each other")
        }
        return .loopback(port: UInt16(try invocation.number("plain-loopback", 0...65535) ?? 0))
    }
    guard invocation.has("certificate") == invocation.has("key") else {
        throw .usage("--certificate and --key belong together")
    }
    let text = invocation.values["listen"] ?? "8443"
    let colon = text.lastIndex(of: ":")
    let digits = colon.map { String(text[text.index(after: $0)...]) } ?? text
    guard let port = UInt16(digits), digits.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else {
        throw .usage("--listen: \(quoted(text)) is no [ADDRESS:]PORT")
    }
    var address = colon.map { String(text[..<$0]) } ?? "*"
    if address.hasPrefix("["), address.hasSuffix("]") {
        address = String(address.dropFirst().dropLast())
    }
    let given = invocation.values["certificate"].map {
        (file: $0, key: invocation.values["key"] ?? "")
    }
    return .tls(address: address, port: port, certificate: given)
}

extension Failure {
    init(_ error: HubError) {
        let code =
            switch error.kind {
            case .failed: ExitCode.failed
            case .usage: ExitCode.usage
            case .permission: ExitCode.noPermission
            case .busy: ExitCode.busy
            case .configuration: ExitCode.configurationInvalid
            }
        self.init(code: code, error.description)
    }
}
