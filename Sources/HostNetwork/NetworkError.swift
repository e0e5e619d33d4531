// SPDX-License-Identifier: Apache-2.0

/// What the host's network refused: what was tried, on what, why it failed, what to do.
public struct NetworkError: Error, Equatable, Sendable, CustomStringConvertible {
    public enum Kind: Sendable {
        case permission
        case notFound
        case exists
        case busy
        /// The kernel or the host does not have it.
        case unsupported
        case other
    }

    public var kind: Kind
    /// 0 where no system call failed.
    public var errno: Int32
    /// One line, never with a secret.
    public var message: String

    public init(_ kind: Kind, errno: Int32 = 0, _ message: String) {
        self.kind = kind
        self.errno = errno
        self.message = message
    }

    public var description: String { message }
}
