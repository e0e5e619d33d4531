// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import Hub

let hubForwardCommands = [
    Verb(
        name: "forward add", operands: "DEVICE tcp|udp:PORT[-PORT] [TARGET][:PORT]",
        operandCount: 2...3, summary: "Lead a port of the hub to a device or behind it.",
        details: """
            Without a target it is the device's own address; without its port the same as at the
            hub. Example: \(programName) hub forward add gate tcp:8443 10.1.2.3:443
            """,
        options: [
            Option(long: "id", argument: "ID", help: "what to call it"),
            Option(long: "description", argument: "TEXT", help: "what it is for"),
            Option(
                long: "keep-source",
                help: "the target sees who asks; it must answer through the tunnel"),
        ] + hubClientOptions, run: addForward),
    Verb(
        name: "forward list", operands: "[DEVICE]", operandCount: 0...1,
        summary: "List the forwards by port.",
        options: [
            Option(long: "device", argument: "DEVICE", help: "only those to this device")
        ] + hubClientOptions, run: listForwards),
    Verb(
        name: "forward remove", operands: "ID", operandCount: 1...1, summary: "Remove a forward.",
        options: hubClientOptions, run: removeForward),
]

private func addForward(_ invocation: Invocation) throws(Failure) -> UInt8 {
    let words = invocation.operands[1].split(separator: ":", maxSplits: 1)
    let ports = words.count == 2 ? words[1].split(separator: "-").map { Int($0) } : []
    guard words.count == 2, 1...2 ~= ports.count, let first = ports[0],
        let last = ports[ports.count - 1]
    else { throw .usage("\(quoted(invocation.operands[1])) is not like tcp:8443 or udp:5000-5010") }
    let client = try HubClient(invocation)
    var request = ForwardRequest(
        deviceId: try client.deviceId(invocation.operands[0]), protocol: String(words[0]),
        publicPort: first)
    if last != first { request.publicPortEnd = last }
    if invocation.operands.count == 3 {
        (request.targetIp, request.targetPort) = try target(invocation.operands[2])
    }
    request.id = invocation.values["id"]
    request.description = invocation.values["description"]
    request.keepsSource = invocation.has("keep-source")
    let answer = try client.ask("POST", "/forwards", body: request)
    try invocation.show(answer) { () throws(Failure) in
        try client.decode(ForwardView.self, answer).id + "\n"
    }
    return ExitCode.ok
}

/// `10.1.2.3:443`, `[fd00::1]:443`, `10.1.2.3`, `fd00::1`, `:443`.
private func target(_ text: String) throws(Failure) -> (String?, Int?) {
    let isBare = text.filter { $0 == ":" }.count > 1 && !text.hasPrefix("[")
    guard !isBare, let colon = text.lastIndex(of: ":"), !text.hasSuffix("]") else {
        return (text.filter { $0 != "[" && $0 != "]" }, nil)
    }
    guard let port = Int(text[text.index(after: colon)...]) else {
        throw .usage("\(quoted(text)) is no [ADDRESS][:PORT]")
    }
    let host = text[..<colon].filter { $0 != "[" && $0 != "]" }
    return (host.isEmpty ? nil : host, port)
}

private func listForwards(_ invocation: Invocation) throws(Failure) -> UInt8 {
    let client = try HubClient(invocation)
    var device: String?
    if let text = invocation.values["device"] ?? invocation.operands.first {
        device = try client.deviceId(text)
    }
    let answer = try client.ask(
        "GET", "/forwards", query: [("deviceId", device), ("limit", "500")])
    try invocation.show(answer) { () throws(Failure) in
        let page = try client.decode(Page<ForwardView>.self, answer)
        return columns(
            ["ID", "PORT", "TARGET", "DEVICE", "DESCRIPTION"],
            page.items.map { rule in
                [
                    rule.id, rule.ports, "\(rule.targetIp) port \(rule.targetPort)",
                    rule.deviceId, rule.description ?? "",
                ]
            })
    }
    return ExitCode.ok
}

extension ForwardView {
    /// `tcp 8443`, `udp 5000-5010`.
    var ports: String {
        "\(`protocol`) \(publicPort)" + (publicPortEnd.map { "-\($0)" } ?? "")
    }
}

private func removeForward(_ invocation: Invocation) throws(Failure) -> UInt8 {
    try HubClient(invocation).ask("DELETE", "/forwards/\(encodedSegment(invocation.operands[0]))")
    return ExitCode.ok
}
