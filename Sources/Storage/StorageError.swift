// SPDX-License-Identifier: Apache-2.0
import HostProcess
import SQLite

/// One line that names what was tried, on what, why it failed and what to do. Never a secret.
public struct StorageError: Error, Equatable, Sendable, CustomStringConvertible {
    public let kind: Kind
    public let description: String

    public enum Kind: Equatable, Sendable {
        /// Others may read or change it, or it belongs to somebody else (C95).
        case notPrivate
        case noPermission
        /// The file system has no room. What was there before is still there.
        case full
        /// Damaged; the file is kept.
        case damaged
        /// Sealed on another machine: a copied disk, or a restored one (C73).
        case otherMachine
        /// Sealed under another key than the one that is here now (C91).
        case otherKey
        /// The key that secrets were sealed under is not there (C91).
        case noKey
        /// Nothing of that name.
        case missing
        case other
    }

    public init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }

    init(_ error: HostError) {
        let kind: Kind =
            switch error.kind {
            case .noPermission: .noPermission
            case .busy, .other: error.isFull ? .full : .other
            }
        self.init(kind, error.description)
    }

    init(_ error: SQLiteError) {
        let kind: Kind =
            switch error.kind {
            case .full: .full
            case .readOnly: .noPermission
            case .corrupt: .damaged
            case .cannotOpen: .missing
            default: .other
            }
        self.init(kind, error.description)
    }
}

/// Asks the host something; its errors become ours.
func asking<Value: ~Copyable>(
    _ body: () throws(HostError) -> Value
) throws(StorageError) -> Value {
    do throws(HostError) {
        return try body()
    } catch {
        throw StorageError(error)
    }
}

/// Whether there is something of that name. What cannot be looked at is an error: it is not taken
/// for missing.
func isThere(_ path: String) throws(StorageError) -> Bool {
    try asking { () throws(HostError) in try FileStatus.of(path) } != nil
}
