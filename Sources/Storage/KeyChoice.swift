// SPDX-License-Identifier: Apache-2.0
import HostProcess
import TrustedPlatform

/// Where the key of a store of secrets may come from.
public enum KeySource: Sendable {
    /// A credential that was handed over, or else the TPM, or else a key file.
    case automatic
    case credential
    case tpm
    case file
}

/// Finds the key of a state directory, or makes the first one. What is there decides: once a key
/// file or a TPM's file exists, no other is made (C91).
struct KeyChoice {
    let directory: StateDirectory
    let tpm: TPM?
    /// The path of what was handed over.
    let credential: String?
    /// The file of some secret, if there is one.
    let firstSecret: String?

    /// With a remark when the key is protected less well than it could be.
    func key(from source: KeySource) throws(StorageError) -> (StorageKey, remark: String?) {
        switch source {
        case .automatic:
            guard credential == nil else { return try key(from: .credential) }
            guard try !isThere(tpmFile) else { return try key(from: .tpm) }
            guard tpm != nil, try !isThere(keyFile), firstSecret == nil else {
                return try key(from: .file)
            }
            return try madeByTPMOrFile()
        case .credential: return (try readCredential(), nil)
        case .tpm: return (try readOrMakeByTPM(), nil)
        case .file: return (try readOrMakeFile(), nil)
        }
    }

    private var tpmFile: String { directory.file(StorageKey.sealedFileName) }
    private var keyFile: String { directory.file(StorageKey.fileName) }

    private func readCredential() throws(StorageError) -> StorageKey {
        guard let credential else {
            throw StorageError(
                .noKey,
                "no credential \(StorageKey.credentialName) was handed over: "
                    + "neither $CREDENTIALS_DIRECTORY nor $NEXUSGUARD_CREDENTIAL leads to one")
        }
        return try StorageKey.read(credential, .credential)
    }

    private func readOrMakeByTPM() throws(StorageError) -> StorageKey {
        guard try !isThere(tpmFile) else { return try StorageKey.read(tpmFile, by: tpm) }
        try refuseToReplace()
        guard let tpm else {
            throw StorageError(.noKey, "there is no TPM that this user may use (/dev/tpmrm0)")
        }
        return try StorageKey.make(tpmFile, by: tpm)
    }

    private func readOrMakeFile() throws(StorageError) -> StorageKey {
        guard try !isThere(keyFile) else { return try StorageKey.read(keyFile, .file) }
        try refuseToReplace()
        return try StorageKey.make(keyFile)
    }

    /// A TPM that does not do it, such as one whose owner has set a password, must not keep the
    /// program from starting.
    private func madeByTPMOrFile() throws(StorageError) -> (StorageKey, remark: String?) {
        do throws(StorageError) {
            return (try readOrMakeByTPM(), nil)
        } catch  where error.kind == .noKey {
            return (try readOrMakeFile(), "\(error); using a key file instead")
        }
    }

    /// No new key where there are secrets under another one.
    private func refuseToReplace() throws(StorageError) {
        guard let firstSecret else { return }
        throw StorageError(
            .noKey,
            "cannot unseal \(directory.file(firstSecret)) and what lies beside it: their key is "
                + "not here, neither as a credential nor in \(directory.path); keep the files and "
                + "bring the key back")
    }
}
