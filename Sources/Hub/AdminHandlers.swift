// SPDX-License-Identifier: Apache-2.0
// The calls of operators. docs/openapi.json describes them.
import ControlAPI
import Crypto
import HTTP
import WireGuard

private let admin = "/api/v1/admin"

extension Hub {
    static let administratorRoutes: [Route] =
        sessionRoutes + tokenRoutes + deviceAdministratorRoutes + forwardRoutes + overviewRoutes
        + accountRoutes + backupRoutes

    // MARK: logging in

    private static let sessionRoutes: [Route] = [
        Route("POST", admin + "/login", .open) { (hub, call) throws(Refusal) in
            let request = try call.decode(LoginRequest.self, limit: Route.openBodyLimit)
            let account = try hub.locked { (core) throws(Refusal) in
                core.model.accounts[request.name]
            }
            var password = Array(request.password.exposed.utf8)
            defer { erase(&password) }
            let (bearer, expires) = try hub.sessions.logIn(
                request.name, password: password, account: account, from: call.source,
                at: call.now)
            return .json(LoginAnswer(session: SecretText(bearer), expires: Timestamp(expires)))
        },
        Route("POST", admin + "/logout", .administrator) { (hub, call) throws(Refusal) in
            hub.sessions.logOut(call.request.headers["Authorization"])
            return .noContent
        },
    ]

    // MARK: tokens

    private static let tokenRoutes: [Route] = [
        Route("GET", admin + "/tokens", .administrator) { (hub, call) throws(Refusal) in
            let tokens = try hub.locked { (core) throws(Refusal) in
                core.model.tokens.values.sorted { ($0.created, $0.id) < ($1.created, $1.id) }
            }
            let items = tokens.map { TokenView($0, at: call.now) }
            return try call.page(items)
        },
        Route("POST", admin + "/tokens", .administrator) { (hub, call) throws(Refusal) in
            let wish = try call.decode(TokenRequest.self).wish()
            let (token, bearer) = try hub.locked { (core) throws(Refusal) in
                try core.makeToken(wish, by: call.actor, at: call.now)
            }
            return .json(
                TokenView(token, at: call.now, text: SecretText(bearer)), status: 201)
        },
        Route("DELETE", admin + "/tokens/{id}", .administrator) { (hub, call) throws(Refusal) in
            try hub.locked { (core) throws(Refusal) in
                try core.revokeToken(call.parameters[0], by: call.actor, at: call.now)
            }
            return .noContent
        },
    ]

    // MARK: devices

    private static let deviceAdministratorRoutes: [Route] =
        [
            Route("GET", admin + "/devices", .administrator) { (hub, call) throws(Refusal) in
                var query = DeviceQuery()
                query.search = call.request.query["search"] ?? ""
                query.control = try call.word("control", DeviceView.Control.self)
                query.offset = Int(try call.number("offset", 0...1_000_000, default: 0))
                query.limit = Int(try call.number("limit", 1...500, default: 50))
                return .json(
                    try hub.locked { (core) throws(Refusal) in core.devices(query, at: call.now) })
            },
            Route("GET", admin + "/devices/{id}", .administrator) { (hub, call) throws(Refusal) in
                .json(
                    try hub.locked { (core) throws(Refusal) in
                        var view = core.view(try core.device(call.parameters[0]), at: call.now)
                        view.forwards = core.model.forwards(of: view.id)
                            .sorted(by: ForwardRule.precedes).map { ForwardView($0) }
                        return view
                    })
            },
            Route("PATCH", admin + "/devices/{id}", .administrator) { (hub, call) throws(Refusal) in
                let patch = try call.decode(DevicePatchRequest.self).patch()
                return .json(
                    try hub.locked { (core) throws(Refusal) in
                        let device = try core.patch(
                            call.parameters[0], patch, by: call.actor, at: call.now)
                        return core.view(device, at: call.now)
                    })
            },
            Route("DELETE", admin + "/devices/{id}", .administrator) {
                (hub, call) throws(Refusal) in
                try hub.locked { (core) throws(Refusal) in
                    try core.forget(call.parameters[0], by: call.actor, at: call.now)
                }
                return .noContent
            },
            Route("GET", admin + "/devices/{id}/config", .administrator) {
                (hub, call) throws(Refusal) in
                .json(
                    try hub.locked { (core) throws(Refusal) in
                        var shown = core.configuration(
                            of: try core.activeDevice(call.parameters[0]))
                        // A secret of the hub and the device.
                        shown.presharedKey = nil
                        return shown
                    })
            },
            Route("POST", admin + "/devices/{id}/revoke", .administrator) {
                (hub, call) throws(Refusal) in
                try hub.locked { (core) throws(Refusal) in
                    try core.revoke(call.parameters[0], by: call.actor, at: call.now)
                }
                return .noContent
            },
        ]
        + [
            ("reset", PendingCommand.reset), ("reprovision", .reprovision), ("rotate", .rotateKey),
        ].map { name, command in
            Route("POST", admin + "/devices/{id}/" + name, .administrator) {
                (hub, call) throws(Refusal) in
                try hub.locked { (core) throws(Refusal) in
                    try core.command(
                        command, device: call.parameters[0], by: call.actor, at: call.now)
                }
                return .noContent
            }
        }

    // MARK: forwards

    private static let forwardRoutes: [Route] = [
        Route("GET", admin + "/forwards", .administrator) { (hub, call) throws(Refusal) in
            let device = call.request.query["deviceId"]
            let rules = try hub.locked { (core) throws(Refusal) in
                Array(core.model.forwards.values)
            }
            let items = rules.filter { device == nil || $0.deviceId == device }
                .sorted(by: ForwardRule.precedes)
            return try call.page(items.map { ForwardView($0) })
        },
        Route("POST", admin + "/forwards", .administrator) { (hub, call) throws(Refusal) in
            let request = try call.decode(ForwardRequest.self)
            let rule = try hub.locked { (core) throws(Refusal) in
                try core.putForward(request, id: nil, call)
            }
            return .json(ForwardView(rule), status: 201)
        },
        Route("GET", admin + "/forwards/{id}", .administrator) { (hub, call) throws(Refusal) in
            .json(
                ForwardView(
                    try hub.locked { (core) throws(Refusal) in
                        try core.forward(call.parameters[0])
                    }))
        },
        Route("PUT", admin + "/forwards/{id}", .administrator) { (hub, call) throws(Refusal) in
            let request = try call.decode(ForwardRequest.self)
            let rule = try hub.locked { (core) throws(Refusal) in
                try core.putForward(request, id: call.parameters[0], call)
            }
            return .json(ForwardView(rule))
        },
        Route("DELETE", admin + "/forwards/{id}", .administrator) { (hub, call) throws(Refusal) in
            try hub.locked { (core) throws(Refusal) in
                try core.removeForward(call.parameters[0], by: call.actor, at: call.now)
            }
            return .noContent
        },
    ]
}

extension Call {
    /// The part of `items` that the query's offset and limit ask for.
    func page<Item: Codable & Sendable>(_ items: [Item]) throws(Refusal) -> HTTPResponse {
        let offset = Int(try number("offset", 0...1_000_000, default: 0))
        let limit = Int(try number("limit", 1...500, default: 100))
        let part = Array(items.dropFirst(offset).prefix(limit))
        return .json(Page(items: part, total: items.count, offset: offset))
    }
}

extension HubCore {
    func device(_ id: String) throws(Refusal) -> Device {
        guard let device = model.devices[id] else {
            throw Refusal(.notFound, "there is no device \(visible(id, limit: 64))")
        }
        return device
    }

    func forward(_ id: String) throws(Refusal) -> ForwardRule {
        guard let rule = model.forwards[id] else {
            throw Refusal(.notFound, "there is no forward \(visible(id, limit: 64))")
        }
        return rule
    }

    /// `id`: of the one that is replaced; nil: a new one.
    mutating func putForward(
        _ request: ForwardRequest, id: String?, _ call: Call
    ) throws(Refusal) -> ForwardRule {
        let old = try id.map { (id) throws(Refusal) in try forward(id) }
        let device = try activeDevice(request.deviceId)
        let made = "f-" + hexadecimal(Random.bytes(4))
        return try putForward(
            request.wire(id: id ?? request.id ?? made, device: device), device: device.id,
            keepsSource: request.keepsSource ?? false, isEnabled: request.isEnabled ?? true,
            replacing: old, by: call.actor, at: call.now)
    }
}
