// SPDX-License-Identifier: Apache-2.0
import Crypto
import HostProcess
import TrustedPlatform
import WireGuard

/// What protects the secrets of a state directory.
public enum Protection: String, Equatable, Sendable {
    /// A key that the service manager hands over, such as one that systemd-creds(1) has sealed to
    /// the machine's TPM.
    case credential
    /// A key that only the machine's TPM makes of a file beside the secrets.
    case tpm
    /// A key file beside the secrets.
    case file

    /// A sentence for people.
    public var description: String {
        switch self {
        case .credential:
            "sealed under a key that the service manager hands over: protected from other users, "
                + "and from who takes the disk as far as that key is kept elsewhere"
        case .tpm:
            "sealed under a key of this machine's TPM: protected from other users, and from who "
                + "takes the disk without the machine"
        case .file:
            "sealed under a key file beside them: protected from other users, but not from who "
                + "takes the disk"
        }
    }
}

/// The key that secrets are sealed under, and where it came from.
struct StorageKey: Sendable {
    let key: AEADKey
    let protection: Protection
    /// What it was read from.
    let path: String

    /// Tells keys apart without telling anything of them: they are random, so that nobody finds one
    /// from its digest.
    var fingerprint: String {
        key.withBytes { bytes in
            var text = Array("nexusguard storage key".utf8) + bytes
            defer { erase(&text) }
            return String(hexadecimal(SHA256.hash(text)).prefix(16))
        }
    }

    /// The name of the credential of systemd.exec(5), and of the key file.
    static let credentialName = "nexusguard.key"
    static let fileName = "storage.key"
    /// Of the file that the TPM makes the key of.
    static let sealedFileName = "storage.tpm"

    // MARK: reading

    /// The credential's path, if one was handed over.
    static func credentialPath(
        environment: (String) -> String?
    ) -> String? {
        if let path = environment("NEXUSGUARD_CREDENTIAL") { return path }
        guard let directory = environment("CREDENTIALS_DIRECTORY") else { return nil }
        let path = "\(directory)/\(credentialName)"
        return HostFile.exists(path) ? path : nil
    }

    static func read(_ path: String, _ protection: Protection) throws(StorageError) -> StorageKey {
        var file = try asking { () throws(HostError) in try HostFile.read(path, limit: 4096) }
        defer { erase(&file.bytes) }
        // Credentials are read-only files of root or of this user, in a file system of their own.
        guard !file.isOpenToAll, !file.isWritableByOthers else {
            throw StorageError(
                .notPrivate, "the key \(path) may be read or changed by others; run chmod 600 on it"
            )
        }
        guard let key = decoded(file.bytes) else {
            throw StorageError(
                .damaged,
                "\(path) is no key: it must be 32 bytes, or those in base64 or hexadecimal; keep "
                    + "it, and restore the right one")
        }
        return StorageKey(key: key, protection: protection, path: path)
    }

    /// 32 bytes, or a text of one line that stands for them.
    private static func decoded(_ bytes: [UInt8]) -> AEADKey? {
        if bytes.count == AEADKey.length { return AEADKey(copying: bytes) }
        var line = bytes
        defer { erase(&line) }
        while let last = line.last, last == 0x0A || last == 0x0D || last == 0x20 {
            line.removeLast()
        }
        let key =
            (try? PresharedKey(base64: line.span)) ?? (try? PresharedKey(hex: line.span))
        guard let key else { return nil }
        var raw: [UInt8] = []
        raw.reserveCapacity(AEADKey.length)
        key.withBytes { bytes in for index in bytes.indices { raw.append(bytes[index]) } }
        defer { erase(&raw) }
        return AEADKey(copying: raw)
    }

    /// A new key, in a file that is on disk before anything is sealed under it. Throws when there is
    /// one already.
    static func make(_ path: String) throws(StorageError) -> StorageKey {
        let key = AEADKey.generate()
        try key.withBytes { (bytes) throws(StorageError) in
            try asking { () throws(HostError) in
                try HostFile.write(bytes, to: path, replacing: false)
            }
        }
        return StorageKey(key: key, protection: .file, path: path)
    }
}

// MARK: the TPM

extension StorageKey {
    private static let mark = Array("nexusguard-tpm 1\n".utf8)

    /// A new key that `tpm` has sealed, in a file that is on disk before anything is sealed under
    /// the key. The TPM's error as `.noKey`.
    static func make(_ path: String, by tpm: TPM) throws(StorageError) -> StorageKey {
        let key = AEADKey.generate()
        let sealed = try askingTPM("seal a key for \(path)", advice: "") { () throws(TPMError) in
            try key.withBytes { (bytes) throws(TPMError) in try tpm.seal(bytes) }
        }
        try asking { () throws(HostError) in
            try HostFile.write(mark + sealed, to: path, replacing: false)
        }
        return StorageKey(key: key, protection: .tpm, path: path)
    }

    /// Throws `.noKey` when this machine's TPM does not make a key of it: another machine, a TPM
    /// that was cleared, or none (C91).
    static func read(_ path: String, by tpm: TPM?) throws(StorageError) -> StorageKey {
        let file = try asking { () throws(HostError) in try HostFile.read(path, limit: 4096) }
        guard file.bytes.starts(with: mark) else {
            throw StorageError(
                .damaged, "cannot unseal \(path): it is damaged; keep the file and restore a copy")
        }
        guard let tpm else {
            throw StorageError(
                .noKey,
                "cannot unseal \(path): there is no TPM that this user may use; keep the file and "
                    + "give \(Host.userName(Host.user)) access to /dev/tpmrm0 (group tss)")
        }
        var bytes = try askingTPM("unseal \(path)", advice: "; keep the file") {
            () throws(TPMError) in
            try tpm.unseal(Array(file.bytes.dropFirst(mark.count)))
        }
        defer { erase(&bytes) }
        guard bytes.count == AEADKey.length else {
            throw StorageError(.damaged, "cannot unseal \(path): it holds no key; keep the file")
        }
        return StorageKey(key: AEADKey(copying: bytes), protection: .tpm, path: path)
    }

    private static func askingTPM<Value>(
        _ what: String, advice: String, _ body: () throws(TPMError) -> Value
    ) throws(StorageError) -> Value {
        do throws(TPMError) {
            return try body()
        } catch {
            throw StorageError(.noKey, "cannot \(what): \(error)\(advice)")
        }
    }
}
