// SPDX-License-Identifier: Apache-2.0
import Crypto

/// A secret as it travels in JSON: a token, a private key, a preshared key. It prints as "(hidden)",
/// shows nothing to Mirror and compares in constant time.
///
/// JSON libraries make strings, and Swift's strings cannot be erased: whoever receives one takes the
/// typed secret out of it at once and lets it go.
public struct SecretText: Codable, Equatable, Sendable, CustomStringConvertible,
    CustomDebugStringConvertible, CustomReflectable
{
    /// The secret itself, for the one place that needs it.
    public let exposed: String

    public init(_ text: String) { exposed = text }

    public init(from decoder: any Decoder) throws {
        exposed = try decoder.singleValueContainer().decode(String.self)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(exposed)
    }

    /// Empty: none.
    public var isEmpty: Bool { exposed.isEmpty }

    public static func == (left: SecretText, right: SecretText) -> Bool {
        equalInConstantTime(Array(left.exposed.utf8), Array(right.exposed.utf8))
    }

    public var description: String { "(hidden)" }
    public var debugDescription: String { "(hidden)" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension SecretText {
    /// The text form of a token, for sending it.
    public init(_ token: BearerToken) {
        self.init(token.withText { String(decoding: $0, as: UTF8.self) })
    }

    /// nil if it is no token of ours.
    public var bearerToken: BearerToken? { BearerToken(text: Array(exposed.utf8)) }
}
