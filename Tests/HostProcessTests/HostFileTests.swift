// SPDX-License-Identifier: Apache-2.0
import Glibc
import HostProcess
import TestSupport
import Testing

private func read(_ path: String, limit: Int = 1 << 20) throws -> [UInt8] {
    try HostFile.read(path, limit: limit).bytes
}

@Suite struct HostFileTests {
    let directory = TemporaryDirectory()

    /// A daemon's umask of 077, or anybody's of 022, would leave less.
    @Test func aDirectoryHasThePermissionsThatWereAskedFor() throws {
        let path = directory.file("made")
        try HostFile.makeDirectory(path, permissions: 0o777)
        #expect(try FileStatus.of(path)?.permissions == 0o777)
        try HostFile.makeDirectory(path, permissions: 0o700)
        #expect(try FileStatus.of(path)?.permissions == 0o777, "one that is there stays")
        unsafe rmdir(path)
    }

    /// As a writer leaves it that is killed between making it and giving it its name.
    @Test func draftsOfOneFileGoAndThoseOfOthersStay() throws {
        let kept = [
            "wg0.conf", ".wg0.conf", ".wg0.confx.1a", ".wg0.conf.conf.2b", ".wg0.pending.3c",
        ]
        for name in kept + [".wg0.conf.4d", ".wg0.conf.5e"] {
            try HostFile.write([1], to: directory.file(name), replacing: false)
        }
        HostFile.removeDrafts(of: directory.file("wg0.conf"))
        #expect(Set(Host.names(in: directory.path)) == Set(kept))
        HostFile.removeDrafts(of: directory.file("no/such"))
    }

    /// In a directory of somebody else's, a link could lead root to any file.
    @Test func permissionsAreNotChangedBehindALink() throws {
        let (file, link) = (directory.file("a"), directory.file("link"))
        try HostFile.write([1], to: file, replacing: false)
        #expect(unsafe symlink(file, link) == 0)
        #expect(throws: HostError.self) { try HostFile.setPermissions(link, 0o644) }
        #expect(throws: HostError.self) { try HostFile.share(link, withGroup: getegid()) }
        #expect(try FileStatus.of(file)?.permissions == 0o600)
        try HostFile.setPermissions(file, 0o640)
        #expect(try FileStatus.of(file)?.permissions == 0o640)
        try HostFile.share(file, withGroup: getegid())
        #expect(try FileStatus.of(file)?.permissions == 0o660)
    }

    @Test(arguments: [0, 1, 4095, 4096, 4097, 100_000]) func whatWasWrittenIsRead(
        length: Int
    ) throws {
        let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        try HostFile.write(bytes, to: directory.file("a"), replacing: false)
        let file = try HostFile.read(directory.file("a"), limit: length)
        #expect(file.bytes == bytes)
        #expect(file.isRegular)
        #expect(file.permissions == 0o600)
        #expect(!file.isOpenToAll && !file.isWritableByOthers)
        #expect(directory.names == ["a"])
    }

    @Test func aLargerFileThanAllowedIsRefused() throws {
        try HostFile.write([1, 2, 3], to: directory.file("a"), replacing: false)
        let failure = #expect(throws: HostError.self) { try read(directory.file("a"), limit: 2) }
        #expect(failure?.errno == EFBIG)
        #expect(try read(directory.file("a"), limit: 3) == [1, 2, 3])
    }

    /// A pipe tells no size: its buffer grows up to the limit and not beyond.
    @Test(arguments: [(10_000, true), (10_001, false)]) func aPipeIsReadUpToTheLimit(
        length: Int, fits: Bool
    ) throws {
        let fifo = directory.file("fifo")
        #expect(unsafe mkfifo(fifo, 0o600) == 0)
        // A process of its own: opening a pipe waits for its other end.
        #expect(unsafe system("head -c \(length) /dev/zero 2>/dev/null >\(fifo) &") == 0)
        let result = Result { try HostFile.read(fifo, limit: 10_000) }
        let bytes = [UInt8](repeating: 0, count: length)
        #expect((try? result.get().bytes) == (fits ? bytes : nil))
    }

    @Test func anotherFileIsReplacedOnlyWhenAsked() throws {
        let path = directory.file("a")
        try HostFile.write([1], to: path, replacing: false)
        let failure = #expect(throws: HostError.self) {
            try HostFile.write([2], to: path, replacing: false)
        }
        #expect(failure?.errno == EEXIST)
        #expect(try read(path) == [1])
        unsafe chmod(path, 0o644)
        try HostFile.write([3], to: path, replacing: true)
        let file = try HostFile.read(path, limit: 1)
        #expect(file.bytes == [3])
        #expect(file.permissions == 0o600)
        #expect(directory.names == ["a"], "no temporary file stays")
    }

    @Test func aFailureLeavesNoTemporaryFile() {
        unsafe mkdir(directory.file("taken"), 0o700)
        #expect(throws: HostError.self) {
            try HostFile.write([1], to: directory.file("taken"), replacing: true)
        }
        #expect(directory.names == ["taken"])
        let failure = #expect(throws: HostError.self) {
            try HostFile.write([1], to: directory.file("no/such/a"), replacing: true)
        }
        #expect(failure?.description.contains("make its directory first") == true)
    }

    @Test func missingFilesAndDirectoriesSayWhatToDo() {
        let missing = #expect(throws: HostError.self) { try read(directory.file("none")) }
        #expect(missing?.errno == ENOENT)
        #expect(missing?.description.contains(directory.file("none")) == true)
        #expect(missing?.description.hasSuffix("check the name") == true)
        let folder = #expect(throws: HostError.self) { try read(directory.path) }
        #expect(folder?.errno == EISDIR)
    }

    @Test(arguments: [
        (0o600, false, false), (0o640, false, false), (0o660, false, true), (0o604, true, false),
        (0o602, true, true),
    ]) func permissionsSayWhoElseMayReadAndWrite(
        mode: UInt32, openToAll: Bool, writable: Bool
    ) throws {
        try HostFile.write([1], to: directory.file("a"), replacing: false)
        unsafe chmod(directory.file("a"), mode)
        let file = try HostFile.read(directory.file("a"), limit: 1)
        #expect(file.isOpenToAll == openToAll)
        #expect(file.isWritableByOthers == writable)
    }
}
