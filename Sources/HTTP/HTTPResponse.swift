// SPDX-License-Identifier: Apache-2.0

/// What a handler answers.
public struct HTTPResponse: Sendable {
    /// 200…599.
    public var status: Int
    public var headers: HTTPHeaders
    /// Empty where `stream` is there.
    public var body: [UInt8]
    /// The body is what this stream sends, until it is closed.
    public var stream: EventStream?

    public init(status: Int, headers: HTTPHeaders = [:], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// JSON that no cache keeps: answers carry secrets and states.
    public static func json(
        _ status: Int, _ body: [UInt8], contentType: String = "application/json"
    ) -> HTTPResponse {
        HTTPResponse(
            status: status,
            headers: ["Content-Type": contentType, "Cache-Control": "no-store"], body: body)
    }

    /// Server-sent events (HTML standard, section 9.2) from `stream`. The connection ends with it: a
    /// client whose streams are closed holds none.
    public static func events(_ stream: EventStream) -> HTTPResponse {
        var response = HTTPResponse(
            status: 200,
            headers: [
                "Content-Type": "text/event-stream", "Cache-Control": "no-store",
                "Connection": "close",
            ])
        response.stream = stream
        return response
    }
}

/// Without header fields and body, which carry tokens.
extension HTTPResponse: CustomStringConvertible, CustomReflectable {
    public var description: String { "\(status) (\(body.count) bytes)" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
