// SPDX-License-Identifier: Apache-2.0
// The agent's files below its state directory. docs/agent.md lists them.
import ControlAPI
import Crypto
import Storage
import WireGuard

/// For one process at a time (its caller holds the lock).
final class AgentStore: Sendable {
    static let defaultDirectory = "/var/lib/nexusguard/agent"

    private let secrets: SecretStore
    private let documents: LastGood
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

    func save(_ identity: Identity) throws(StoreFault) { try seal("identity", identity) }

    /// nil: none is kept. What cannot be read is none either: the hub sends it again, and the keeper
    /// has its own copy.
    func configuration() -> StoredConfiguration? {
        try? open("configuration", StoredConfiguration.self)
    }

    func save(_ configuration: StoredConfiguration) throws(StoreFault) {
        try seal("configuration", configuration)
    }

    /// After `unenroll`, on purpose. The logs stay.
    func forget() throws(StoreFault) {
        do throws(StorageError) {
            for name in ["identity", "configuration", "enrolment"] { try secrets.remove(name) }
        } catch {
            throw StoreFault(error)
        }
    }

    /// What an enrolment gave, the identity last: with it the rest counts.
    func save(_ enrolled: Enrolled) throws(StoreFault) {
        try save(enrolled.configuration.stored)
        try save(enrolled.identity)
        do throws(StorageError) {
            try secrets.remove("enrolment")
        } catch {
            throw StoreFault(error)
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
