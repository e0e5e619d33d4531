// SPDX-License-Identifier: Apache-2.0

/// Why the keeper could not do what it was asked.
public struct KeeperFailure: Error, Equatable, Sendable, CustomStringConvertible {
    public enum Kind: String, Sendable, CaseIterable {
        case failed
        case notRunning
        case permission
        case configurationInvalid
        case busy
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
