// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import HTTP
import Hub

let hubDeviceCommands =
    [
        Verb(
            name: "device list", summary: "List the devices by name.",
            options: [
                Option(
                    long: "search", argument: "TEXT",
                    help: "in name, id, hardware id, platform, key, addresses, networks"),
                Option(
                    long: "control", argument: "STATE",
                    help: "only pending, reporting, silent or revoked ones"),
                Option(long: "offset", argument: "N", help: "leave out the first N"),
                Option(long: "limit", argument: "N", help: "at most N (default 500)"),
            ] + hubClientOptions, run: listDevices),
        deviceCommand("show", "Show all about a device.") {
            (client, id, invocation) throws(Failure) in
            let answer = try client.ask("GET", "/devices/\(id)")
            try invocation.show(answer) { () throws(Failure) in
                try describe(client.decode(DeviceView.self, answer))
            }
        },
        Verb(
            name: "device set", operands: "DEVICE", operandCount: 1...1,
            summary: "Change a device's name or networks.",
            options: [
                Option(long: "name", argument: "NAME", help: "what people call it"),
                Option(
                    long: "networks", argument: "PREFIX[,PREFIX]...",
                    help: "what is behind it and is routed to it; \"\": nothing"),
                Option(
                    long: "allowed-ips", argument: "PREFIX[,PREFIX]...",
                    help: "what it sends through the tunnel; \"default\": the network's"),
            ] + hubClientOptions, run: setDevice),
        deviceCommand("revoke", "Remove a device; it is told so, and its tunnel ends.") {
            (client, id, _) throws(Failure) in try client.ask("POST", "/devices/\(id)/revoke")
        },
        deviceCommand("forget", "Take a revoked device out of the list: it may enrol again.") {
            (client, id, _) throws(Failure) in try client.ask("DELETE", "/devices/\(id)")
        },
    ]
    + [
        ("reset", "Tell a device to make a new handshake; ends a quarrel about its identity."),
        ("reprovision", "Tell a device to enrol again under its id."),
        ("rotate", "Tell a device to make a new key."),
    ].map { name, summary in
        deviceCommand(name, summary) { (client, id, _) throws(Failure) in
            try client.ask("POST", "/devices/\(id)/\(name)")
        }
    }

/// `device NAME DEVICE`.
private func deviceCommand(
    _ name: String, _ summary: String,
    _ body: @escaping @Sendable (HubClient, String, Invocation) throws(Failure) -> Void
) -> Verb {
    Verb(
        name: "device \(name)", operands: "DEVICE", operandCount: 1...1, summary: summary,
        details: "DEVICE is an id, or a name that only one device has.", options: hubClientOptions
    ) { (invocation) throws(Failure) in
        let client = try HubClient(invocation)
        try body(client, client.deviceId(invocation.operands[0]), invocation)
        return ExitCode.ok
    }
}

private func listDevices(_ invocation: Invocation) throws(Failure) -> UInt8 {
    let client = try HubClient(invocation)
    let answer = try client.ask(
        "GET", "/devices",
        query: [
            ("search", invocation.values["search"]), ("control", invocation.values["control"]),
            ("offset", invocation.values["offset"]),
            ("limit", invocation.values["limit"] ?? "500"),
        ])
    try invocation.show(answer) { () throws(Failure) in
        let page = try client.decode(Page<DeviceView>.self, answer)
        let shown = page.offset + page.items.count
        return columns(
            ["NAME", "CONTROL", "TUNNEL", "ADDRESSES", "LAST SEEN", "ID"],
            page.items.map { device in
                [
                    device.name, device.control.rawValue,
                    // What it said last is over.
                    device.control == .revoked ? "-" : device.tunnel.state.rawValue,
                    device.addresses.joined(separator: ","),
                    device.lastSeen?.description ?? "never", device.id,
                ]
            }) + (shown < page.total ? "… \(page.total - shown) more; see --offset\n" : "")
    }
    return ExitCode.ok
}

private func describe(_ device: DeviceView) -> String {
    var rows: [(String, String?)] = [
        ("name", device.name), ("id", device.id), ("hardware id", device.hwid),
        ("platform", device.platform), ("agent", device.agentVersion),
        ("addresses", device.addresses.joined(separator: ", ")),
        ("networks", device.networks.joined(separator: ", ")),
        ("allowed ips", device.allowedIps?.joined(separator: ", ") ?? "the network's"),
        ("public key", device.publicKey), ("control", device.control.rawValue),
        ("last seen", device.lastSeen?.description ?? "never"),
        ("configuration", device.isInStep ? "applied" : "not applied yet"),
        ("refused because", device.rejectedCode),
        ("tunnel", device.tunnel.state.rawValue),
        ("backend", device.tunnel.backend?.rawValue),
        ("last handshake", device.tunnel.lastHandshake?.description ?? "never"),
        ("transfer", "\(device.tunnel.rxBytes) B received, \(device.tunnel.txBytes) B sent"),
        ("problems", device.problems.isEmpty ? nil : device.problems.joined(separator: ", ")),
        ("next command", device.command), ("key rotation", device.rotation),
    ]
    if let hub = device.tunnel.hub {
        rows += [
            ("endpoint", hub.endpoint),
            ("hub's handshake", hub.lastHandshake?.description ?? "never"),
        ]
    }
    rows += (device.forwards ?? []).map { rule in
        let state = rule.isEnabled ? "" : ", disabled"
        return (
            "forward",
            "\(rule.id), \(rule.ports) to \(rule.targetIp) port \(rule.targetPort)\(state)"
        )
    }
    return rows.compactMap { name, value in
        value.map { "\(name): \($0.isEmpty ? "(none)" : LogPrinter.visible($0))\n" }
    }.joined()
}

private func setDevice(_ invocation: Invocation) throws(Failure) -> UInt8 {
    var request = DevicePatchRequest()
    request.name = invocation.values["name"]
    request.networks = invocation.values["networks"].map { listOf($0) }
    if let text = invocation.values["allowed-ips"] {
        request.allowedIps = .some(text == "default" ? nil : listOf(text))
    }
    guard request != DevicePatchRequest() else {
        throw .usage("nothing to change: give --name, --networks or --allowed-ips")
    }
    let client = try HubClient(invocation)
    let id = try client.deviceId(invocation.operands[0])
    let answer = try client.ask("PATCH", "/devices/\(id)", body: request)
    if invocation.has("json") { try Output.write(bytes: answer + [0x0A]) }
    return ExitCode.ok
}

/// The parts of a list with commas.
func listOf(_ text: String) -> [String] {
    text.split(separator: ",").map { String($0.filter { $0 != " " }) }
}

/// One segment of a path, whatever it holds.
func encodedSegment(_ text: String) -> String { HTTPText.encoded(text) }
