// SPDX-License-Identifier: Apache-2.0
// The keeper's socket, to the client: each answer and each event is one JSON object on one line.
import TunnelPlan
import WireGuard

/// What `status` tells.
public struct KeeperStatus: Equatable, Sendable {
    public enum Phase: String, Sendable {
        /// No configuration yet.
        case waiting
        case up
        /// Up, and the former state comes back without a confirmation.
        case unconfirmed
        case ending
    }

    public var phase: Phase
    public var process: Int32
    /// Seconds until the former state comes back.
    public var confirmSeconds: UInt64?
    /// Endpoint names without an address.
    public var unresolved: [String] = []
    /// Seconds that the clock is behind what this tunnel's handshakes have carried (C78).
    public var clockBehind: UInt64?
    /// Seconds that the peers' endpoints wait for the clock at most.
    public var endpointsHeld: UInt64?
    /// How often something was mended since this keeper began.
    public var mended: UInt64 = 0
    /// The latest event that was a warning.
    public var lastWarning: String?
}

enum Reply {
    static func line(_ answer: Answer, name: InterfaceName) -> [UInt8] {
        var json = JSONWriter()
        switch answer {
        case .failure(let failure):
            json.begin(ok: false)
            json.beginObject("error")
            json.string("kind", failure.kind.rawValue)
            json.number("exitCode", UInt64(failure.exitCode))
            json.string("message", failure.message)
            json.endObject()
        case .applied(let applied):
            json.begin(ok: true)
            json.write(applied, isPlan: false)
            return json.endLine(with: applied.plan)
        case .planned(let applied):
            json.begin(ok: true)
            json.write(applied, isPlan: true)
            return json.endLine(with: applied.plan)
        case .confirmed, .down: json.begin(ok: true)
        }
        return json.endLine()
    }

    static func line(_ status: KeeperStatus, name: InterfaceName) -> [UInt8] {
        var json = JSONWriter()
        json.begin(ok: true)
        json.string("interface", name.description)
        json.string("phase", status.phase.rawValue)
        json.number("process", UInt64(status.process))
        if let seconds = status.confirmSeconds { json.number("confirmSeconds", seconds) }
        json.beginArray("unresolved")
        for host in status.unresolved { json.string(nil, host) }
        json.endArray()
        if let seconds = status.clockBehind { json.number("clockBehindSeconds", seconds) }
        if let seconds = status.endpointsHeld { json.number("endpointsHeldSeconds", seconds) }
        json.number("mended", status.mended)
        if let warning = status.lastWarning { json.string("lastWarning", warning) }
        return json.endLine()
    }

    static func line(_ device: DeviceState?) -> [UInt8] {
        var json = JSONWriter()
        json.begin(ok: true)
        json.write(device)
        return json.endLine()
    }

    static func line(_ event: KeeperEvent, wallSeconds: Int64) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.number("schemaVersion", keeperSchemaVersion)
        json.string("event", event.kind.rawValue)
        json.number("time", UInt64(max(0, wallSeconds)))
        json.bool("isWarning", event.isWarning)
        json.string("message", event.message)
        return json.endLine()
    }
}

extension JSONWriter {
    fileprivate mutating func begin(ok: Bool) {
        beginObject()
        number("schemaVersion", keeperSchemaVersion)
        bool("ok", ok)
    }

    fileprivate mutating func write(_ applied: Applied, isPlan: Bool) {
        bool("isPlan", isPlan)
        beginArray("changes")
        for change in applied.changes {
            for line in applied.plan.lines(change) { string(nil, line) }
        }
        endArray()
        beginArray("warnings")
        for warning in applied.warnings { string(nil, warning) }
        endArray()
        if let seconds = applied.confirmSeconds { number("confirmSeconds", UInt64(seconds)) }
    }

    fileprivate mutating func endLine() -> [UInt8] {
        endObject()
        return text + [0x0A]
    }

    /// The plan is written by its own writer: it becomes the last member.
    fileprivate mutating func endLine(with plan: PlanDocument) -> [UInt8] {
        text + Array(",\"plan\":".utf8) + plan.json() + Array("}\n".utf8)
    }
}

extension KeeperFailure {
    /// As nexusguard(8) lists them.
    public var exitCode: UInt8 {
        switch kind {
        case .failed: 1
        case .notRunning: 3
        case .permission: 4
        case .configurationInvalid: 5
        case .busy: 8
        }
    }
}
