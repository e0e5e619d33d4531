// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import Hub

let hubTokenCommands = [
    Verb(
        name: "token create", summary: "Make an enrolment token and print it.",
        details: """
            It is shown once. Give it to a device as a file: `\(programName) enroll URL
            --token-file FILE`.
            """,
        options: [
            Option(long: "label", argument: "TEXT", help: "what it is for"),
            Option(
                long: "uses", argument: "N", help: "for so many devices; 0: any number (default 1)"),
            Option(
                long: "life", argument: "SECONDS", help: "60 to 31536000 (default: for ever)"),
            Option(
                long: "device", argument: "DEVICE",
                help: "only for this device, which keeps its id and address"),
        ] + hubClientOptions, run: createToken),
    Verb(
        name: "token list", summary: "List the tokens, without their secrets.",
        options: hubClientOptions, run: listTokens),
    Verb(
        name: "token revoke", operands: "ID", operandCount: 1...1,
        summary: "Make a token useless; devices that came with it stay.",
        options: hubClientOptions, run: revokeToken),
]

private func createToken(_ invocation: Invocation) throws(Failure) -> UInt8 {
    let client = try HubClient(invocation)
    var request = TokenRequest()
    request.label = invocation.values["label"]
    request.maximumUses = try invocation.number("uses", 0...1_000_000).map { Int($0) }
    request.lifeSeconds = try invocation.number("life", 60...31_536_000).map { Int($0) }
    if let device = invocation.values["device"] { request.deviceId = try client.deviceId(device) }
    let answer = try client.ask("POST", "/tokens", body: request)
    if invocation.has("json") {
        var text = answer + [0x0A]
        try Output.write(secret: &text, invocation)
        return ExitCode.ok
    }
    let view = try client.decode(TokenView.self, answer)
    Output.note("token \(view.id), shown this once", invocation)
    var text = Array("\(view.token?.exposed ?? "")\n".utf8)
    try Output.write(secret: &text, invocation)
    return ExitCode.ok
}

private func listTokens(_ invocation: Invocation) throws(Failure) -> UInt8 {
    let client = try HubClient(invocation)
    let answer = try client.ask("GET", "/tokens", query: [("limit", "500")])
    try invocation.show(answer) { () throws(Failure) in
        let page = try client.decode(Page<TokenView>.self, answer)
        return columns(
            ["ID", "STATUS", "USES", "EXPIRES", "LABEL"],
            page.items.map { token in
                [
                    token.id, token.status.rawValue,
                    "\(token.uses)/" + (token.maximumUses.map { "\($0)" } ?? "any"),
                    token.expires?.description ?? "never",
                    token.label + (token.deviceId.map { " (for \($0))" } ?? ""),
                ]
            })
    }
    return ExitCode.ok
}

private func revokeToken(_ invocation: Invocation) throws(Failure) -> UInt8 {
    try HubClient(invocation).ask("DELETE", "/tokens/\(encodedSegment(invocation.operands[0]))")
    return ExitCode.ok
}
