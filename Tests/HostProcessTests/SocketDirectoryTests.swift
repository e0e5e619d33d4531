// SPDX-License-Identifier: Apache-2.0
import Glibc
import HostProcess
import TestSupport
import Testing

@Suite struct SocketDirectoryTests {
    let directory = TemporaryDirectory()

    private func permissions(_ path: String) -> UInt32 {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return 0 }
        return status.st_mode & 0o7777
    }

    @Test func case_C96_a_missing_directory_is_made_for_its_owner_and_group() throws {
        let path = directory.file("a/b/c.sock")
        defer {
            unsafe rmdir(directory.file("a/b"))
            unsafe rmdir(directory.file("a"))
        }
        try SocketDirectory.make(for: path, owner: User.current)
        #expect(permissions(directory.file("a")) == 0o755)
        #expect(permissions(directory.file("a/b")) == 0o750)
        // A second program of the same user finds it.
        try SocketDirectory.make(for: path, owner: User.current)
    }

    @Test func a_directory_that_is_there_is_left_alone() throws {
        unsafe chmod(directory.path, 0o711)
        try SocketDirectory.make(for: directory.file("c.sock"), owner: User.current)
        #expect(permissions(directory.path) == 0o711)
        #expect(directory.names.isEmpty)
    }
}
