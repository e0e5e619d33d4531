// SPDX-License-Identifier: Apache-2.0
// Which ports may be forwarded where.
import ControlAPI
import Crypto
import TunnelPlan
import WireGuard

/// Ports of the machine that no forward may take, besides those in the settings.
struct OwnPorts: Equatable, Sendable {
    /// The hub's HTTPS port.
    var control: UInt16?
}

extension HubCore {
    /// Puts a new forward, or one in place of `replacing`. Throws `.conflict` for ports of the hub,
    /// reserved ones and overlaps, `.badRequest` for a target outside of what is routed to the
    /// device.
    mutating func putForward(
        _ wire: Forward, device id: String, keepsSource: Bool, isEnabled: Bool,
        replacing old: ForwardRule? = nil, by actor: String, at now: Milliseconds
    ) throws(Refusal) -> ForwardRule {
        let device = try activeDevice(id)
        var rule = try Self.rule(wire, device: id)
        rule.keepsSource = keepsSource
        rule.isEnabled = isEnabled
        guard old != nil || model.forwards[rule.id] == nil else {
            throw Refusal(.conflict, "there is a forward \(rule.id) already")
        }
        guard device.prefixes.contains(where: { $0.contains(rule.target) }) else {
            throw Refusal(
                .badRequest,
                "\(rule.target) is not routed to \(device.name); it has \(joined(device.prefixes))")
        }
        guard rule.portForward != nil else {
            throw Refusal(
                .badRequest, "more than \(PortForward.shiftedPortLimit) ports lead to other ports")
        }
        if let problem = conflict(rule) { throw Refusal(.conflict, problem) }
        try commit([
            .forward(rule),
            log("forward", "\(rule.summary) to \(device.name)", device: id, by: actor, at: now),
        ])
        if let old, old.deviceId != id { forwardsChanged(old.deviceId) }
        return rule
    }

    mutating func removeForward(
        _ id: String, by actor: String, at now: Milliseconds
    ) throws(Refusal) {
        guard let rule = model.forwards[id] else {
            throw Refusal(.notFound, "there is no forward \(visible(id, limit: 64))")
        }
        try commit([
            .removeForward(id),
            log("forward", "\(rule.summary) removed", device: rule.deviceId, by: actor, at: now),
        ])
        forwardsChanged(rule.deviceId)
    }

    private static func rule(_ wire: Forward, device: String) throws(Refusal) -> ForwardRule {
        do throws(ConfigRefusal) {
            let checked = try wire.validated()
            return ForwardRule(
                id: checked.id, deviceId: device,
                transport: checked.transport == .tcp ? .tcp : .udp, ports: checked.publicPorts,
                target: checked.target, targetPort: checked.targetPort,
                description: checked.description ?? "")
        } catch {
            throw Refusal(.badRequest, error.description)
        }
    }

    /// Why the ports cannot be had; nil: they can. Ports count even while a rule is disabled, so
    /// that enabling never fails.
    private func conflict(_ rule: ForwardRule) -> String? {
        if rule.transport == .udp, rule.ports.contains(model.settings.listenPort) {
            return "UDP port \(model.settings.listenPort) is the hub's own"
        }
        if rule.transport == .tcp, let port = ownPorts.control, rule.ports.contains(port) {
            return "TCP port \(port) is the hub's own"
        }
        if let port = model.settings.reservedPorts.first(where: { rule.ports.contains($0) }) {
            return "port \(port) is reserved"
        }
        let others = model.forwards.values.filter {
            $0.id != rule.id && $0.transport == rule.transport && $0.ports.overlaps(rule.ports)
                && $0.target.bitWidth == rule.target.bitWidth
        }
        return others.min { $0.id < $1.id }.map { "its ports overlap with \($0.summary)" }
    }

    /// One that is not revoked.
    func activeDevice(_ id: String) throws(Refusal) -> Device {
        guard let device = model.devices[id] else {
            throw Refusal(.notFound, "there is no device \(visible(id, limit: 64))")
        }
        guard device.revoked == nil else {
            throw Refusal(.conflict, "\(device.name) is revoked", deviceId: id)
        }
        return device
    }

    func log(
        _ tag: String, _ message: String, device: String? = nil, by actor: String,
        at now: Milliseconds
    ) -> Change {
        .log(
            LogRecord(
                time: now, level: "info", tag: tag, message: message, deviceId: device,
                actor: actor))
    }
}

extension ForwardRule {
    /// By port.
    static func precedes(_ left: ForwardRule, _ right: ForwardRule) -> Bool {
        (left.ports.lowerBound, left.id) < (right.ports.lowerBound, right.id)
    }

    /// `web: tcp 8443 → 10.1.2.3 port 443`, for messages.
    var summary: String {
        let range =
            ports.count > 1 ? "\(ports.lowerBound)-\(ports.upperBound)" : "\(ports.lowerBound)"
        return "\(id): \(transport.rawValue) \(range) → \(target) port \(targetPort)"
    }
}
