// SPDX-License-Identifier: Apache-2.0
import HostProcess
import Testing

@testable import Storage

/// Of every write of a document, every moment at which power may fail.
@Suite struct DocumentVersionTests {
    typealias Content = [String: [UInt8]]

    private func newest(_ content: Content) throws -> [UInt8]? {
        try DocumentVersions.newest(of: "config", among: Array(content.keys)) {
            (file) throws(StorageError) in content[file]!
        }.found?.bytes
    }

    private func steps(_ bytes: [UInt8], on content: Content) throws -> [FileOperation] {
        let names = Array(content.keys)
        let search = try DocumentVersions.newest(of: "config", among: names) {
            (file) throws(StorageError) in content[file]!
        }
        return DocumentVersions.steps(
            "config", bytes, among: names, previous: search.found?.version)
    }

    /// What is found after a failure at each moment, with whether the write had returned.
    private func failures(
        _ steps: [FileOperation], on content: Content
    ) throws -> [(content: Content, isComplete: Bool)] {
        var disk = ModelDisk(content)
        var results = disk.afterFailure().map { (content: $0, isComplete: false) }
        for (index, step) in steps.enumerated() {
            try disk.perform(step)
            results += disk.afterFailure().map { ($0, isComplete: index == steps.count - 1) }
        }
        return results
    }

    /// Directories that a write may find.
    private func beginnings() throws -> [Content] {
        var disk = ModelDisk()
        var results: [Content] = [[:]]
        for number in 1...3 {
            for step in try steps([UInt8](repeating: UInt8(number), count: 9), on: disk.content) {
                try disk.perform(step)
            }
            results.append(disk.content)
        }
        // A draft that a process left, a version with damage, and both.
        for content in results.dropFirst() {
            results.append(content.merging([".config.new": [1, 2, 3]]) { $1 })
            let last = content.keys.max { $0 < $1 }!
            results.append(content.merging([last: [0]]) { $1 })
        }
        return results
    }

    @Test func aFailureOfPowerLeavesTheOldOrTheNewVersion() throws {
        let new: [UInt8] = Array("new bytes".utf8)
        var count = 0
        for beginning in try beginnings() {
            let old = try newest(beginning)
            for (content, isComplete) in try failures(steps(new, on: beginning), on: beginning) {
                count += 1
                let found = try newest(content)
                #expect(found == new || (!isComplete && found == old))
                // And the next write works from there.
                var disk = ModelDisk(content)
                for step in try steps([7], on: content) { try disk.perform(step) }
                #expect(try newest(disk.content) == [7])
            }
        }
        #expect(count > 200)
    }

    /// The version before the one that was written survives, for the day on which that is damaged.
    @Test func theVersionBeforeStaysBesideTheNewOne() throws {
        for beginning in try beginnings() {
            guard let old = try newest(beginning) else { continue }
            var disk = ModelDisk(beginning)
            for step in try steps([7], on: beginning) { try disk.perform(step) }
            var content = disk.content
            let last = DocumentVersions.numbers(of: "config", among: Array(content.keys))[0]
            content[DocumentVersions.file("config", last)] = [0]
            #expect(try newest(content) == old)
            #expect(content.count == 2)
        }
    }

    /// A secret has no versions: it is replaced.
    @Test func aFailureOfPowerLeavesTheOldOrTheNewSecret() throws {
        let old: [UInt8] = [1, 2, 3, 4]
        let new: [UInt8] = [5, 6, 7, 8]
        let steps = FileOperation.replacement(of: "a", with: new, draft: ".a.new")
        for beginning in [["a": old], ["a": old, ".a.new": [9]]] {
            for (content, isComplete) in try failures(steps, on: beginning) {
                #expect(content["a"] == new || (!isComplete && content["a"] == old))
            }
        }
        let fewer = steps.filter { $0 != .synchronise(".a.new") }
        #expect(try failures(fewer, on: ["a": old]).contains { $0.content["a"] == [] })
    }

    /// The model would notice: without synchronising, a write that returned may be lost.
    @Test func everyStepIsNeeded() throws {
        let beginning = try beginnings()[1]
        let steps = try steps([7], on: beginning)
        for (index, step) in steps.enumerated() {
            switch step {
            case .synchronise, .synchroniseDirectory: break
            default: continue
            }
            var fewer = steps
            fewer.remove(at: index)
            let isLost = try failures(fewer, on: beginning).contains {
                try $0.isComplete && newest($0.content) != [7]
            }
            #expect(isLost, "without \(step)")
        }
    }

    @Test(arguments: [[], [0], Array("a\n\nb".utf8), [UInt8](repeating: 0x0A, count: 10)])
    func aVersionIsReadOnlyUnderItsNameAndNumberAndWhole(bytes: [UInt8]) {
        let encoded = DocumentVersions.encoded("config", 12, bytes)
        #expect(DocumentVersions.decoded("config", 12, encoded) == bytes)
        #expect(DocumentVersions.decoded("config", 13, encoded) == nil)
        #expect(DocumentVersions.decoded("forwards", 12, encoded) == nil)
        #expect(DocumentVersions.decoded("config", 12, encoded + [0]) == nil)
        for index in encoded.indices {
            var damaged = encoded
            damaged[index] ^= 1
            #expect(DocumentVersions.decoded("config", 12, damaged) == nil)
            #expect(DocumentVersions.decoded("config", 12, Array(encoded[..<index])) == nil)
        }
    }

    @Test func otherNamesAreNoVersions() {
        let names = [
            "config.2", "config.10", "config.", "config.01", "config.0", "config.-1", "config.x",
            "config.3.bak", ".config.new", "config", "configs.4", "config.99999999999999999999",
        ]
        #expect(DocumentVersions.numbers(of: "config", among: names) == [10, 2])
    }
}
