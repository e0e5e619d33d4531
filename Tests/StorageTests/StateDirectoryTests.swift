// SPDX-License-Identifier: Apache-2.0
import Glibc
import HostProcess
import Storage
import TestSupport
import Testing

@Suite struct StateDirectoryTests {
    let directory = TemporaryDirectory()

    @Test func case_C94_whatIsMadeBelongsToItsOwnerAlone() throws {
        let before = umask(0)
        defer { umask(before) }
        let state = try StateDirectory(directory.file("parent/state"))
        #expect(permissions(directory.file("parent")) == 0o755)
        #expect(permissions(state.path) == 0o700)
        #expect(state.corrections == [])
        try HostFile.write([1], to: state.file("a"), replacing: false)
        #expect(permissions(state.file("a")) == 0o600)
        #expect(permissions(try state.directory("inner").path) == 0o700)
    }

    @Test func case_C95_whatIsOpenToOthersIsClosedAndSaid() throws {
        let state = try StateDirectory(directory.file("state"))
        for name in ["a", "b", "c"] {
            try HostFile.write([1], to: state.file(name), replacing: false)
        }
        unsafe chmod(state.path, 0o755)
        unsafe chmod(state.file("a"), 0o644)
        unsafe chmod(state.file("b"), 0o620)
        let corrections = try StateDirectory(state.path).corrections
        #expect(corrections.count == 3)
        #expect(corrections[0].contains("was open to others (755)"))
        #expect(corrections[1].contains("/a was open to others (644); its permissions are 600 now"))
        #expect(corrections[2].contains("/b was open to others (620)"))
        #expect(permissions(state.path) == 0o700)
        for name in ["a", "b", "c"] { #expect(permissions(state.file(name)) == 0o600) }
        #expect(try StateDirectory(state.path).corrections == [])
    }

    @Test func case_C95_linksAndFilesInTheWayAreRefused() throws {
        let state = try StateDirectory(directory.file("state"))
        unsafe symlink("/etc/passwd", state.file("key"))
        let link = failure { () throws(StorageError) in _ = try StateDirectory(state.path) }
        #expect(link?.kind == .notPrivate)
        #expect(link?.description.contains("is a symbolic link") == true)
        try HostFile.write([], to: directory.file("plain"), replacing: false)
        let plain = failure { () throws(StorageError) in
            _ = try StateDirectory(directory.file("plain"))
        }
        #expect(plain?.kind == .notPrivate)
        unsafe symlink(state.path, directory.file("other"))
        let linked = failure { () throws(StorageError) in
            _ = try StateDirectory(directory.file("other"))
        }
        #expect(linked?.kind == .notPrivate)
    }

    /// Only root can make it so.
    @Test(.enabled(if: geteuid() == 0)) func case_C95_whatBelongsToAnotherIsRefusedByName() throws {
        let state = try StateDirectory(directory.file("state"))
        try HostFile.write([1], to: state.file("a"), replacing: false)
        unsafe chown(state.file("a"), 65534, 65534)
        let error = failure { () throws(StorageError) in _ = try StateDirectory(state.path) }
        #expect(error?.kind == .notPrivate)
        #expect(error?.description.contains("belongs to nobody, not to root") == true)
        #expect(permissions(state.file("a")) == 0o600)
    }

    /// Everybody may try: /etc belongs to root, / as well.
    @Test(.enabled(if: geteuid() != 0)) func case_C95_aDirectoryOfAnotherIsRefusedByName() {
        let error = failure { () throws(StorageError) in _ = try StateDirectory("/etc") }
        #expect(error?.kind == .notPrivate)
        #expect(error?.description.contains("/etc belongs to root") == true)
        let looking = failure { () throws(StorageError) in _ = try StateDirectory(existing: "/etc")
        }
        #expect(looking?.kind == .noPermission)
    }

    @Test func aMissingOneIsNotMadeByLooking() {
        let error = failure { () throws(StorageError) in
            _ = try StateDirectory(existing: directory.file("none"))
        }
        #expect(error?.kind == .missing)
        #expect(error?.description.contains("--state") == true)
        #expect(directory.names == [])
    }
}
