// SPDX-License-Identifier: Apache-2.0
// From method and path to a handler. The table is all there is; docs/openapi.json describes the same
// one, and a test compares them.
import ControlAPI
import HTTP

/// A request on its way to a handler.
struct Call {
    let request: HTTPRequest
    /// What stood in place of the `{…}` of the pattern.
    let parameters: [String]
    let now: Milliseconds
    /// For the log: an operator's name, or `uid 1000`. Empty before anybody is known.
    var actor = ""

    /// Where it came from, for limits and logs.
    var source: String {
        switch request.origin {
        case .ip(let address): address
        case .unix(let user, _, _): "uid \(user)"
        }
    }
}

struct Route: Sendable {
    enum Access: Sendable { case open, device, administrator }

    /// Bytes of what is read for anybody: a body of `Wire.limit` takes a tenth of a second.
    static let openBodyLimit = 16 << 10

    let method: String
    /// Segments; `{id}` stands for any one.
    let pattern: [Substring]
    let path: String
    let access: Access
    let handle: @Sendable (Hub, Call) throws(Refusal) -> HTTPResponse

    init(
        _ method: String, _ path: String, _ access: Access,
        _ handle: @escaping @Sendable (Hub, Call) throws(Refusal) -> HTTPResponse
    ) {
        self.method = method
        self.path = path
        self.access = access
        self.handle = handle
        pattern = path.split(separator: "/")
    }

    /// nil: another path.
    func parameters(_ segments: [Substring]) -> [String]? {
        guard segments.count == pattern.count else { return nil }
        var found: [String] = []
        for (segment, expected) in zip(segments, pattern) {
            if expected.hasPrefix("{") {
                guard let text = HTTPText.decoded(segment), !text.isEmpty else { return nil }
                found.append(text)
            } else if segment != expected {
                return nil
            }
        }
        return found
    }
}

extension Hub {
    static let routes = deviceRoutes + administratorRoutes

    func route(_ request: HTTPRequest) throws(Refusal) -> HTTPResponse {
        // A path has one spelling here: no empty segment, no dots, no slash at the end. `..` is no
        // pattern's segment, so nothing is resolved.
        let segments = request.path.split(separator: "/", omittingEmptySubsequences: false)
            .dropFirst()
        guard request.path.hasPrefix("/"), !segments.contains(where: \.isEmpty) else {
            throw Refusal(.notFound, "there is nothing of that name")
        }
        let matches = Self.routes.compactMap { route in
            route.parameters(Array(segments)).map { (route, $0) }
        }
        guard !matches.isEmpty else { throw Refusal(.notFound, "there is nothing of that name") }
        let method = request.method == "HEAD" ? "GET" : request.method
        guard let (route, parameters) = matches.first(where: { $0.0.method == method }) else {
            var refusal = Refusal(.methodNotAllowed, "the method is not for this path")
            let methods = matches.map(\.0.method)
            refusal.allow = (methods + (methods.contains("GET") ? ["HEAD"] : [])).joined(
                separator: ", ")
            throw refusal
        }
        var call = Call(request: request, parameters: parameters, now: now)
        if route.access == .administrator { call.actor = try administrator(call) }
        let response = try route.handle(self, call)
        return request.method == "HEAD" ? response.withoutBody : response
    }

    /// Who asks: everybody who may open the unix socket, and who has logged in.
    private func administrator(_ call: Call) throws(Refusal) -> String {
        if case .unix(let user, _, _) = call.request.origin { return "uid \(user)" }
        guard let name = sessions.name(of: call.request.headers["Authorization"], at: call.now)
        else {
            throw Refusal(.authExpired, "log in first: POST /api/v1/admin/login")
        }
        return name
    }

    /// Whether who asks is still an administrator later on.
    func staysAdministrator(_ call: Call) -> @Sendable (Milliseconds) -> Bool {
        if case .unix = call.request.origin { return { _ in true } }
        let key = OperatorSessions.key(of: call.request.headers["Authorization"]) ?? ""
        return { [sessions] now in sessions.name(ofKey: key, at: now) != nil }
    }
}

extension HTTPResponse {
    fileprivate var withoutBody: HTTPResponse {
        var copy = self
        copy.stream?.close()
        copy.stream = nil
        copy.body = []
        return copy
    }
}

extension Call {
    /// The body as JSON. Throws `.unsupportedMediaType`, `.badRequest`.
    /// `limit`: bytes; more throws `.tooLarge`.
    func decode<T: Decodable>(_ type: T.Type, limit: Int = Wire.limit) throws(Refusal) -> T {
        let media = request.headers["Content-Type"] ?? ""
        guard media.prefix(while: { $0 != ";" && $0 != " " }).lowercased() == Wire.contentType
        else {
            throw Refusal(.unsupportedMediaType, "the body is sent as \(Wire.contentType)")
        }
        guard request.body.count <= limit else {
            throw Refusal(.tooLarge, "the body has more than \(limit) bytes")
        }
        do throws(WireError) {
            return try Wire.decode(type, from: request.body)
        } catch {
            throw Refusal(.badRequest, "the body is refused: \(error)")
        }
    }

    /// A number of the query.
    func number(
        _ name: String, _ range: ClosedRange<Int64>, default standard: Int64
    ) throws(Refusal) -> Int64 {
        guard let text = request.query[name] else { return standard }
        guard !text.isEmpty, text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }), let number = Int64(text),
            range.contains(number)
        else {
            throw Refusal(
                .badRequest,
                "\(name) is not a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// One of the words of `type` in the query; nil: none.
    func word<T: RawRepresentable & CaseIterable>(
        _ name: String, _ type: T.Type
    ) throws(Refusal) -> T? where T.RawValue == String {
        guard let text = request.query[name] else { return nil }
        guard let value = T(rawValue: text) else {
            let words = T.allCases.map(\.rawValue).joined(separator: ", ")
            throw Refusal(.badRequest, "\(name) is none of \(words)")
        }
        return value
    }
}
