// SPDX-License-Identifier: Apache-2.0
// What operators do with devices and tokens.
import ControlAPI
import Crypto
import WireGuard

extension HubCore {
    // MARK: tokens

    /// What a new token may do.
    struct TokenWish: Sendable {
        var label = ""
        /// nil: any number.
        var maximumUses: Int? = 1
        /// Milliseconds from now; nil: for ever.
        var life: Int64?
        var deviceId: String?
    }

    /// The only time its text is seen.
    mutating func makeToken(
        _ wish: TokenWish, by actor: String, at now: Milliseconds
    ) throws(Refusal) -> (EnrolToken, BearerToken) {
        if let id = wish.deviceId { _ = try activeDevice(id) }
        let bearer = BearerToken.generate()
        var token = EnrolToken(
            id: newTokenId(), digest: bearer.digest, label: try line(wish.label, "label"),
            created: now)
        token.maximumUses = wish.deviceId == nil ? wish.maximumUses : 1
        token.expires = wish.life.map { now + $0 }
        token.deviceId = wish.deviceId
        try commit([
            .token(token), log("token", "token \(token.id) made", by: actor, at: now),
        ])
        return (token, bearer)
    }

    mutating func revokeToken(
        _ id: String, by actor: String, at now: Milliseconds
    ) throws(Refusal) {
        guard var token = model.tokens[id] else {
            throw Refusal(.notFound, "there is no token \(visible(id, limit: 64))")
        }
        guard token.revoked == nil else { return }
        token.revoked = now
        try commit([.token(token), log("token", "token \(id) revoked", by: actor, at: now)])
    }

    // MARK: devices

    /// What of a device an operator may change; nil leaves it.
    struct DevicePatch: Sendable {
        var name: String?
        var networks: [Prefix]?
        /// `.some(nil)`: the network's routes again.
        var routes: [Prefix]??
    }

    mutating func patch(
        _ id: String, _ patch: DevicePatch, by actor: String, at now: Milliseconds
    ) throws(Refusal) -> Device {
        var device = try activeDevice(id)
        if let name = patch.name {
            guard !name.isEmpty else { throw Refusal(.badRequest, "name is empty") }
            device.name = try line(name, "name")
        }
        if let networks = patch.networks {
            try check(networks, of: device)
            device.networks = networks.sorted { "\($0)" < "\($1)" }
        }
        if let routes = patch.routes { device.routes = routes }
        guard device != model.devices[id] else { return device }
        try commit([
            .device(device),
            log("device", "\(device.name) changed", device: id, by: actor, at: now),
        ])
        return device
    }

    /// One prefix belongs to one peer.
    private func check(_ networks: [Prefix], of device: Device) throws(Refusal) {
        for (index, network) in networks.enumerated() {
            if let pool = model.settings.pools.first(where: { $0.overlaps(network) }) {
                throw Refusal(.conflict, "\(network) overlaps with the pool \(pool)")
            }
            if let other = networks[..<index].first(where: { $0.overlaps(network) }) {
                throw Refusal(.conflict, "\(network) and \(other) overlap")
            }
            for other in model.devices.values where other.id != device.id && other.revoked == nil {
                guard let taken = other.networks.first(where: { $0.overlaps(network) }) else {
                    continue
                }
                throw Refusal(
                    .conflict, "\(network) overlaps with \(taken) of \(other.name)",
                    deviceId: other.id)
            }
        }
        let stranded = model.forwards(of: device.id).first { rule in
            !device.addresses.contains(rule.target)
                && !networks.contains { $0.contains(rule.target) }
        }
        if let stranded {
            throw Refusal(.conflict, "the forward \(stranded.summary) would lead nowhere")
        }
    }

    /// The device is told `revoked` from now on; its peer and forwards go, its address rests.
    mutating func revoke(_ id: String, by actor: String, at now: Milliseconds) throws(Refusal) {
        guard var device = model.devices[id] else {
            throw Refusal(.notFound, "there is no device \(visible(id, limit: 64))")
        }
        guard device.revoked == nil else { return }
        device.revoked = now
        device.rotation = nil
        device.sealedKey = nil
        device.command = nil
        var changes: [Change] = device.addresses.map {
            .quarantine($0, until: now + quarantineLength)
        }
        changes.append(.device(device))
        changes += model.forwards(of: id).map { .removeForward($0.id) }
        changes.append(log("device", "\(device.name) revoked", device: id, by: actor, at: now))
        try commit(changes)
    }

    /// Takes a revoked device out of memory: its machine may enrol again as a new device.
    mutating func forget(_ id: String, by actor: String, at now: Milliseconds) throws(Refusal) {
        guard let device = model.devices[id] else {
            throw Refusal(.notFound, "there is no device \(visible(id, limit: 64))")
        }
        guard device.revoked != nil else {
            throw Refusal(.conflict, "\(device.name) is not revoked; revoke it first", deviceId: id)
        }
        try commit(
            removal(of: device, at: now) + [
                log("device", "\(device.name) forgotten", device: id, by: actor, at: now)
            ])
    }

    /// What it is told with its next heartbeat.
    mutating func command(
        _ command: PendingCommand, device id: String, by actor: String, at now: Milliseconds
    ) throws(Refusal) {
        var device = try activeDevice(id)
        device.command = command
        // Asked for again, it is done again.
        live[id]?.handedOut = nil
        // The operator has decided who is who.
        if command == .reset { live[id]?.judge = SessionJudge() }
        try commit([
            .device(device),
            log("command", "\(device.name): \(command.text)", device: id, by: actor, at: now),
        ])
    }

    // MARK: settings

    /// All or none of `values`.
    mutating func set(
        _ values: [String: String], by actor: String, at now: Milliseconds
    ) throws(Refusal) -> HubSettings {
        var settings = model.settings
        for name in values.keys.sorted() {
            if let what = settings.set(name, values[name]!) {
                throw Refusal(.badRequest, "\(visible(name, limit: 32)): \(what)")
            }
        }
        if settings.pools != model.settings.pools { try checkPools(settings.pools) }
        if settings.listenPort != model.settings.listenPort { try checkPort(settings.listenPort) }
        guard settings != model.settings else { return settings }
        try commit([
            .settings(settings),
            log(
                "settings",
                values.keys.sorted().map { "\($0) = \(values[$0]!)" }
                    .joined(separator: ", "), by: actor, at: now),
        ])
        return settings
    }

    /// A forward of the hub's own port would lead the handshakes of all devices to one of them.
    private func checkPort(_ port: UInt16) throws(Refusal) {
        let rules = model.forwards.values.filter { $0.transport == .udp && $0.ports.contains(port) }
        guard let rule = rules.min(by: { $0.id < $1.id }) else { return }
        throw Refusal(.conflict, "UDP port \(port) is forwarded: \(rule.summary)")
    }

    /// A device keeps its address for life: a pool stays as long as one is in it.
    private func checkPools(_ pools: [Prefix]) throws(Refusal) {
        for device in model.devices.values where device.revoked == nil {
            for address in device.addresses where !pools.contains(where: { $0.contains(address) }) {
                throw Refusal(
                    .conflict, "\(device.name) has \(address): no pool would hold it any more",
                    deviceId: device.id)
            }
            for network in device.networks {
                guard let pool = pools.first(where: { $0.overlaps(network) }) else { continue }
                throw Refusal(
                    .conflict, "\(pool) overlaps with \(network) of \(device.name)",
                    deviceId: device.id)
            }
        }
        let own = Set(pools.map { AddressPool($0).hubAddress })
        for device in model.devices.values where device.revoked == nil {
            guard let address = device.addresses.first(where: { own.contains($0) }) else {
                continue
            }
            throw Refusal(
                .conflict, "\(address) of \(device.name) would be the hub's own",
                deviceId: device.id)
        }
    }
}
