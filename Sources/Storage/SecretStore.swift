// SPDX-License-Identifier: Apache-2.0
import HostProcess
import Synchronization
import TrustedPlatform

/// Secrets of agent and hub, each in a file of its own, sealed so that it opens only under this
/// store's key, on this machine and under its own name. There is no other copy of them, and no way
/// around the key: what cannot be opened is an error, and the file is kept (C73, C91).
///
/// For one process at a time; callable from any thread.
public final class SecretStore: Sendable {
    private let directory: StateDirectory
    private let machine: String
    private let key: StorageKey
    private let isWriting = Mutex(())
    /// Why the protection is less than this machine offers, as a line for the log.
    public let remark: String?

    private static let suffix = ".sealed"

    /// `machine` is `MachineIdentity.current()`. A key is made when there is neither a key nor a
    /// secret. Throws `.noKey` where there are secrets but no key, which is how a key that did not
    /// come back after a restart shows (C91).
    public convenience init(
        _ directory: StateDirectory, keySource: KeySource = .automatic, machine: String,
        tpm: TPM? = .ofMachine
    ) throws(StorageError) {
        try self.init(
            directory, keySource: keySource, machine: machine, tpm: tpm,
            environment: Host.environment)
    }

    init(
        _ directory: StateDirectory, keySource: KeySource, machine: String, tpm: TPM?,
        environment: (String) -> String?
    ) throws(StorageError) {
        self.directory = directory
        self.machine = machine
        let choice = KeyChoice(
            directory: directory, tpm: tpm,
            credential: StorageKey.credentialPath(environment: environment),
            firstSecret: try Self.names(in: directory).first.map { $0 + Self.suffix })
        (key, remark) = try choice.key(from: keySource)
    }

    /// What `status` shows.
    public var protection: Protection { key.protection }

    /// The names of the secrets there are.
    public func names() throws(StorageError) -> [String] { try Self.names(in: directory) }

    private static func names(in directory: StateDirectory) throws(StorageError) -> [String] {
        let names = try asking { () throws(HostError) in try HostFile.names(in: directory.path) }
        return names.filter { $0.hasSuffix(suffix) && !$0.hasPrefix(".") }
            .map { String($0.dropLast(suffix.count)) }.sorted()
    }
}

// MARK: secrets

extension SecretStore {
    /// Keeps `bytes` (at most a MiB, erased by the caller) under `name`, in place of what had it:
    /// after an error, or a failure of power, either the old or the new is there. Throws `.other` for
    /// more: how much there is may be for others to say, such as a hub.
    public func seal(_ name: String, _ bytes: [UInt8]) throws(StorageError) {
        precondition(isPlainName(name), "the program chooses the names of secrets")
        guard bytes.count <= SealedFile.maximumLength else {
            throw StorageError(
                .other,
                "cannot write \(path(name)): \(bytes.count) bytes are more than "
                    + "\(SealedFile.maximumLength)")
        }
        let content = SealedFile.seal(bytes, name: name, machine: machine, key: key)
        let file = name + Self.suffix
        let steps = FileOperation.replacement(of: file, with: content, draft: ".\(file).new")
        try isWriting.withLock { (_) throws(StorageError) in try self.perform(steps, name) }
    }

    /// What was kept under `name`; nil when nothing is. The caller erases it. Throws
    /// `.otherMachine`, `.otherKey` and `.damaged`, and leaves the file alone.
    public func open(_ name: String) throws(StorageError) -> [UInt8]? {
        let path = path(name)
        guard try isThere(path) else { return nil }
        let file = try asking { () throws(HostError) in
            try HostFile.read(path, limit: SealedFile.maximumLength + 4096)
        }
        guard let sealed = SealedFile(file.bytes) else { throw damaged(path) }
        guard sealed.machineFingerprint == SealedFile.fingerprint(machine: machine) else {
            throw StorageError(
                .otherMachine,
                "cannot unseal \(path): it was sealed on another machine, so this is a copy of its "
                    + "disk or state; keep the file, and enrol this machine with a state "
                    + "directory of its own")
        }
        guard sealed.keyFingerprint == key.fingerprint else {
            throw StorageError(
                .otherKey,
                "cannot unseal \(path): it was sealed under another key (by "
                    + "\(quoted(sealed.protection))) than \(key.path); keep the file and bring "
                    + "that key back")
        }
        do {
            return try SealedFile.open(file.bytes, name: name, machine: machine, key: key.key)
        } catch {
            throw damaged(path)
        }
    }

    /// Removes a secret, on purpose.
    public func remove(_ name: String) throws(StorageError) {
        try perform([.remove(name + Self.suffix), .synchroniseDirectory], name)
    }

    private func perform(_ steps: [FileOperation], _ name: String) throws(StorageError) {
        try asking { () throws(HostError) in
            try FileOperation.perform(steps, in: directory.path, writing: path(name))
        }
    }

    private func path(_ name: String) -> String { directory.file(name + Self.suffix) }

    private func damaged(_ path: String) -> StorageError {
        StorageError(
            .damaged,
            "cannot unseal \(path): it is damaged, or was renamed; keep the file and restore a copy"
        )
    }

    private func quoted(_ text: String) -> String { text.prefix(32).debugDescription }
}
