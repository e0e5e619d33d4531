// SPDX-License-Identifier: Apache-2.0

/// A request as a server's handler sees it: complete, within all limits.
public struct HTTPRequest: Sendable, Equatable {
    /// Where a request came from, as the kernel knows it.
    public enum Origin: Sendable, Hashable {
        /// A numeric address; an IPv4 one in IPv4 form, also where the socket is an IPv6 one.
        case ip(String)
        /// A process of this host that connected to the unix socket.
        case unix(user: UInt32, group: UInt32, process: Int32)
    }

    /// In capitals as a rule; whatever the client wrote.
    public var method: String
    /// As on the request line up to the `?`, percent-encoding and all: nothing in it was decoded,
    /// and `..` and `//` are still there. Who needs a decoded segment cuts the path at `/` first
    /// and then decodes once, with `HTTPText.decoded`.
    public var path: String
    /// Decoded once, `+` as a space (application/x-www-form-urlencoded). Of a name given twice the
    /// first counts; a name without `=` has an empty value.
    public var query: [String: String]
    public var headers: HTTPHeaders
    public var body: [UInt8]
    public var origin: Origin
    /// Nobody on the way can read it: TLS, or it never left this host.
    public var isSecure: Bool

    public init(
        method: String, path: String, query: [String: String] = [:], headers: HTTPHeaders = [:],
        body: [UInt8] = [], origin: Origin = .ip("127.0.0.1"), isSecure: Bool = true
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.body = body
        self.origin = origin
        self.isSecure = isSecure
    }
}

/// Without header fields and body, which carry tokens.
extension HTTPRequest: CustomStringConvertible, CustomReflectable {
    public var description: String { "\(method) \(path) (\(body.count) bytes)" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Percent-encoding (RFC 3986 section 2.1).
public enum HTTPText {
    /// Decoded once. nil: a `%` without two hexadecimal digits, a NUL, or not UTF-8.
    public static func decoded(_ text: some StringProtocol) -> String? {
        var bytes: [UInt8] = []
        var rest = Substring(text).utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = digit(rest.popFirst()), let low = digit(rest.popFirst()) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        guard !bytes.contains(0) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    /// Everything but unreserved characters (RFC 3986 section 2.3) encoded: fit for one segment of
    /// a path and for names and values of a query.
    public static func encoded(_ text: String) -> String {
        var result: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: result.append(byte)
            case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
                result.append(byte)
            default:
                let digits = Array("0123456789ABCDEF".utf8)
                result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    private static func digit(_ character: UInt8?) -> UInt8? {
        switch character {
        case .some(let character) where (0x30...0x39).contains(character): character - 0x30
        case .some(let character) where (0x41...0x46).contains(character): character - 0x37
        case .some(let character) where (0x61...0x66).contains(character): character - 0x57
        default: nil
        }
    }
}
