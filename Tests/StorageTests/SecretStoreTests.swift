// SPDX-License-Identifier: Apache-2.0
import Crypto
import Glibc
import HostProcess
import TestSupport
import Testing
import WireGuard

@testable import Storage

private let machine = "0123456789abcdef0123456789abcdef"
private let secret = Array("the private key of this device!!".utf8)

@Suite struct SecretStoreTests {
    let directory = TemporaryDirectory()

    private func store(
        _ source: KeySource = .automatic, machine: String = machine,
        credential: String? = nil
    ) throws(StorageError) -> SecretStore {
        try SecretStore(
            try directory.state(), keySource: source, machine: machine, tpm: nil,
            environment: { $0 == "NEXUSGUARD_CREDENTIAL" ? credential : nil })
    }

    private func key(_ name: String, _ bytes: [UInt8]) throws -> String {
        let keys = try StateDirectory(directory.file("keys"))
        try HostFile.write(bytes, to: keys.file(name), replacing: false)
        return keys.file(name)
    }

    /// A hub may send a configuration as large as it likes.
    @Test func whatIsTooLongIsAnErrorAndKeepsWhatWasThere() throws {
        let store = try store()
        try store.seal("configuration", secret)
        let long = [UInt8](repeating: 1, count: SealedFile.maximumLength + 1)
        #expect(throws: StorageError.self) { try store.seal("configuration", long) }
        #expect(try store.open("configuration") == secret)
    }

    @Test func whatWasSealedOpensAgain() throws {
        let first = try store()
        #expect(try first.open("token") == nil)
        try first.seal("token", secret)
        try first.seal("empty", [])
        try first.seal("token", secret)
        #expect(first.protection == .file)
        let second = try store()
        #expect(try second.open("token") == secret)
        #expect(try second.open("empty") == [])
        #expect(try second.names() == ["empty", "token"])
        try second.remove("token")
        #expect(try second.open("token") == nil)
        #expect(directory.names == ["empty.sealed", "storage.key"])
    }

    @Test func case_C93_noFileHoldsTheSecretInClear() throws {
        try store().seal("token", secret)
        for name in directory.names {
            #expect(permissions(directory.file(name)) == 0o600)
            let bytes = try directory.read(name)
            let isFound = (0..<max(0, bytes.count - 8)).contains { start in
                secret.indices.dropLast(7).contains {
                    bytes[start..<start + 8] == secret[$0..<$0 + 8]
                }
            }
            #expect(!isFound, "\(name)")
        }
    }

    /// The machine's own keystore did not come back: the file is kept, nothing is made anew.
    @Test func case_C91_withoutItsKeyASecretIsKeptAndNoNewKeyIsMade() throws {
        try store().seal("token", secret)
        let sealed = try directory.read("token.sealed")
        try HostFile.remove(directory.file("storage.key"))
        let error = failure { () throws(StorageError) in _ = try store() }
        #expect(error?.kind == .noKey)
        #expect(error?.description.contains("cannot unseal") == true)
        #expect(error?.description.contains("keep the files") == true)
        #expect(directory.names == ["token.sealed"])
        #expect(try directory.read("token.sealed") == sealed)
    }

    @Test func case_C91_aCredentialThatIsNotHandedOverAgainIsMissed() throws {
        let path = try key("a", [UInt8](repeating: 7, count: 32))
        let first = try store(credential: path)
        #expect(first.protection == .credential)
        try first.seal("token", secret)
        #expect(try store(credential: path).open("token") == secret)
        #expect(failure { () throws(StorageError) in _ = try store() }?.kind == .noKey)
        #expect(failure { () throws(StorageError) in _ = try store(.credential) }?.kind == .noKey)
        #expect(!directory.names.contains("storage.key"))
    }

    @Test func case_C91_anotherKeyIsToldFromDamage() throws {
        let sealedUnder = try key("a", [UInt8](repeating: 7, count: 32))
        let other = try key("b", [UInt8](repeating: 8, count: 32))
        try store(credential: sealedUnder).seal("token", secret)
        let error = try opening(store(credential: other))
        #expect(error?.kind == .otherKey)
        #expect(error?.description.contains("keep the file") == true)
        #expect(try store(credential: sealedUnder).open("token") == secret)
    }

    @Test func case_C73_aCopyOnAnotherMachineDoesNotOpen() throws {
        try store().seal("token", secret)
        let copy = try store(machine: String(machine.reversed()))
        let error = try opening(copy)
        #expect(error?.kind == .otherMachine)
        #expect(error?.description.contains("enrol this machine") == true)
        #expect(try store().open("token") == secret)
        // Nor does it when the line that names the machine is changed as well.
        let line = "machine \(SealedFile.fingerprint(machine: machine))"
        let theirs = "machine \(SealedFile.fingerprint(machine: String(machine.reversed())))"
        let content = try directory.read("token.sealed")
        let position = content.indices.first { content[$0...].starts(with: line.utf8) }!
        try directory.overwrite(
            "token.sealed",
            content[..<position] + Array(theirs.utf8) + content[(position + line.utf8.count)...])
        #expect(try opening(copy)?.kind == .damaged)
    }

    @Test func anyDamageIsNoticedAndTheFileIsKept() throws {
        let store = try store()
        try store.seal("token", secret)
        let content = try directory.read("token.sealed")
        for index in content.indices {
            for damaged in [
                Array(content[..<index]), content.enumerated().map { $0 == index ? $1 ^ 1 : $1 },
            ] {
                try directory.overwrite("token.sealed", damaged)
                let error = try opening(store)
                #expect(
                    [.damaged, .otherMachine, .otherKey].contains(error?.kind), "byte \(index)")
                #expect(error?.description.contains("keep the file") == true)
                #expect(try directory.read("token.sealed") == damaged)
            }
        }
        try directory.overwrite("token.sealed", content)
        #expect(try store.open("token") == secret)
    }

    @Test func aSecretDoesNotOpenUnderAnotherName() throws {
        let store = try store()
        try store.seal("old", secret)
        try HostFile.rename(directory.file("old.sealed"), to: directory.file("token.sealed"))
        #expect(try opening(store)?.kind == .damaged)
    }

    @Test func whatCannotBeReadIsNotTakenForMissing() throws {
        let store = try store()
        unsafe mkdir(directory.file("token.sealed"), 0o700)
        #expect(try opening(store) != nil)
    }

    private func opening(_ store: SecretStore) throws -> StorageError? {
        failure { () throws(StorageError) in _ = try store.open("token") }
    }
}

@Suite struct StorageKeyTests {
    let directory = TemporaryDirectory()
    private let bytes = (0..<32).map { UInt8($0) }

    private func read(_ content: [UInt8]) throws -> StorageKey {
        try directory.overwrite("key", content)
        return try StorageKey.read(directory.file("key"), .credential)
    }

    @Test func theFormsOfAKeyAreTheSameKey() throws {
        let key = PresharedKey(copying: bytes.span)
        var base64: [UInt8] = []
        var hex: [UInt8] = []
        key.appendBase64(to: &base64)
        key.appendHex(to: &hex)
        let fingerprint = try read(bytes).fingerprint
        for text in [base64, base64 + [0x0A], hex, hex + [0x0D, 0x0A]] {
            #expect(try read(text).fingerprint == fingerprint)
        }
    }

    @Test(arguments: [0, 1, 31, 33, 43, 64, 100]) func whatIsNoKeyIsRefusedAndNotShown(
        count: Int
    ) throws {
        let content = [UInt8](repeating: UInt8(ascii: "~"), count: count)
        let error = #expect(throws: StorageError.self) { try read(content) }
        #expect(error?.kind == .damaged)
        #expect(error?.description.contains("~") == false)
    }

    @Test func case_C95_aKeyThatOthersMayReadIsRefused() throws {
        _ = try read(bytes)
        unsafe chmod(directory.file("key"), 0o644)
        let error = failure { () throws(StorageError) in
            _ = try StorageKey.read(directory.file("key"), .credential)
        }
        #expect(error?.kind == .notPrivate)
        #expect(error?.description.contains("chmod 600") == true)
    }

    @Test func theCredentialOfTheServiceManagerIsFound() throws {
        _ = try StateDirectory(directory.path)
        let variables = ["CREDENTIALS_DIRECTORY": directory.path]
        #expect(StorageKey.credentialPath { variables[$0] } == nil)
        try directory.overwrite("nexusguard.key", bytes)
        #expect(StorageKey.credentialPath { variables[$0] } == directory.file("nexusguard.key"))
        let both = variables.merging(["NEXUSGUARD_CREDENTIAL": "/elsewhere"]) { $1 }
        #expect(StorageKey.credentialPath { both[$0] } == "/elsewhere")
    }

    @Test func case_C91_theFileOfATPMIsKeptWhereThereIsNone() throws {
        _ = try StateDirectory(directory.path)
        for content in [Array("nexusguard-tpm 1\n".utf8) + [1, 2, 3], [0]] {
            try directory.overwrite("storage.tpm", content)
            for source in [KeySource.automatic, .tpm] {
                let error = failure { () throws(StorageError) in
                    let state = try directory.state()
                    _ = try SecretStore(
                        state, keySource: source, machine: machine, tpm: nil,
                        environment: { _ in nil })
                }
                #expect(error?.kind == (content.count > 1 ? .noKey : .damaged))
                #expect(error?.description.contains("keep the file") == true)
            }
            #expect(directory.names == ["storage.tpm"])
            #expect(try directory.read("storage.tpm") == content)
        }
    }

    @Test func protectionIsSaidInWords() {
        #expect(Protection.tpm.description.contains("without the machine"))
        #expect(Protection.file.description.contains("not from who takes the disk"))
        #expect(Protection.credential.description.contains("service manager"))
    }
}
