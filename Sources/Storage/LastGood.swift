// SPDX-License-Identifier: Apache-2.0
import HostProcess
import Synchronization

/// Documents of which the last good version must be there after whatever happens: each write is
/// complete or did not happen, also when the machine loses power in the middle of it, and the
/// version before it stays beside it. What is damaged is passed over.
///
/// For one process at a time (its caller holds a `FileLock`); callable from any thread.
public final class LastGood: Sendable {
    private let directory: StateDirectory
    private let isWriting = Mutex(())
    /// Largest document, in bytes.
    private static let limit = 64 << 20

    public struct Document: Equatable, Sendable {
        public let bytes: [UInt8]
        /// Grows with each write.
        public let version: UInt64
        /// Why it is not the newest one, as a line for the log; nil when it is.
        public let remark: String?
    }

    public init(_ directory: StateDirectory) { self.directory = directory }

    /// The newest version that can be read; nil when nothing was ever written. Throws `.damaged`
    /// when there are versions and none can be read: the files are kept.
    public func read(_ name: String) throws(StorageError) -> Document? {
        let search = try search(name, try names())
        let files = search.damaged.map { directory.file(DocumentVersions.file(name, $0)) }
        let damaged = files.joined(separator: " and ") + (files.count == 1 ? " is" : " are")
        guard let found = search.found else {
            guard files.isEmpty else {
                throw StorageError(
                    .damaged,
                    "cannot read \(name): \(damaged) damaged and there is no older version; keep "
                        + "the files and check the disk")
            }
            return nil
        }
        let remark =
            files.isEmpty
            ? nil : "\(damaged) damaged; using version \(found.version), written before"
        return Document(bytes: found.bytes, version: found.version, remark: remark)
    }

    /// Adds a version. On an error, such as `.full`, what was there is still there and is what
    /// `read` gives.
    public func write(_ name: String, _ bytes: [UInt8]) throws(StorageError) {
        precondition(isPlainName(name), "the program chooses the names of documents")
        guard bytes.count <= Self.limit else {
            throw StorageError(.other, "cannot write \(name): \(bytes.count) bytes are too many")
        }
        try isWriting.withLock { (_) throws(StorageError) in
            let names = try self.names()
            let previous = try self.search(name, names).found?.version
            try self.perform(
                DocumentVersions.steps(name, bytes, among: names, previous: previous), name)
        }
    }

    /// Removes every version, on purpose.
    public func remove(_ name: String) throws(StorageError) {
        try isWriting.withLock { (_) throws(StorageError) in
            // The oldest first: who is interrupted leaves the newest.
            let versions = DocumentVersions.numbers(of: name, among: try self.names()).reversed()
            let steps = versions.map { FileOperation.remove(DocumentVersions.file(name, $0)) }
            try self.perform(steps + [.synchroniseDirectory], name)
        }
    }

    private func names() throws(StorageError) -> [String] {
        try asking { () throws(HostError) in try HostFile.names(in: directory.path) }
    }

    /// A file that may not be read is an error, not damage.
    private func search(
        _ name: String, _ names: [String]
    ) throws(StorageError) -> DocumentVersions.Search {
        try DocumentVersions.newest(of: name, among: names) { (file) throws(StorageError) in
            try asking { () throws(HostError) in
                try HostFile.read(directory.file(file), limit: Self.limit + 1024)
            }.bytes
        }
    }

    private func perform(_ steps: [FileOperation], _ name: String) throws(StorageError) {
        try asking { () throws(HostError) in
            try FileOperation.perform(
                steps, in: directory.path, writing: "\(name) in \(directory.path)")
        }
    }
}

/// Letters, digits and `-`, so that it is a file's name and has no number of a version at its end.
func isPlainName(_ name: String) -> Bool {
    !name.isEmpty && name.utf8.count <= 64 && !name.hasPrefix("-")
        && name.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"): true
            default: false
            }
        }
}
