// SPDX-License-Identifier: Apache-2.0
// `nexusguard status` without an interface: this host as a device of its hub.
import Agent
import ControlAPI
import HostProcess

func agentStatus(_ invocation: Invocation) throws(Failure) -> UInt8 {
    let status: AgentStatus
    do throws(AgentFailure) {
        status = try agentClient(invocation).status()
    } catch {
        throw Failure(code: error.exitCode, error.message + adviceOnHub(error))
    }
    if invocation.has("json") {
        try Output.write(bytes: Wire.encode(status) + [0x0A])
    } else {
        try Output.write(agentStatusText(status, now: Host.wallClock().seconds))
    }
    return ExitCode.ok
}

/// A machine that is a hub and no device of one.
private func adviceOnHub(_ failure: AgentFailure) -> String {
    guard failure.exitCode == ExitCode.notRunning, HostFile.exists(defaultHubSocket) else {
        return ""
    }
    return "; of the hub on this machine tells \(programName) hub status"
}

/// `now`: seconds since 1970.
func agentStatusText(_ status: AgentStatus, now: Int64) -> String {
    let card = [
        ("IP Address", status.device.ipAddress),
        ("Admin Web", status.device.adminWeb),
        ("Device ID", status.device.deviceId),
        ("Handshake", status.tunnel.lastHandshake.map { age($0, now) } ?? "never"),
        ("Allowed IPs", status.device.allowedIps),
        ("Transport", status.device.transport),
    ].map { row($0.0, $0.1 ?? "-") }
    let planes = [
        row("Tunnel", tunnelText(status.tunnel, now)),
        row("Control", controlText(status.control, now)),
        row("Agent", agentText(status, now)),
    ]
    return (card + [""] + planes + details(status) + [""]).joined(separator: "\n")
}

private func row(_ name: String, _ value: String) -> String {
    name + String(repeating: " ", count: max(1, 14 - name.utf8.count)) + visibleLine(value)
}

/// What the hub or the network sent is shown as one line.
private func visibleLine(_ text: String) -> String { visible(text, limit: 1000) }

private func tunnelText(_ tunnel: AgentStatus.Tunnel, _ now: Int64) -> String {
    var text = "\(tunnel.connection), \(tunnel.standing) since \(tunnel.since)"
    if tunnel.standing == "up" {
        text += ", \(tunnel.liveness) for \(span(tunnel.livenessSince, now))"
    }
    if let received = tunnel.receivedBytes, let sent = tunnel.sentBytes {
        text += ", \(received) B received, \(sent) B sent"
    }
    return text + (tunnel.reason.map { ": \($0)" } ?? "")
}

private func controlText(_ control: AgentStatus.Control, _ now: Int64) -> String {
    var text = "\(control.standing) since \(control.since)"
    if let latest = control.connectedAt { text += ", latest answer \(age(latest, now))" }
    if control.failures > 0 { text += ", \(control.failures) failures in a row" }
    return text + (control.reason.map { ": \($0)" } ?? "")
}

private func agentText(_ status: AgentStatus, _ now: Int64) -> String {
    let text =
        "\(status.phase) since \(status.phaseSince), \(status.interface), "
        + "process \(status.process)"
    return text + (status.reason.map { ": \($0)" } ?? "")
}

private func details(_ status: AgentStatus) -> [String] {
    var lines: [String] = []
    if let hash = status.sync.configHash {
        lines.append(row("Applied", "configuration \(hash.prefix(16))"))
    }
    if let hash = status.sync.rejectedHash {
        lines.append(
            row(
                "Rejected",
                "\(hash.prefix(16)) (\(status.sync.rejectedCode ?? "")): "
                    + (status.sync.rejectedReason ?? "")))
    }
    for forward in status.forwards { lines.append(row("Forward", forwardText(forward))) }
    if let storage = status.storage { lines.append(row("Storage", storage)) }
    if let problem = status.storageProblem {
        let since = status.storageProblemSince.map { " since \($0)" } ?? ""
        lines.append(row("Disk", "not written\(since): \(problem)"))
    }
    if !status.problems.isEmpty {
        lines.append(row("Problems", status.problems.joined(separator: ", ")))
    }
    return lines
}

private func forwardText(_ forward: Forward) -> String {
    let ports = "\(forward.publicPort)" + (forward.publicPortEnd.map { "-\($0)" } ?? "")
    return
        "\(forward.protocol) \(ports) of the hub to \(forward.targetIp) port \(forward.targetPort)"
        + (forward.description.map { " (\($0))" } ?? "")
}

private func age(_ time: Timestamp, _ now: Int64) -> String {
    time.unixSeconds > now ? "\(time)" : "\(span(time, now)) ago"
}

private func span(_ time: Timestamp, _ now: Int64) -> String {
    let seconds = max(0, now - time.unixSeconds)
    switch seconds {
    case ..<120: return "\(seconds) s"
    case ..<7200: return "\(seconds / 60) min"
    case ..<172_800: return "\(seconds / 3600) h"
    default: return "\(seconds / 86_400) days"
    }
}
