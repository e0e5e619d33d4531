// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import HostProcess
import Hub
import WireGuard

let hubOperatorCommands = [
    Verb(
        name: "operator add", operands: "NAME", operandCount: 1...1,
        summary: "Let somebody log in over the network, or set a new password.",
        details: "The password is read from a file, or from standard input: at least 12 bytes.",
        options: [passwordFile("password-file")] + hubClientOptions
    ) { (invocation) throws(Failure) in
        var password = try secretFile(invocation, "password-file")
        defer { erase(&password) }
        let text = SecretText(String(decoding: password, as: UTF8.self))
        try HubClient(invocation).ask(
            "POST", "/operators",
            body: OperatorRequest(name: invocation.operands[0], password: text))
        return ExitCode.ok
    },
    Verb(
        name: "operator list", summary: "List who may log in.", options: hubClientOptions
    ) { (invocation) throws(Failure) in
        let client = try HubClient(invocation)
        let answer = try client.ask("GET", "/operators")
        try invocation.show(answer) { () throws(Failure) in
            let page = try client.decode(Page<OperatorView>.self, answer)
            return columns(
                ["NAME", "CREATED"], page.items.map { [$0.name, $0.created.description] })
        }
        return ExitCode.ok
    },
    Verb(
        name: "operator remove", operands: "NAME", operandCount: 1...1,
        summary: "Log somebody out for good.", options: hubClientOptions
    ) { (invocation) throws(Failure) in
        try HubClient(invocation).ask(
            "DELETE", "/operators/\(encodedSegment(invocation.operands[0]))")
        return ExitCode.ok
    },
]

func passwordFile(_ long: String) -> Option {
    Option(long: long, argument: "FILE", help: "read it from FILE (default -, standard input)")
}

/// A secret of one line. It is never an argument: those are for everybody to see (C94). The caller
/// erases it.
func secretFile(_ invocation: Invocation, _ long: String) throws(Failure) -> [UInt8] {
    let name = invocation.values[long] ?? "-"
    var file = try asking { () throws(HostError) in
        name == "-"
            ? try HostFile.readStandardInput(limit: 4096) : try HostFile.read(name, limit: 4096)
    }
    if file.isOpenToAll {
        Output.note("warning: everybody may read \(name); run chmod 600 on it", invocation)
    }
    if let end = file.bytes.firstIndex(of: 0x0A) {
        guard end == file.bytes.count - 1 else {
            erase(&file.bytes)
            throw Failure("\(name) has more than one line")
        }
        file.bytes.removeLast()
    }
    return file.bytes
}
