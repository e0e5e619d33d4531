// SPDX-License-Identifier: Apache-2.0
// What a hub keeps in its state directory:
//
//   hub.db         the tables
//   certificate.pem  of the control server, where none was given
//   tunnel.sealed  sealing.sealed  certificate.sealed   its secrets, see Storage
//   hub.lock       held by the process that runs
import Crypto
import HTTP
import HostProcess
import SQLite
import Storage
import WireGuard

/// Why the hub does not start, or a command on its state is not done.
public struct HubError: Error, Equatable, Sendable, CustomStringConvertible {
    public enum Kind: Sendable { case failed, usage, permission, busy, configuration }

    public let kind: Kind
    public let description: String

    public init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }

    init(_ error: StorageError) {
        let isPermission = error.kind == .noPermission || error.kind == .notPrivate
        self.init(isPermission ? .permission : .failed, error.description)
    }
    init(_ error: SQLiteError) { self.init(.failed, error.description) }
    init(_ error: StoreError) { self.init(.failed, error.description) }
    init(_ error: HTTPError) {
        let kind: Kind =
            switch error.kind {
            case .noPermission: .permission
            case .busy: .busy
            case .other: .failed
            }
        self.init(kind, error.description)
    }
    init(_ error: HostError) {
        let kind: Kind =
            switch error.kind {
            case .noPermission: .permission
            case .busy: .busy
            case .other: .failed
            }
        self.init(kind, error.description)
    }
}

/// The state directory, locked by this process.
struct HubState: ~Copyable {
    static let tunnelSecret = "tunnel"
    static let sealingSecret = "sealing"
    static let certificateSecret = "certificate"

    let directory: StateDirectory
    let secrets: SecretStore
    private let lock: FileLock

    var databasePath: String { directory.file("hub.db") }
    var certificatePath: String { directory.file("certificate.pem") }

    /// Makes what is missing.
    init(_ path: String, machine: String) throws(HubError) {
        let directory: StateDirectory
        do throws(StorageError) {
            directory = try StateDirectory(path)
        } catch {
            throw HubError(error)
        }
        let lock = try hosting { () throws(HostError) in
            try FileLock.take(directory.file("hub.lock"))
        }
        let secrets: SecretStore
        do throws(StorageError) {
            secrets = try SecretStore(directory, machine: machine)
        } catch {
            throw HubError(error)
        }
        self.directory = directory
        self.lock = lock
        self.secrets = secrets
    }

    /// The hub's keys: made at the first start, and never again by themselves.
    func keys() throws(HubError) -> HubKeys {
        let isNew = !HostFile.exists(databasePath)
        var tunnel = try secret(Self.tunnelSecret, makes: isNew) {
            bytes(of: SecretKey.generate())
        }
        defer { erase(&tunnel) }
        var sealing = try secret(Self.sealingSecret, makes: isNew) {
            Random.bytes(AEADKey.length)
        }
        defer { erase(&sealing) }
        guard tunnel.count == 32, sealing.count == AEADKey.length else {
            throw HubError(
                .failed, "the hub's keys in \(directory.path) are damaged; restore a backup")
        }
        return HubKeys(
            tunnel: SecretKey(copying: tunnel.span), sealing: AEADKey(copying: sealing))
    }

    private func secret(
        _ name: String, makes: Bool, _ make: () -> [UInt8]
    ) throws(HubError) -> [UInt8] {
        do throws(StorageError) {
            if let bytes = try secrets.open(name) { return bytes }
            guard makes else {
                throw StorageError(
                    .missing,
                    "\(directory.path) has a database and no key \(name); restore a backup")
            }
            let bytes = make()
            try secrets.seal(name, bytes)
            return bytes
        } catch {
            throw HubError(error)
        }
    }

    /// A certificate of the hub's own, made for `names` where there is none.
    func ownCertificate(
        names: [String]
    ) throws(HubError) -> (certificate: [UInt8], key: ConnectionSecret) {
        var stored: [UInt8]?
        do throws(StorageError) {
            stored = try secrets.open(Self.certificateSecret)
        } catch {
            throw HubError(error)
        }
        if var key = stored.take() {
            defer { erase(&key) }
            let file = try hosting { () throws(HostError) in
                try HostFile.read(certificatePath, limit: 1 << 20)
            }
            return (file.bytes, ConnectionSecret(copying: key))
        }
        return try makeCertificate(names)
    }

    /// Ten years: devices know it by its pin, and what runs out unnoticed helps nobody.
    private static let certificateDays = 3650

    private func makeCertificate(
        _ names: [String]
    ) throws(HubError) -> (certificate: [UInt8], key: ConnectionSecret) {
        let made: Certificate.Made
        do throws(HTTPError) {
            made = try Certificate.selfSigned(
                commonName: names.first ?? "nexusguard-hub", addresses: names,
                days: Self.certificateDays)
        } catch {
            throw HubError(error)
        }
        try hosting { () throws(HostError) in
            try HostFile.write(made.certificatePEM, to: certificatePath, replacing: true)
        }
        var pem: [UInt8] = []
        made.key.withBytes { source in for index in source.indices { pem.append(source[index]) } }
        defer { erase(&pem) }
        do throws(StorageError) {
            try secrets.seal(Self.certificateSecret, pem)
        } catch {
            throw HubError(error)
        }
        return (made.certificatePEM, made.key)
    }
}

/// The caller erases them.
func bytes(of key: SecretKey) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(32)
    key.withBytes { source in for index in source.indices { bytes.append(source[index]) } }
    return bytes
}

/// Errors of the host as the hub's.
func hosting<Value: ~Copyable>(_ body: () throws(HostError) -> Value) throws(HubError) -> Value {
    do throws(HostError) {
        return try body()
    } catch {
        throw HubError(error)
    }
}
