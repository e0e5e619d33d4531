// SPDX-License-Identifier: Apache-2.0
// The agent's files below its state directory. docs/agent.md lists them.
import ControlAPI
import Crypto
import HostProcess
import Storage
import Synchronization
import WireGuard

/// An agent that runs holds `agent.lock`; `enroll` may work beside it. So whoever changes the identity,
/// or what belongs to it, does it under `store.lock`, and not where another one has been stored
/// meanwhile.
final class AgentStore: Sendable {
    static let defaultDirectory = "/var/lib/nexusguard/agent"

    /// Enough of an identity to tell it from another.
    private struct Mark: Equatable {
        var deviceId: String
        var token: SecretText

        init(_ identity: Identity) { (deviceId, token) = (identity.deviceId, identity.token) }
    }

    private let secrets: SecretStore
    private let documents: LastGood
    /// What this process has read or written last. What it knows besides may not be on disk: a disk is
    /// full.
    private let known = Mutex<Mark?>(nil)
    let directory: StateDirectory
    /// The application's id of this machine, 32 hexadecimal digits.
    let machine: String

    init(_ path: String, machine: String) throws(StoreFault) {
        let directory: StateDirectory
        do throws(StorageError) {
            directory = try StateDirectory(path)
            secrets = try SecretStore(directory, machine: machine)
        } catch {
            throw StoreFault(error)
        }
        self.directory = directory
        self.machine = machine
        documents = LastGood(directory)
    }

    var protection: String { secrets.protection.description }
    /// What opening it corrected or could not do, a line for each.
    var remarks: [String] { directory.corrections + (secrets.remark.map { [$0] } ?? []) }

    // MARK: identity

    /// nil: not enrolled. Throws `other_machine` for a copy of another machine's state (C73), and
    /// `cannot_unseal` where the key or the file is damaged or gone (C91).
    func identity() throws(StoreFault) -> Identity? {
        guard let identity = try open("identity", Identity.self) else { return nil }
        guard identity.hwid == machine else {
            throw StoreFault(
                code: "other_machine",
                reason: "the state in \(directory.path) belongs to another machine: this one is a "
                    + "copy of it; enrol this one with a token of its own: nexusguard enroll "
                    + "--replace")
        }
        return identity
    }

    /// Whether this process has seen `identity` on disk before; from now on it has.
    func recognise(_ identity: Identity) -> Bool {
        let mark = Mark(identity)
        return known.withLock { known in
            defer { known = mark }
            return known == mark
        }
    }

    /// Another form of the identity that is stored. Throws `identity_changed` when somebody else has
    /// stored one meanwhile.
    func change(to identity: Identity) throws(StoreFault) {
        try exclusively { () throws(StoreFault) in
            try checkIsKnown()
            try seal("identity", identity)
        }
        known.withLock { $0 = Mark(identity) }
    }

    private func checkIsKnown() throws(StoreFault) {
        let stored = try open("identity", Identity.self).map { Mark($0) }
        guard known.withLock({ $0 == stored }) else {
            throw StoreFault(
                code: StoreFault.identityChanged,
                reason: "another identity is stored in \(directory.path) by now")
        }
    }

    /// How long another process may take with it. Milliseconds.
    private static let patience: Int64 = 5_000

    private func exclusively(_ body: () throws(StoreFault) -> Void) throws(StoreFault) {
        let lock: FileLock
        do throws(HostError) {
            lock = try FileLock.take(directory.file("store.lock"), waiting: Self.patience)
        } catch {
            throw StoreFault(code: "storage_failed", reason: error.description)
        }
        try body()
        _ = consume lock
    }

    /// nil: none is kept. What cannot be read is none either: the hub sends it again, and the keeper
    /// has its own copy.
    func configuration() -> StoredConfiguration? {
        try? open("configuration", StoredConfiguration.self)
    }

    /// Throws as `change` does.
    func save(_ configuration: StoredConfiguration) throws(StoreFault) {
        try exclusively { () throws(StoreFault) in
            try checkIsKnown()
            try seal("configuration", configuration)
        }
    }

    /// After `unenroll`, on purpose. The logs stay.
    func forget() throws(StoreFault) {
        do throws(StorageError) {
            for name in ["identity", "configuration", "enrolment"] { try secrets.remove(name) }
        } catch {
            throw StoreFault(error)
        }
        known.withLock { $0 = nil }
    }

    /// What an enrolment gave, the identity last: with it the rest counts.
    func save(_ enrolled: Enrolled) throws(StoreFault) {
        try exclusively { () throws(StoreFault) in
            try seal("configuration", enrolled.configuration.stored)
            try seal("identity", enrolled.identity)
            known.withLock { $0 = Mark(enrolled.identity) }
            do throws(StorageError) {
                try secrets.remove("enrolment")
            } catch {
                throw StoreFault(error)
            }
        }
    }

    // MARK: enrolment

    /// The key that a request to provision was, or will be, made with: asked again, the hub sees the
    /// same device (C72).
    func enrolmentKey() throws(StoreFault) -> SecretKey {
        if let text = try open("enrolment", SecretText.self) {
            var bytes = Array(text.exposed.utf8)
            defer { erase(&bytes) }
            if let key = try? SecretKey(base64: bytes.span) { return key }
        }
        let key = SecretKey.generate()
        try seal("enrolment", SecretText(key))
        return key
    }

    // MARK: boot

    /// One more than at the last start (C76). When the count is lost it goes on from the clock's
    /// minutes: far above what any count was.
    /// The caller writes it.
    func nextBoot(wallSeconds: Int64) throws(StoreFault) -> UInt64 {
        do throws(StorageError) {
            let before = try documents.read("boot")?.bytes ?? []
            let count = parseDecimal(before.span, maximum: 1 << 52)
            let isFirst = before.isEmpty
            return (count ?? (isFirst ? 0 : UInt64(max(0, wallSeconds / 60)))) + 1
        } catch {
            throw StoreFault(error)
        }
    }

    func save(boot: UInt64) throws(StoreFault) {
        do throws(StorageError) {
            try documents.write("boot", Array("\(boot)".utf8))
        } catch {
            throw StoreFault(error)
        }
    }

    // MARK: sealing

    private func open<Value: Decodable>(
        _ name: String, _ type: Value.Type
    ) throws(StoreFault) -> Value? {
        do throws(StorageError) {
            guard var bytes = try secrets.open(name) else { return nil }
            defer { erase(&bytes) }
            guard let value = try? Wire.decode(type, from: bytes) else {
                throw StorageError(
                    .damaged,
                    "\(directory.path)/\(name).sealed is not understood: it may be of a newer "
                        + "version; keep the file")
            }
            return value
        } catch {
            throw StoreFault(error)
        }
    }

    private func seal(_ name: String, _ value: some Encodable) throws(StoreFault) {
        var bytes = Wire.encode(value)
        defer { erase(&bytes) }
        do throws(StorageError) {
            try secrets.seal(name, bytes)
        } catch {
            throw StoreFault(error)
        }
    }
}

extension StoreFault {
    static let identityChanged = "identity_changed"

    init(_ error: StorageError) {
        let code =
            switch error.kind {
            case .otherMachine: "other_machine"
            case .otherKey, .noKey, .damaged: "cannot_unseal"
            case .full: "disk_full"
            case .notPrivate, .noPermission, .missing, .other: "storage_failed"
            }
        self.init(code: code, reason: error.description)
    }
}
