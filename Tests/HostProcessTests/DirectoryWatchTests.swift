// SPDX-License-Identifier: Apache-2.0
import Foundation
import HostProcess
import Testing

@Suite final class DirectoryWatchTests {
    private let path: String

    init() {
        var template = Array("/tmp/directory-watch.XXXXXX".utf8CString)
        path = unsafe String(cString: mkdtemp(&template))
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    private func write(_ name: String) throws {
        try Data("x".utf8).write(to: URL(filePath: "\(path)/\(name)"))
    }

    /// inotify queues an event before the call that caused it returns.
    private func isReadable(_ watch: DirectoryWatch) -> Bool {
        var poller = Poller()
        let entry = poller.add(watch.descriptor)
        poller.wait(milliseconds: 0)
        return poller.isReadable(entry)
    }

    @Test func only_the_named_files_are_news() throws {
        let watch = try #require(DirectoryWatch(path, names: ["log.db", "log.db-wal"]))
        #expect(!isReadable(watch))
        #expect(!watch.hasNews())
        for name in ["log.db-shm", "log.follow", "log.db-journal", "log"] { try write(name) }
        #expect(!watch.hasNews())
        for name in ["log.db", "log.db-wal"] {
            try write(name)
            #expect(isReadable(watch))
            #expect(watch.hasNews())
            #expect(!isReadable(watch))
            #expect(!watch.hasNews())
        }
        try write("other")
        try FileManager.default.removeItem(atPath: "\(path)/log.db")
        try FileManager.default.moveItem(
            atPath: "\(path)/other", toPath: "\(path)/log.db")
        #expect(watch.hasNews())
    }

    @Test func more_events_than_one_read_holds() throws {
        let watch = try #require(DirectoryWatch(path, names: ["last"]))
        let name = String(repeating: "n", count: 200)
        for index in 0..<60 { try write("\(name)\(index)") }
        try write("last")
        #expect(watch.hasNews())
        #expect(!watch.hasNews())
    }

    @Test func what_is_not_there_cannot_be_watched() {
        #expect(DirectoryWatch("\(path)/none", names: ["x"]) == nil)
    }
}
