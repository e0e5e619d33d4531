// SPDX-License-Identifier: Apache-2.0
import Glibc
import HostProcess

/// Why there is no server, client or certificate. One line that names what was tried, on what, why
/// it failed and what to do.
public struct HTTPError: Error, Equatable, Sendable, CustomStringConvertible {
    public let kind: ErrorKind
    public let description: String

    init(_ kind: ErrorKind, _ description: String) {
        self.kind = kind
        self.description = description
    }

    init(_ description: String) { self.init(.other, description) }
}
