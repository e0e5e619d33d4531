// SPDX-License-Identifier: Apache-2.0
// A hub in one file, sealed under a passphrase: what another machine needs to go on in its place.
//
//   "nexusguard-hub-backup 1\n" ‖ salt[16] ‖ nonce[12] ‖ ciphertext ‖ tag[16]
//
// AES-256-GCM under Argon2id(passphrase, salt), with the first line as associated data. The plaintext
// is a list of entries, each: length of the name (1 byte) ‖ name ‖ length (8 bytes, big-endian) ‖
// bytes.
import Crypto
import SQLite
import WireGuard

/// Why a backup is not made or not read.
public struct BackupError: Error, Equatable, Sendable, CustomStringConvertible {
    public let description: String
    init(_ description: String) { self.description = description }
}

/// The contents of a backup. Secrets in it: whoever has one erases it.
struct BackupContents: Equatable {
    /// The database, as a file.
    var database: [UInt8] = []
    /// By name in the secret store.
    var secrets: [String: [UInt8]] = [:]
    /// Of the control server, PEM; empty: it was given from outside.
    var certificate: [UInt8] = []

    mutating func erase() {
        WireGuard.erase(&database)
        for name in secrets.keys { WireGuard.erase(&secrets[name]!) }
    }
}

enum Backup {
    static let mark = Array("nexusguard-hub-backup 1\n".utf8)
    /// Bytes of a file that is read.
    static let sizeLimit = 1 << 30

    private static let databaseName = "database"
    private static let certificateName = "certificate"
    private static let secretPrefix = "secret:"

    static func seal(
        _ contents: BackupContents, passphrase: [UInt8]
    ) throws(BackupError) -> [UInt8] {
        var plain: [UInt8] = []
        let size = contents.database.count + contents.certificate.count
        plain.reserveCapacity(
            size + 4096 + contents.secrets.values.reduce(0) { $0 + $1.count + 64 })
        append(databaseName, contents.database, to: &plain)
        append(certificateName, contents.certificate, to: &plain)
        for (name, bytes) in contents.secrets.sorted(by: { $0.key < $1.key }) {
            append(secretPrefix + name, bytes, to: &plain)
        }
        defer { erase(&plain) }
        let salt = PassphraseKey.newSalt()
        let key = try key(passphrase, salt)
        return mark + salt + AES256GCM.seal(plain, key: key, aad: mark)
    }

    static func open(
        _ file: [UInt8], passphrase: [UInt8]
    ) throws(BackupError) -> BackupContents {
        guard file.starts(with: mark) else {
            throw BackupError("it is no backup of a hub, or one of another version")
        }
        let rest = file.dropFirst(mark.count)
        let salt = Array(rest.prefix(PassphraseKey.saltLength))
        guard salt.count == PassphraseKey.saltLength else { throw BackupError("it is cut off") }
        let key = try key(passphrase, salt)
        var plain: [UInt8]
        do throws(CryptoError) {
            plain = try AES256GCM.open(
                Array(rest.dropFirst(PassphraseKey.saltLength)), key: key, aad: mark)
        } catch {
            throw BackupError("the passphrase is wrong, or the file is damaged")
        }
        defer { erase(&plain) }
        return try contents(plain)
    }

    private static func key(
        _ passphrase: [UInt8], _ salt: [UInt8]
    ) throws(BackupError) -> AEADKey {
        do throws(CryptoError) {
            return try PassphraseKey.derive(passphrase: passphrase, salt: salt)
        } catch {
            throw BackupError("the passphrase makes no key: \(error)")
        }
    }

    private static func append(_ name: String, _ bytes: [UInt8], to plain: inout [UInt8]) {
        plain.append(UInt8(name.utf8.count))
        plain += Array(name.utf8)
        for shift in stride(from: 56, through: 0, by: -8) {
            plain.append(UInt8(truncatingIfNeeded: bytes.count >> shift))
        }
        plain += bytes
    }

    private static func contents(_ plain: [UInt8]) throws(BackupError) -> BackupContents {
        var contents = BackupContents()
        var rest = plain[...]
        while let length = rest.popFirst() {
            let name = String(decoding: rest.prefix(Int(length)), as: UTF8.self)
            rest = rest.dropFirst(Int(length))
            guard rest.count >= 8 else { throw BackupError("it is damaged") }
            let size = rest.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            rest = rest.dropFirst(8)
            guard size <= UInt64(rest.count) else { throw BackupError("it is damaged") }
            let bytes = Array(rest.prefix(Int(size)))
            rest = rest.dropFirst(Int(size))
            switch name {
            case databaseName: contents.database = bytes
            case certificateName: contents.certificate = bytes
            default:
                guard name.hasPrefix(secretPrefix) else { continue }
                contents.secrets[String(name.dropFirst(secretPrefix.count))] = bytes
            }
        }
        guard !contents.database.isEmpty else { throw BackupError("it has no database") }
        return contents
    }
}
