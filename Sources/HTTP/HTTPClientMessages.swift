// SPDX-License-Identifier: Apache-2.0

/// What a client asks.
public struct HTTPClientRequest: Sendable {
    public var method: String
    /// Whole, with scheme and host. `http` is for loopback and unix sockets.
    public var url: String
    public var headers: HTTPHeaders
    public var body: [UInt8]
    /// Sent as `Authorization: Bearer …` (RFC 6750 section 2.1).
    public var bearer: ConnectionSecret?
    /// Instead of the client's.
    public var timeout: Duration?

    public init(
        _ method: String, _ url: String, headers: HTTPHeaders = [:], body: [UInt8] = [],
        bearer: ConnectionSecret? = nil, timeout: Duration? = nil
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.bearer = bearer
        self.timeout = timeout
    }
}

/// A whole answer, whatever its status.
public struct HTTPClientResponse: Sendable, Equatable {
    public var status: Int
    public var headers: HTTPHeaders
    public var body: [UInt8]
}

/// Why there is no answer. One line that names what was tried, on what, why it failed and what to
/// do; nothing of the request's headers and body is in it.
public struct HTTPClientError: Error, Equatable, Sendable, CustomStringConvertible {
    public enum Kind: Equatable, Sendable {
        /// The host's name, or that of a proxy, has no address, or nobody could be asked for it.
        case resolve
        case connect
        /// Who answered is not who was asked for, or speaks no acceptable TLS. `seen`: the
        /// certificate that was shown (C70).
        case tls(seen: SeenCertificate?)
        /// A key that is not pinned.
        case pinMismatch(seen: SeenCertificate?)
        case timeout
        /// The connection ended before the answer did.
        case cut
        /// More bytes than allowed.
        case tooLarge
        case cancelled
        case other
    }

    /// Texts of a certificate that may be anybody's; control characters in them are escaped.
    public struct SeenCertificate: Equatable, Sendable {
        public var subject: String
        public var issuer: String
        /// `sha256//…` of its public key.
        public var pin: String
        /// Why it was not trusted; empty when that was not the reason.
        public var problem: String
    }

    public let kind: Kind
    public let description: String

    init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }
}

/// Without header fields and body, which carry tokens.
extension HTTPClientRequest: CustomStringConvertible, CustomReflectable {
    public var description: String { "\(method) \(url) (\(body.count) bytes)" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Without header fields and body, which carry tokens.
extension HTTPClientResponse: CustomStringConvertible, CustomReflectable {
    public var description: String { "\(status) (\(body.count) bytes)" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
