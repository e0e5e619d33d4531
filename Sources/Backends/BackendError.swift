// SPDX-License-Identifier: Apache-2.0

/// A back-end that cannot do what it was asked.
public struct BackendError: Error, Equatable, Sendable, CustomStringConvertible {
    public enum Kind: Sendable {
        case permission
        case notRunning
        /// A link, a socket or a port of somebody else is in the way.
        case taken
        case unavailable
        case refused
        case timeout
        case other
    }

    public var kind: Kind
    /// One line: what was tried, on what, why it failed, what to do. Never with a secret.
    public var message: String

    public init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    public var description: String { message }
}
