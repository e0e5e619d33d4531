// SPDX-License-Identifier: Apache-2.0
// The calls of devices. docs/control-api.md describes them.
import ControlAPI
import HTTP

extension Hub {
    static let deviceRoutes: [Route] = [
        Route("GET", "/api/v1/openapi.json", .open) { (_, _) throws(Refusal) in
            .json(200, OpenAPIDocument.bytes)
        },
        Route("POST", DeviceCall.provision.path, .open) { (hub, call) throws(Refusal) in
            let request = try call.decode(ProvisionRequest.self, limit: Route.openBodyLimit)
            let answer = try hub.locked { (core) throws(Refusal) in
                try core.provision(request, from: call.source, at: call.now)
            }
            return .json(answer)
        },
        Route("POST", DeviceCall.heartbeat.path, .device) { (hub, call) throws(Refusal) in
            let id = try hub.deviceId(call)
            let request = try call.decode(HeartbeatRequest.self)
            return .json(
                try hub.locked { (core) throws(Refusal) in
                    try core.heartbeat(request, of: core.caller(id), at: call.now)
                })
        },
        Route("POST", DeviceCall.rotate.path, .device) { (hub, call) throws(Refusal) in
            let id = try hub.deviceId(call)
            let request = try call.decode(RotateRequest.self)
            try hub.locked { (core) throws(Refusal) in
                try core.rotate(request, of: core.caller(id), at: call.now)
            }
            return .json(EmptyAnswer())
        },
        Route("POST", DeviceCall.token.path, .device) { (hub, call) throws(Refusal) in
            let id = try hub.deviceId(call)
            return .json(
                try hub.locked { (core) throws(Refusal) in
                    try core.renewToken(of: core.caller(id), at: call.now)
                })
        },
        Route("GET", DeviceCall.events.path, .device) { (hub, call) throws(Refusal) in
            let id = try hub.deviceId(call)
            let stream = EventStream()
            hub.streams.add(stream, device: id)
            do throws(Refusal) {
                // It may have ended meanwhile, and its streams with it.
                _ = try hub.locked { (core) throws(Refusal) in try core.caller(id) }
            } catch {
                stream.close()
                throw error
            }
            return .events(stream)
        },
        Route("POST", DeviceCall.unenroll.path, .device) { (hub, call) throws(Refusal) in
            let id = try hub.deviceId(call)
            try hub.locked { (core) throws(Refusal) in
                try core.unenroll(core.caller(id), at: call.now)
            }
            return .noContent
        },
    ]

    /// Whose token the request has. The body is read after that, outside of the lock: a stranger
    /// costs no parsing, and parsing holds nobody up.
    private func deviceId(_ call: Call) throws(Refusal) -> String {
        try locked { (core) throws(Refusal) in
            let id = try core.authenticate(
                call.request.headers["Authorization"], from: call.source, at: call.now
            ).id
            try core.limitCalls(of: id, at: call.now)
            return id
        }
    }
}

extension HubCore {
    /// A device that has shown its token a moment ago.
    fileprivate func caller(_ id: String) throws(Refusal) -> Device {
        guard let device = model.devices[id] else {
            throw Refusal(.unknownDevice, "the device has just been removed")
        }
        guard device.revoked == nil else {
            throw Refusal(.revoked, "the operator has removed this device", deviceId: id)
        }
        return device
    }
}
