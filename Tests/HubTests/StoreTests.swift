// SPDX-License-Identifier: Apache-2.0
import Crypto
import HostProcess
import SQLite
import Testing
import WireGuard

@testable import Hub

struct StoreTests {
    /// The model follows changes as the tables do: reading them gives the same.
    @Test func randomChangesReadBackTheSame() throws {
        let store = try Store(Database())
        var generator = SystemRandomNumberGenerator()
        var model = try store.load()
        var settings = HubSettings()
        settings.pools = [Prefix("10.0.0.0/24")!]
        for round in 0..<400 {
            var changes = randomChanges(model, &generator)
            if round == 0 { changes.insert(.settings(settings), at: 0) }
            try store.write(changes)
            model.apply(changes)
            if round % 20 == 0 { #expect(try store.load() == model) }
        }
        #expect(try store.load() == model)
        #expect(model.devices.count > 1)
    }

    private func randomChanges(
        _ model: Model, _ generator: inout SystemRandomNumberGenerator
    ) -> [Change] {
        let now = Milliseconds.random(in: 1...1_000_000, using: &generator)
        let known = model.devices.values.randomElement(using: &generator)
        switch Int.random(in: 0..<11, using: &generator) {
        case 0, 1, 2: return [.device(randomDevice(model, now, &generator))]
        case 3:
            guard var device = known, device.revoked == nil else { return [] }
            device.revoked = now
            return device.addresses.map { .quarantine($0, until: now) } + [.device(device)]
        case 4:
            guard let device = known, Bool.random(using: &generator) else { return [] }
            return [.removeDevice(device.id)]
        case 5:
            var token = EnrolToken(id: Random.uuid(), digest: Random.uuid(), created: now)
            token.maximumUses = Bool.random(using: &generator) ? 5 : nil
            token.revoked = Bool.random(using: &generator) ? now : nil
            return [.token(token)]
        case 6:
            guard let device = known else { return [] }
            return [
                .credential(Credential(digest: Random.uuid(), deviceId: device.id, created: now))
            ]
        case 7:
            guard let device = known else { return [] }
            return [
                .forward(
                    ForwardRule(
                        id: Random.uuid(), deviceId: device.id, transport: .udp,
                        ports: 1...65535, target: IPAddress("fd00::1")!, targetPort: 9))
            ]
        case 8: return model.forwards.keys.first.map { [.removeForward($0)] } ?? []
        case 9: return model.quarantine.keys.first.map { [.endQuarantine($0)] } ?? []
        default:
            return [
                .alarm(
                    Alarm(
                        id: model.lastAlarm + 1, deviceId: known?.id, kind: .silent, text: "x",
                        raised: now, cleared: Bool.random(using: &generator) ? now : nil)),
                .log(LogRecord(time: now, level: "info", tag: "t", message: "m")),
            ]
        }
    }

    private func randomDevice(
        _ model: Model, _ now: Milliseconds, _ generator: inout SystemRandomNumberGenerator
    ) -> Device {
        var device = Device(
            id: Random.uuid(), hwid: "\(now % 5)", name: "n\(now)",
            publicKey: SecretKey.generate().publicKey,
            addresses: model.freeAddresses() ?? [], tokenId: "t", created: now, provisioned: now)
        if Bool.random(using: &generator) {
            device.rotation = Rotation(
                otherKey: SecretKey.generate().publicKey, phase: .moved, since: now,
                receivedAtMove: 7)
            device.networks = [Prefix("10.1.0.0/16")!, Prefix("fd01::/64")!]
            device.routes = []
            device.sealedKey = [1, 2, 3]
            device.sealedPresharedKey = [4, 5]
            device.command = .reprovision
        }
        return device
    }

    @Test func aRefusedTransactionChangesNothing() throws {
        let test = try TestHub()
        let device = try test.enrol()
        let before = test.hub.withCore { $0.model }
        // A credential of a device that is not there: the whole list is refused.
        let refused = #expect(throws: Refusal.self) {
            try test.hub.locked { (core) throws(Refusal) in
                var changed = core.model.devices[device.id]!
                changed.name = "other"
                try core.commit([
                    .device(changed),
                    .credential(Credential(digest: "d", deviceId: "nobody", created: 0)),
                ])
            }
        }
        #expect(refused?.problem.status == 503)
        #expect(test.hub.withCore { $0.model } == before)
        try test.expectStored()
    }

    @Test func aLogThatCannotBeTidiedUpIsNoFailure() throws {
        let store = try Store(Database())
        try store.database.execute("DROP TABLE log")
        // What was written is written: whoever is told otherwise does it again.
        try store.write(Array(repeating: .settings(HubSettings()), count: 1000))
        try store.write([.settings(HubSettings())])
    }

    @Test func theLogIsBounded() throws {
        let store = try Store(Database())
        let record = Change.log(LogRecord(time: 1, level: "info", tag: "t", message: "m"))
        for _ in 0..<103 { try store.write(Array(repeating: record, count: 1000)) }
        let rows = try store.database.rows("SELECT count(*) AS n FROM log")
        #expect(rows.first?.integer("n") == Int64(Store.logLimit))
    }
}

struct BackupTests {
    @Test func aBackupOpensWithItsPassphraseOnly() throws {
        var contents = BackupContents()
        contents.database = Random.bytes(5000)
        contents.secrets = ["tunnel": Random.bytes(32), "sealing": Random.bytes(32), "empty": []]
        contents.certificate = Array("pem".utf8)
        let passphrase = Array("a passphrase of some length".utf8)
        let file = try Backup.seal(contents, passphrase: passphrase)
        #expect(try Backup.open(file, passphrase: passphrase) == contents)
        #expect(throws: BackupError.self) {
            try Backup.open(file, passphrase: Array("another passphrase".utf8))
        }
        for length in [0, 10, Backup.mark.count, Backup.mark.count + 16, file.count - 1] {
            #expect(throws: BackupError.self) {
                try Backup.open(Array(file.prefix(length)), passphrase: passphrase)
            }
        }
        var damaged = file
        damaged[file.count / 2] ^= 1
        #expect(throws: BackupError.self) { try Backup.open(damaged, passphrase: passphrase) }
        // Nothing of it is to be seen.
        #expect(!contains(file, contents.database.prefix(16)))
    }

    private func contains(_ bytes: [UInt8], _ part: ArraySlice<UInt8>) -> Bool {
        bytes.indices.dropLast(part.count).contains { bytes[$0...].starts(with: part) }
    }
}
