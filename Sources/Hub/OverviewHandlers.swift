// SPDX-License-Identifier: Apache-2.0
// Settings, alarms, logs, counts, accounts and events for operators.
import ControlAPI
import Crypto
import HTTP
import WireGuard

private let admin = "/api/v1/admin"

extension Hub {
    static let overviewRoutes: [Route] = [
        Route("GET", admin + "/status", .administrator) { (hub, _) throws(Refusal) in
            .json(try hub.view())
        },
        Route("GET", admin + "/counts", .administrator) { (hub, call) throws(Refusal) in
            .json(try hub.locked { (core) throws(Refusal) in core.counts(at: call.now) })
        },
        Route("GET", admin + "/settings", .administrator) { (hub, _) throws(Refusal) in
            let settings = try hub.locked { (core) throws(Refusal) in core.model.settings }
            return .json(settings.dictionary)
        },
        Route("PATCH", admin + "/settings", .administrator) { (hub, call) throws(Refusal) in
            let values = try call.decode([String: String].self)
            let settings = try hub.locked { (core) throws(Refusal) in
                try core.set(values, by: call.actor, at: call.now)
            }
            return .json(settings.dictionary)
        },
        Route("GET", admin + "/alarms", .administrator) { (hub, call) throws(Refusal) in
            let isOpenOnly = try call.word("state", AlarmState.self) == .open
            let alarms = try hub.locked { (core) throws(Refusal) in
                Array(core.model.alarms.values)
            }
            let items = alarms.filter { !isOpenOnly || $0.cleared == nil }
                .sorted { $0.id > $1.id }
            return try call.page(items.map { AlarmView($0) })
        },
        Route("POST", admin + "/alarms/{id}/acknowledge", .administrator) {
            (hub, call) throws(Refusal) in
            guard let id = Int64(call.parameters[0]) else {
                throw Refusal(.notFound, "there is no such alarm")
            }
            return .json(
                try hub.locked { (core) throws(Refusal) in
                    try core.acknowledge(id, by: call.actor, at: call.now)
                })
        },
        Route("GET", admin + "/logs", .administrator) { (hub, call) throws(Refusal) in
            let limit = Int(try call.number("limit", 1...1000, default: 100))
            let before = try call.number("before", 1...Int64.max, default: .max)
            let device = call.request.query["deviceId"]
            let items = try hub.locked { (core) throws(Refusal) in
                try core.logs(device: device, before: before, limit: limit)
            }
            return .json(Page(items: items, total: items.count, offset: 0))
        },
        Route("GET", admin + "/events", .administrator) { (hub, call) throws(Refusal) in
            let stream = EventStream()
            guard hub.streams.addOperator(stream, while: hub.staysAdministrator(call)) else {
                throw Refusal(.unavailable, "too many listen already", retryAfter: 10)
            }
            return .events(stream)
        },
    ]

    static let accountRoutes: [Route] = [
        Route("GET", admin + "/operators", .administrator) { (hub, call) throws(Refusal) in
            let accounts = try hub.locked { (core) throws(Refusal) in
                core.model.accounts.values.sorted { $0.name < $1.name }
            }
            return try call.page(
                accounts.map { OperatorView(name: $0.name, created: Timestamp($0.created)) })
        },
        Route("POST", admin + "/operators", .administrator) { (hub, call) throws(Refusal) in
            let account = try account(try call.decode(OperatorRequest.self), at: call.now)
            try hub.locked { (core) throws(Refusal) in
                try core.commit([
                    .account(account),
                    core.log(
                        "operator", "operator \(account.name) set", by: call.actor, at: call.now),
                ])
            }
            hub.sessions.end(account.name)
            return .json(
                OperatorView(name: account.name, created: Timestamp(account.created)), status: 201)
        },
        Route("DELETE", admin + "/operators/{name}", .administrator) {
            (hub, call) throws(Refusal) in
            let name = call.parameters[0]
            try hub.locked { (core) throws(Refusal) in
                guard core.model.accounts[name] != nil else {
                    throw Refusal(.notFound, "there is no operator of that name")
                }
                try core.commit([
                    .removeAccount(name),
                    core.log("operator", "operator \(name) removed", by: call.actor, at: call.now),
                ])
            }
            hub.sessions.end(name)
            return .noContent
        },
    ]

    private static func account(
        _ request: OperatorRequest, at now: Milliseconds
    ) throws(Refusal) -> OperatorAccount {
        guard Identifier(request.name) != nil else {
            throw Refusal(.badRequest, "name is not 1 to 64 letters, digits, - _ and .")
        }
        var password = Array(request.password.exposed.utf8)
        defer { erase(&password) }
        guard 12...1024 ~= password.count else {
            throw Refusal(.badRequest, "password has not 12 to 1024 bytes")
        }
        do throws(CryptoError) {
            return OperatorAccount(
                name: request.name, passwordHash: try PasswordHash.hash(password), created: now)
        } catch {
            throw Refusal(.unavailable, "cannot keep the password: \(error)", retryAfter: 10)
        }
    }

    func view() throws(Refusal) -> HubView {
        try locked { (core) throws(Refusal) in
            HubView(
                version: surroundings.version, started: Timestamp(started),
                isSetUp: core.isSetUp, publicKey: core.publicKey.base64,
                endpoint: core.model.settings.endpoint,
                addresses: core.model.hubAddresses.map(\.description), pin: surroundings.pin,
                certificateExpires: surroundings.certificateEnd.map { Timestamp($0) },
                interface: surroundings.interface, keeperProblem: core.keeper.problem,
                keeperApplied: core.keeper.lastApplied.map { Timestamp($0) },
                protection: surroundings.protection, storageProblem: storageTrouble.reason)
        }
    }
}

/// Which alarms a list has.
private enum AlarmState: String, CaseIterable { case open, all }

extension HubSettings {
    var dictionary: [String: String] {
        Dictionary(uniqueKeysWithValues: rows.map { ($0.name, $0.value) })
    }
}
