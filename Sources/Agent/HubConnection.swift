// SPDX-License-Identifier: Apache-2.0
// Requests to the hub and what their answers mean. Blocking: it runs on a thread of its own.
import ControlAPI
import Crypto
import HTTP
import HostProcess
import WireGuard

/// How the hub is reached and recognised.
struct HubTarget: Equatable, Sendable {
    var url: HubURL
    var pins: [String] = []
    var caFile: String?
}

final class HubConnection: Sendable {
    let target: HubTarget
    private let client: HTTPClient

    init(_ target: HubTarget, agentVersion: String) throws(ControlFault) {
        self.target = target
        var options = HTTPClient.Options()
        options.pins = target.pins
        options.extraCAFile = target.caFile
        options.bodyLimit = Wire.limit
        options.userAgent = "nexusguard/\(agentVersion)"
        do throws(HTTPError) {
            client = try HTTPClient(options)
        } catch {
            throw ControlFault(.transient, code: "http_unusable", "\(error)")
        }
    }

    /// The body of a good answer. `deviceId` is nil before there is one.
    func call(
        _ call: DeviceCall, _ body: [UInt8], token: BearerToken?, deviceId: String?
    ) throws(ControlFault) -> [UInt8] {
        var request = HTTPClientRequest(call.method, target.url.description + call.path)
        request.headers["Accept"] = "\(Wire.contentType), \(Problem.contentType)"
        if call.method == "POST" { request.headers["Content-Type"] = Wire.contentType }
        request.body = body
        request.bearer = token.map { $0.asHeaderText }
        let response: HTTPClientResponse
        do throws(HTTPClientError) {
            response = try client.perform(request)
        } catch {
            throw fault(error)
        }
        let answer = ReceivedAnswer(
            status: response.status, contentType: response.headers["Content-Type"],
            retryAfter: response.headers["Retry-After"], body: response.body)
        return try meaning(
            AnswerClass.classify(
                call, answer, deviceId: deviceId,
                now: Timestamp(unixSeconds: Host.wallClock().seconds)), call)
    }

    /// Tells of each event until the stream ends or `onEvent` returns false.
    func listen(
        token: BearerToken, onEvent: @escaping (String) -> Bool
    ) throws(ControlFault) {
        var request = HTTPClientRequest("GET", target.url.description + DeviceCall.events.path)
        request.headers["Accept"] = "text/event-stream"
        request.bearer = token.asHeaderText
        do throws(HTTPClientError) {
            try client.events(request) { name, _ in onEvent(name) }
        } catch {
            throw ControlFault(error)
        }
    }

    /// The network has changed: what was connected may lead nowhere.
    func forgetConnections() { client.forgetConnections() }

    func cancel() { client.cancel() }

    /// Who has no pin may need one: a hub has a certificate of its own unless it was given another.
    private func fault(_ error: HTTPClientError) -> ControlFault {
        var fault = ControlFault(error)
        if case .tls(seen: .some) = error.kind, target.pins.isEmpty {
            fault.reason +=
                "; a hub that made its certificate itself is recognised with --pin, which "
                + "nexusguard hub status shows there"
        }
        return fault
    }

    private func meaning(
        _ answer: AnswerClass, _ call: DeviceCall
    ) throws(ControlFault) -> [UInt8] {
        let place = "the hub \(target.url)"
        switch answer {
        case .accepted(let body): return body
        case .transient(let reason, let retryAfter):
            throw ControlFault(
                .transient, code: "bad_answer",
                "\(place) gave no usable answer to \(call.path): \(reason); the last good "
                    + "configuration stays", retryAfter: retryAfter.map { Int64($0) * 1000 })
        case .authExpired:
            throw ControlFault(
                .authExpired, code: "auth_expired",
                "\(place) says that the device token has expired; if it cannot be renewed, enrol "
                    + "again with a new token: nexusguard enroll --replace")
        case .refused(let reason):
            throw ControlFault(
                .tokenRefused, code: "token_refused",
                "\(place) refuses the enrolment token: \(reason)"
                    + (reason.contains("new one") ? "" : "; ask its operator for a new one"))
        case .revoked(let reason):
            throw ControlFault(
                .revoked, code: "revoked",
                "\(place) has removed this device: \(reason); enrol again with a new token")
        case .unknownDevice:
            throw ControlFault(
                .unknownDevice, code: "unknown_device",
                "\(place) does not know this device; if it does not come back to it, enrol again "
                    + "with a new token: nexusguard enroll --replace")
        case .duplicateIdentity(let reason):
            throw ControlFault(
                .duplicateIdentity, code: "duplicate_identity",
                "\(place) sees another machine with this identity: \(reason); find the copy and "
                    + "enrol it with a token of its own")
        case .upgradeRequired(let reason):
            throw ControlFault(
                .upgradeRequired, code: "upgrade_required",
                "\(place) asks for a newer agent: \(reason); upgrade nexusguard")
        case .badRequest(let reason):
            throw ControlFault(
                .badRequest, code: "bad_request",
                "\(place) does not understand the agent: \(reason); use versions that match")
        }
    }
}

extension BearerToken {
    fileprivate var asHeaderText: ConnectionSecret {
        withText { ConnectionSecret(copying: $0) }
    }
}

extension ControlFault {
    init(_ error: HTTPClientError) {
        let code =
            switch error.kind {
            case .resolve: "hub_unresolved"
            case .connect: "hub_unreachable"
            case .tls: "hub_untrusted"
            case .pinMismatch: "hub_pin_mismatch"
            case .timeout: "hub_timeout"
            case .cut: "answer_cut"
            case .tooLarge: "answer_too_large"
            case .cancelled: "cancelled"
            default: "request_failed"
            }
        self.init(.transient, code: code, error.description)
    }
}
