// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import Hub

let hubSettingsCommands = [
    Verb(
        name: "status", summary: "Show the hub, its keeper and how many devices report.",
        options: hubClientOptions, run: showStatus),
    Verb(
        name: "settings", summary: "Show the settings of the network.", options: hubClientOptions,
        run: showSettings),
    Verb(
        name: "set", operands: "NAME=VALUE...", operandCount: 1...64,
        summary: "Change settings of the network.",
        details: """
            For a start: \(programName) hub set endpoint=vpn.example.org:51820 \\
                             pools=10.99.0.0/16,fd99::/64
            """,
        options: hubClientOptions, run: changeSettings),
]

private func showStatus(_ invocation: Invocation) throws(Failure) -> UInt8 {
    let client = try HubClient(invocation)
    let answer = try client.ask("GET", "/status")
    try invocation.show(answer) { () throws(Failure) in
        let hub = try client.decode(HubView.self, answer)
        let counts = try client.ask(CountsView.self, "GET", "/counts")
        let keeper =
            hub.keeperProblem ?? (hub.keeperApplied == nil ? "nothing applied yet" : "good")
        return """
            endpoint: \(hub.endpoint.isEmpty ? "(not set)" : hub.endpoint)
            addresses: \(hub.addresses.isEmpty ? "(no pool)" : hub.addresses.joined(separator: ", "))
            public key: \(hub.publicKey)
            pin: \(hub.pin ?? "(plain HTTP)")
            certificate: \(hub.certificateExpires.map { "until \($0)" } ?? "(plain HTTP)")
            interface: \(hub.interface)
            keeper: \(keeper)
            secrets: \(hub.protection)
            storage: \(hub.storageProblem ?? "good")
            devices: \(counts.devices), \(counts.reporting) reporting, \(counts.silent) silent, \
            \(counts.pending) pending, \(counts.revoked) revoked
            tunnels up: \(counts.tunnelsUp)
            open alarms: \(counts.openAlarms)

            """
    }
    return ExitCode.ok
}

private func showSettings(_ invocation: Invocation) throws(Failure) -> UInt8 {
    let client = try HubClient(invocation)
    let answer = try client.ask("GET", "/settings")
    try invocation.show(answer) { () throws(Failure) in
        try client.decode([String: String].self, answer).sorted { $0.key < $1.key }
            .map { "\($0.key)=\($0.value)\n" }.joined()
    }
    return ExitCode.ok
}

private func changeSettings(_ invocation: Invocation) throws(Failure) -> UInt8 {
    var values: [String: String] = [:]
    for operand in invocation.operands {
        let parts = operand.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { throw .usage("\(quoted(operand)) is not NAME=VALUE") }
        values[String(parts[0])] = String(parts[1])
    }
    let answer = try HubClient(invocation).ask("PATCH", "/settings", body: values)
    if invocation.has("json") { try Output.write(bytes: answer + [0x0A]) }
    return ExitCode.ok
}
