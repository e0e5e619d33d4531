// SPDX-License-Identifier: Apache-2.0
import HostProcess
import TunnelPlan
import WireGuard

let showVerb = Verb(
    name: "show", operands: "[IFNAME | all | interfaces] [FIELD]", operandCount: 0...2,
    summary: "Show running tunnels, as wg show does.",
    details: """
        FIELD is one of
          \(ShowField.allCases.map(\.rawValue).joined(separator: " "))
        Keys are hidden unless WG_HIDE_KEYS=never or FIELD asks for them. WG_COLOR_MODE is always,
        never or auto; NO_COLOR is respected.
        """,
    options: [Option(long: "json", help: "print JSON, without keys")],
    completes: [.running, .words(["all", "interfaces"] + ShowField.allCases.map(\.rawValue))],
    run: show)

private func show(_ invocation: Invocation) throws(Failure) -> UInt8 {
    let subject = invocation.operands.first ?? "all"
    let field = try field(invocation)
    guard subject != "interfaces" else {
        let names = RunningTunnels.names()
        if invocation.has("json") {
            try Output.write(bytes: jsonNames(names))
        } else if !names.isEmpty {
            try Output.write(names.map(\.description).joined(separator: " ") + "\n")
        }
        return ExitCode.ok
    }
    let (devices, code) = try devices(subject)
    if invocation.has("json") {
        try Output.write(bytes: showJSON(devices))
    } else {
        var text =
            field.map { ShowLines(devices, $0, showsName: subject == "all").bytes }
            ?? ShowText(devices, style: style()).bytes
        defer { erase(&text) }
        try Output.write(bytes: text)
    }
    return code
}

private func field(_ invocation: Invocation) throws(Failure) -> ShowField? {
    guard invocation.operands.count == 2 else { return nil }
    let word = invocation.operands[1]
    guard invocation.operands[0] != "interfaces" else {
        throw .usage("\(quoted(word)): interfaces have no field")
    }
    guard !invocation.has("json") else {
        throw .usage("\(quoted(word)): --json prints every field")
    }
    guard let field = ShowField(rawValue: word) else {
        throw .usage("\(quoted(word)): no such field")
    }
    return field
}

/// All that answer; those that do not are said, and make the exit code 1.
private func devices(_ subject: String) throws(Failure) -> ([ShownDevice], UInt8) {
    guard subject == "all" else {
        let name = try interfaceName(subject)
        return ([ShownDevice(name: subject, device: try RunningTunnels.snapshot(name))], 0)
    }
    var devices: [ShownDevice] = []
    var code = ExitCode.ok
    for name in RunningTunnels.names() {
        do throws(Failure) {
            let device = try RunningTunnels.snapshot(name)
            devices.append(ShownDevice(name: name.description, device: device))
        } catch {
            StandardStream.error.write("\(programName) show: \(error.message)\n")
            code = ExitCode.failed
        }
    }
    return (devices, code)
}

private func style() -> ShowStyle {
    let isColoured =
        switch Host.environment("WG_COLOR_MODE") {
        case "always": true
        case "never": false
        // Any value counts, as https://no-color.org has it.
        default: StandardStream.output.isTerminal && Host.environment("NO_COLOR") == nil
        }
    return ShowStyle(
        isColoured: isColoured, hidesKeys: Host.environment("WG_HIDE_KEYS") != "never",
        now: Host.wallClock().seconds)
}

private func jsonNames(_ names: [InterfaceName]) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.number("schemaVersion", 1)
    writer.beginArray("interfaces")
    for name in names { writer.string(nil, name.description) }
    writer.endArray()
    writer.endObject()
    return writer.text + [UInt8(ascii: "\n")]
}
