// SPDX-License-Identifier: Apache-2.0
// What an answer means to a device. Between a device and its hub stand proxies, captive portals and
// load balancers that answer in the hub's place: only a problem with a code of ours, on the status
// that belongs to it, decides anything; all else is a passing failure (C68, C69).

/// An answer as it came.
public struct ReceivedAnswer: Equatable, Sendable {
    public var status: Int
    /// The header fields as they are; nil: absent.
    public var contentType: String?
    public var retryAfter: String?
    public var body: [UInt8]

    public init(
        status: Int, contentType: String? = nil, retryAfter: String? = nil, body: [UInt8] = []
    ) {
        self.status = status
        self.contentType = contentType
        self.retryAfter = retryAfter
        self.body = body
    }
}

/// What an answer means. Every text in it is fit for one line of a log.
public enum AnswerClass: Equatable, Sendable {
    /// It was done; the body is JSON of the call's answer, and still to be decoded. Empty where the
    /// call has none.
    case accepted([UInt8])
    /// It may go well later: keep everything and ask again, not before `retryAfter` seconds.
    case transient(reason: String, retryAfter: Int?)
    /// The device's token is no longer valid: keep the tunnel, renew it or show it.
    case authExpired
    /// Provision: the enrolment token is expired, unknown or used up. There is no point in asking
    /// again (exit code 6).
    case refused(reason: String)
    /// The operator removed this very device: take the tunnel down (exit code 7).
    case revoked(reason: String)
    /// The hub does not know this device. One answer proves nothing: a hub may have lost its data.
    case unknownDevice
    /// Another live session has this identity.
    case duplicateIdentity(reason: String)
    case upgradeRequired(reason: String)
    /// The request was wrong: it will not go better by itself.
    case badRequest(reason: String)
}

extension AnswerClass {
    /// `deviceId` is the device's own; nil before it has one. `now` is for a `Retry-After` that is a
    /// date.
    public static func classify(
        _ call: DeviceCall, _ answer: ReceivedAnswer, deviceId: String?, now: Timestamp
    ) -> AnswerClass {
        let retryAfter = answer.retryAfter.flatMap { RetryAfter.seconds($0, now: now) }
        func transient(_ reason: String) -> AnswerClass {
            .transient(reason: reason, retryAfter: retryAfter)
        }
        guard answer.body.count <= Wire.limit else {
            return transient("the answer is larger than \(Wire.limit >> 20) MiB")
        }
        if answer.status == 204, call == .unenroll { return .accepted([]) }
        let type = mediaType(answer.contentType)
        if answer.status == 200 {
            let expected = call == .events ? "text/event-stream" : Wire.contentType
            guard type == expected else {
                return transient("the answer is \(type ?? "of no type"), not \(expected)")
            }
            return .accepted(answer.body)
        }
        guard type == Problem.contentType,
            let problem = try? Wire.decode(Problem.self, from: answer.body)
        else {
            return transient("status \(answer.status) without a problem of ours")
        }
        return problem.meaning(call, status: answer.status, deviceId: deviceId)
            ?? transient(problem.summary(status: answer.status))
    }

    /// Lower case, without parameters (RFC 9110 section 8.3.1).
    private static func mediaType(_ field: String?) -> String? {
        guard let field else { return nil }
        let type = field.utf8.prefix { $0 != UInt8(ascii: ";") }
        return visible(withoutBlanks(String(decoding: type, as: UTF8.self)).lowercased(), limit: 64)
    }
}

extension Problem {
    /// nil: it decides nothing.
    fileprivate func meaning(
        _ call: DeviceCall, status: Int, deviceId own: String?
    ) -> AnswerClass? {
        guard let code = code.flatMap(Code.init(rawValue:)), code.status == status else {
            return nil
        }
        let reason = summary(status: status)
        // What is about another device is not about this one.
        guard deviceId == nil || deviceId == own || call == .provision else { return nil }
        switch code {
        case .badRequest, .publicKeyRequired: return .badRequest(reason: reason)
        case .tokenExpired, .tokenRefused:
            return call == .provision ? .refused(reason: reason) : nil
        case .authExpired: return call.isAuthenticated ? .authExpired : nil
        case .unknownDevice: return call.isAuthenticated ? .unknownDevice : nil
        case .duplicateIdentity: return .duplicateIdentity(reason: reason)
        // The one answer that ends a tunnel must name whose.
        case .revoked:
            let isOwn = deviceId != nil && deviceId == own
            return isOwn && call.isAuthenticated ? .revoked(reason: reason) : nil
        case .upgradeRequired: return .upgradeRequired(reason: reason)
        case .forbidden, .notFound, .methodNotAllowed, .conflict, .tooLarge,
            .unsupportedMediaType, .tooManyRequests, .internalError, .unavailable:
            return nil
        }
    }

    /// One line for a log.
    fileprivate func summary(status: Int) -> String {
        let text = detail ?? title
        let name = code.map { " " + visible($0, limit: 32) } ?? ""
        return "status \(status)\(name)" + (text.isEmpty ? "" : ": " + visible(text, limit: 200))
    }
}

/// The header field Retry-After (RFC 9110 section 10.2.3).
public enum RetryAfter {
    /// Seconds. A device asks at least once an hour, whatever a proxy says.
    public static let limit = 3600

    /// Seconds from now, 0 to `limit`; nil for what is neither a number nor a date.
    public static func seconds(_ field: String, now: Timestamp) -> Int? {
        let field = withoutBlanks(field)
        if !field.isEmpty, field.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) {
            // A number too large for Int is still "later than the limit".
            return min(Int(field) ?? limit, limit)
        }
        guard let date = Timestamp(httpDate: field, now: now) else { return nil }
        return Int(min(max(date.unixSeconds - now.unixSeconds, 0), Int64(limit)))
    }
}
