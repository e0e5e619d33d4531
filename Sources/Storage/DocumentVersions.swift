// SPDX-License-Identifier: Apache-2.0
import Crypto
import HostProcess
import WireGuard

/// How the versions of a document lie in a directory, and which steps lead from one state of it to
/// the next; pure. Version *n* of "config" is the file `config.n`: it is complete, or its checksum
/// does not fit. A new version gets a new name, so that at no moment the one before is touched.
enum DocumentVersions {
    struct Search: Equatable {
        struct Found: Equatable {
            let version: UInt64
            let bytes: [UInt8]
        }

        /// The newest version that can be read.
        var found: Found?
        /// Newer ones that are damaged.
        var damaged: [UInt64] = []
    }

    /// `read` gives a file's content.
    static func newest(
        of name: String, among names: [String],
        read: (_ file: String) throws(StorageError) -> [UInt8]
    ) throws(StorageError) -> Search {
        var search = Search()
        for version in numbers(of: name, among: names) {
            if let bytes = decoded(name, version, try read(file(name, version))) {
                search.found = Search.Found(version: version, bytes: bytes)
                return search
            }
            search.damaged.append(version)
        }
        return search
    }

    /// The versions of `name` among the names of a directory, newest first.
    static func numbers(of name: String, among names: [String]) -> [UInt64] {
        names.compactMap { file -> UInt64? in
            guard file.hasPrefix(name + ".") else { return nil }
            let digits = Array(file.dropFirst(name.count + 1).utf8)
            guard digits.first != 0x30 else { return nil }
            return parseDecimal(digits.span, maximum: .max - 1)
        }.sorted(by: >)
    }

    static func file(_ name: String, _ version: UInt64) -> String { "\(name).\(version)" }

    /// What is in progress. A name without a version: no reader takes it for one.
    static func draft(_ name: String) -> String { ".\(name).new" }

    /// Steps that add a version behind all that are there. Beside it stays the newest before it that
    /// can be read, `previous`; what else there is goes, last of all.
    static func steps(
        _ name: String, _ bytes: [UInt8], among names: [String], previous: UInt64?
    ) -> [FileOperation] {
        let versions = numbers(of: name, among: names)
        let version = (versions.first ?? 0) + 1
        let added = FileOperation.replacement(
            of: file(name, version), with: encoded(name, version, bytes), draft: draft(name))
        return added + versions.filter { $0 != previous }.map { .remove(file(name, $0)) }
    }

    // MARK: format

    private static func head(_ name: String, _ version: UInt64, _ bytes: [UInt8]) -> [UInt8] {
        let text =
            "nexusguard-document 1\nname \(name)\nversion \(version)\nlength \(bytes.count)\n"
        return Array(text.utf8)
    }

    /// Lines of text that say what it is, a checksum of those and of the bytes, and the bytes.
    static func encoded(_ name: String, _ version: UInt64, _ bytes: [UInt8]) -> [UInt8] {
        let head = head(name, version, bytes)
        let sum = hexadecimal(SHA256.hash(head + bytes))
        return head + Array("sha256 \(sum)\n\n".utf8) + bytes
    }

    /// The document's bytes; nil unless `content` is exactly what `encoded` makes.
    static func decoded(_ name: String, _ version: UInt64, _ content: [UInt8]) -> [UInt8]? {
        guard let end = endOfHead(content) else { return nil }
        let bytes = Array(content[end...])
        return encoded(name, version, bytes) == content ? bytes : nil
    }

    /// Behind the first empty line.
    private static func endOfHead(_ content: [UInt8]) -> Int? {
        for index in content.indices.dropLast()
        where content[index] == 0x0A && content[index + 1] == 0x0A { return index + 2 }
        return nil
    }
}
