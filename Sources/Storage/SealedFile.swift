// SPDX-License-Identifier: Apache-2.0
import Crypto

/// The form of a sealed secret, pure: lines of text that say what is needed to open it, an empty
/// line, and AES-256-GCM's nonce, ciphertext and tag. The lines, the secret's name and the machine's
/// id are authenticated with it: a file that was renamed, altered or carried to another machine does
/// not open.
struct SealedFile: Equatable {
    let protection: String
    let keyFingerprint: String
    let machineFingerprint: String
    let sealed: [UInt8]

    static let maximumLength = 1 << 20

    static func seal(
        _ bytes: [UInt8], name: String, machine: String, key: StorageKey
    ) -> [UInt8] {
        let head = Array(
            """
            nexusguard-sealed 1
            protection \(key.protection.rawValue)
            key \(key.fingerprint)
            machine \(fingerprint(machine: machine))


            """.utf8)
        return head
            + AES256GCM.seal(bytes, key: key.key, aad: associated(head, name, machine))
    }

    /// nil where it is none.
    init?(_ content: [UInt8]) {
        guard let (lines, rest) = Self.split(content), lines.count == 4,
            lines[0] == "nexusguard-sealed 1",
            let protection = Self.value(lines[1], "protection"),
            let key = Self.value(lines[2], "key"),
            let machine = Self.value(lines[3], "machine")
        else { return nil }
        self.protection = protection
        keyFingerprint = key
        machineFingerprint = machine
        sealed = rest
    }

    /// The caller erases the result.
    static func open(
        _ content: [UInt8], name: String, machine: String, key: AEADKey
    ) throws(CryptoError) -> [UInt8] {
        guard let (_, sealed) = split(content) else { throw .tooShort(content.count) }
        let head = Array(content.dropLast(sealed.count))
        return try AES256GCM.open(sealed, key: key, aad: associated(head, name, machine))
    }

    static func fingerprint(machine: String) -> String {
        String(hexadecimal(SHA256.hash(Array("nexusguard machine \(machine)".utf8))).prefix(16))
    }

    /// Each part ends with a character that it cannot hold.
    private static func associated(_ head: [UInt8], _ name: String, _ machine: String) -> [UInt8] {
        head + Array("\(name)\n\(machine)\n".utf8)
    }

    private static func split(_ content: [UInt8]) -> (lines: [String], rest: [UInt8])? {
        for index in content.indices.dropLast()
        where content[index] == 0x0A && content[index + 1] == 0x0A {
            let text = String(decoding: content[..<index], as: UTF8.self)
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            return (lines.map(String.init), Array(content[(index + 2)...]))
        }
        return nil
    }

    private static func value(_ line: String, _ key: String) -> String? {
        line.hasPrefix(key + " ") ? String(line.dropFirst(key.count + 1)) : nil
    }
}
