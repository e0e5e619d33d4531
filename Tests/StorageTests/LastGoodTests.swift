// SPDX-License-Identifier: Apache-2.0
import HostProcess
import Storage
import TestSupport
import Testing

@Suite struct LastGoodTests {
    let directory = TemporaryDirectory()

    @Test func whatWasWrittenLastIsRead() throws {
        let store = LastGood(try directory.state())
        #expect(try store.read("config") == nil)
        for number in 1...5 {
            try store.write("config", [UInt8(number)])
            let document = try store.read("config")
            #expect(document?.bytes == [UInt8(number)])
            #expect(document?.version == UInt64(number))
            #expect(document?.remark == nil)
        }
        #expect(directory.names == ["config.4", "config.5"])
        #expect(permissions(directory.file("config.5")) == 0o600)
        try store.remove("config")
        #expect(try store.read("config") == nil)
        #expect(directory.names == [])
    }

    @Test func aDamagedVersionIsPassedOverAndSaid() throws {
        let store = LastGood(try directory.state())
        try store.write("config", [1])
        try store.write("config", [2])
        try directory.overwrite("config.2", [9, 9])
        let document = try store.read("config")
        #expect(document?.bytes == [1])
        #expect(document?.remark?.contains("config.2 is damaged; using version 1") == true)
        try store.write("config", [3])
        #expect(try store.read("config")?.bytes == [3])
        #expect(directory.names == ["config.1", "config.3"])
    }

    @Test func whereAllAreDamagedItIsAnErrorAndTheFilesStay() throws {
        let store = LastGood(try directory.state())
        try store.write("config", [1])
        try store.write("config", [2])
        for name in directory.names { try directory.overwrite(name, [0]) }
        let error = failure { () throws(StorageError) in _ = try store.read("config") }
        #expect(error?.kind == .damaged)
        #expect(error?.description.contains("keep the files") == true)
        #expect(directory.names == ["config.1", "config.2"])
    }

    @Test func aDirectoryThatIsGoneIsNoEmptyOne() throws {
        let state = try directory.state().directory("inner")
        let store = LastGood(state)
        try store.write("config", [1])
        try HostFile.rename(state.path, to: directory.file("away"))
        #expect(failure { () throws(StorageError) in _ = try store.read("config") } != nil)
        #expect(failure { () throws(StorageError) in try store.write("config", [2]) } != nil)
    }

    @Test func documentsDoNotMeetEachOther() throws {
        let store = LastGood(try directory.state())
        try store.write("config", [1])
        try store.write("config-old", [2])
        #expect(try store.read("config")?.bytes == [1])
        #expect(try store.read("config-old")?.bytes == [2])
    }
}
