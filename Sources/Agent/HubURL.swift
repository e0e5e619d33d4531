// SPDX-License-Identifier: Apache-2.0
import WireGuard

/// Where a hub is. Plain HTTP is for this machine only: with it anybody between could be the hub.
public struct HubURL: Equatable, Sendable, CustomStringConvertible {
    /// `https://host[:port][/path]`, without a slash at the end.
    public let description: String

    public struct Refusal: Error, Equatable, Sendable {
        /// What is wrong, and what to write instead.
        public let reason: String
    }

    public init(_ text: String) throws(Refusal) {
        var text = text
        while text.hasSuffix("/") { text.removeLast() }
        guard text.utf8.allSatisfy({ 0x21..<0x7F ~= $0 }), !text.contains("@"),
            !text.contains("?"), !text.contains("#"), !text.contains("\\"), !text.contains("\"")
        else {
            throw Refusal(
                reason: "it has a blank, or one of @ ? # \\ \"; write https://HOST[:PORT]")
        }
        let scheme = text.prefix { $0 != ":" }
        let rest = text.dropFirst(scheme.count)
        guard rest.hasPrefix("://") else {
            throw Refusal(reason: "it has no scheme; write https://HOST[:PORT]")
        }
        let authority = rest.dropFirst(3).prefix { $0 != "/" }
        let host = try Self.host(authority)
        switch scheme {
        case "https": break
        case "http" where Self.isLoopback(host): break
        case "http":
            throw Refusal(
                reason: "plain HTTP leads to this machine only; write https://\(authority)")
        default: throw Refusal(reason: "its scheme is not https; write https://\(authority)")
        }
        description = text
    }

    private static func host(_ authority: Substring) throws(Refusal) -> Substring {
        let isLiteral = authority.hasPrefix("[")
        let end =
            isLiteral
            ? authority.firstIndex(of: "]").map { authority.index(after: $0) }
            : authority.firstIndex(of: ":") ?? authority.endIndex
        guard let end, end > authority.startIndex else {
            throw Refusal(reason: "it names no host; write https://HOST[:PORT]")
        }
        let port = authority[end...]
        guard port.isEmpty || (port.hasPrefix(":") && UInt16(port.dropFirst()) ?? 0 > 0) else {
            throw Refusal(reason: "its port is not from 1 to 65535; write https://HOST[:PORT]")
        }
        return authority[..<end]
    }

    private static func isLoopback(_ host: Substring) -> Bool {
        host == "localhost" || host == "[::1]"
            || (host.hasPrefix("127.") && IPAddress(String(host)) != nil)
    }
}
