// SPDX-License-Identifier: Apache-2.0

/// An answer that is no success: problem details (RFC 9457), with a `code` that programs may rely
/// on. Codes are never renamed.
public struct Problem: Codable, Equatable, Sendable {
    /// The media type of such an answer.
    public static let contentType = "application/problem+json"

    /// A URI; `about:blank` says that the title is that of the status (section 4.2.1).
    public var type: String
    public var title: String
    public var status: Int
    /// What was tried, why it failed and what to do, without secrets.
    public var detail: String?
    /// Decides what is done about it. nil: from a server that is not ours.
    public var code: String?
    /// The device it is about, where one is known.
    public var deviceId: String?

    /// `title` is what people call the code.
    public init(_ code: Code, detail: String? = nil, deviceId: String? = nil) {
        type = "about:blank"
        title = code.title
        status = code.status
        self.detail = detail
        self.code = code.rawValue
        self.deviceId = deviceId
    }

    enum CodingKeys: String, CodingKey { case type, title, status, detail, code, deviceId }

    /// All members are optional in RFC 9457.
    public init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        type = try fields.decodeIfPresent(String.self, forKey: .type) ?? "about:blank"
        title = try fields.decodeIfPresent(String.self, forKey: .title) ?? ""
        status = try fields.decodeIfPresent(Int.self, forKey: .status) ?? 0
        detail = try fields.decodeIfPresent(String.self, forKey: .detail)
        code = try fields.decodeIfPresent(String.self, forKey: .code)
        deviceId = try fields.decodeIfPresent(String.self, forKey: .deviceId)
    }
}

extension Problem {
    /// The codes of version 1. A server may have more for its operators; an agent knows these.
    public enum Code: String, Sendable, CaseIterable {
        /// The request is malformed.
        case badRequest = "bad_request"
        /// Provision without a key, where the operator allows no keys made by the hub.
        case publicKeyRequired = "public_key_required"
        /// Provision: the enrolment token has expired.
        case tokenExpired = "token_expired"
        /// The device's token is not valid, or no longer.
        case authExpired = "auth_expired"
        /// Provision: the enrolment token is unknown or used up.
        case tokenRefused = "token_refused"
        case forbidden
        case unknownDevice = "unknown_device"
        case notFound = "not_found"
        case methodNotAllowed = "method_not_allowed"
        /// Another live session has this identity.
        case duplicateIdentity = "duplicate_identity"
        /// What was asked for exists already, or overlaps.
        case conflict
        /// The operator has removed the device on purpose.
        case revoked
        case tooLarge = "too_large"
        case unsupportedMediaType = "unsupported_media_type"
        case upgradeRequired = "upgrade_required"
        case tooManyRequests = "too_many_requests"
        case internalError = "internal_error"
        case unavailable

        /// The status it comes with (RFC 9110 section 15).
        public var status: Int {
            switch self {
            case .badRequest, .publicKeyRequired: 400
            case .tokenExpired, .authExpired: 401
            case .tokenRefused, .forbidden: 403
            case .unknownDevice, .notFound: 404
            case .methodNotAllowed: 405
            case .duplicateIdentity, .conflict: 409
            case .revoked: 410
            case .tooLarge: 413
            case .unsupportedMediaType: 415
            case .upgradeRequired: 426
            case .tooManyRequests: 429
            case .internalError: 500
            case .unavailable: 503
            }
        }

        public var title: String {
            switch self {
            case .badRequest: "The request is malformed"
            case .publicKeyRequired: "A public key is required"
            case .tokenExpired: "The enrolment token has expired"
            case .authExpired: "The credential is not valid"
            case .tokenRefused: "The enrolment token is unknown or used up"
            case .forbidden: "Not allowed"
            case .unknownDevice: "The device is unknown"
            case .notFound: "Not found"
            case .methodNotAllowed: "Method not allowed"
            case .duplicateIdentity: "Another session has this identity"
            case .conflict: "It conflicts with what is there"
            case .revoked: "The device was revoked"
            case .tooLarge: "The request is too large"
            case .unsupportedMediaType: "The media type is not supported"
            case .upgradeRequired: "The agent is too old"
            case .tooManyRequests: "Too many requests"
            case .internalError: "The server failed"
            case .unavailable: "The server is busy"
            }
        }
    }
}
