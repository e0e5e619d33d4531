// SPDX-License-Identifier: Apache-2.0
import Glibc
import HostNetwork
import HostProcess
import Testing
import TunnelPlan

@testable import LiveHost

/// A directory that stands for /proc/sys and one for the records, removed at the end.
private final class Sandbox: Sendable {
    let path: String
    private static let directories = [
        "net", "net/ipv4", "net/ipv4/conf", "net/ipv4/conf/all", "run",
    ]

    init(_ value: UInt32) throws {
        var template = Array("/tmp/nexusguard-settings.XXXXXX".utf8CString)
        path = unsafe template.withUnsafeMutableBufferPointer { buffer in
            unsafe String(cString: mkdtemp(buffer.baseAddress!))
        }
        for directory in Self.directories {
            try HostFile.makeDirectory("\(path)/\(directory)", permissions: 0o755)
        }
        try write(value)
    }

    deinit {
        for directory in Self.directories.reversed() {
            for name in Host.names(in: "\(path)/\(directory)") {
                unsafe unlink("\(path)/\(directory)/\(name)")
            }
            unsafe rmdir("\(path)/\(directory)")
        }
        unsafe rmdir(path)
    }

    private var file: String { "\(path)/net/ipv4/conf/all/src_valid_mark" }
    var records: [String] { Host.names(in: "\(path)/run").filter { $0 != "settings.lock" } }

    func write(_ value: UInt32) throws {
        try HostFile.write(Array("\(value)\n".utf8), to: file, replacing: true)
    }

    func value() throws -> String {
        String(decoding: try HostFile.read(file, limit: 64).bytes, as: UTF8.self)
    }

    /// As a keeper that has just started sees it.
    func record() -> SettingRecord {
        SettingRecord(directory: "\(path)/run", settings: HostSettings(root: path))
    }
}

private let wg0 = InterfaceName("wg0")!
private let wg1 = InterfaceName("wg1")!

@Suite struct SettingRecordTests {
    @Test(arguments: [0, 1, 2] as [UInt32]) func what_was_there_comes_back(before: UInt32) throws {
        let sandbox = try Sandbox(before)
        #expect(try sandbox.record().value(of: .sourceValidMark, for: wg0) == nil)
        try sandbox.record().set(.sourceValidMark, 1, for: wg0)
        #expect(try sandbox.value() == "1\n")
        #expect(try sandbox.record().value(of: .sourceValidMark, for: wg0) == 1)
        try sandbox.record().restore(.sourceValidMark, for: wg0)
        #expect(try sandbox.value() == "\(before)\n")
        #expect(sandbox.records.isEmpty)
    }

    @Test(arguments: [[wg0, wg1], [wg1, wg0]]) func the_last_tunnel_that_goes_puts_it_back(
        order: [InterfaceName]
    ) throws {
        let sandbox = try Sandbox(0)
        for name in [wg0, wg1] { try sandbox.record().set(.sourceValidMark, 1, for: name) }
        try sandbox.record().restore(.sourceValidMark, for: order[0])
        #expect(try sandbox.value() == "1\n")
        #expect(try sandbox.record().value(of: .sourceValidMark, for: order[0]) == nil)
        #expect(try sandbox.record().value(of: .sourceValidMark, for: order[1]) == 1)
        try sandbox.record().restore(.sourceValidMark, for: order[1])
        #expect(try sandbox.value() == "0\n")
    }

    @Test func setting_it_again_forgets_nothing() throws {
        let sandbox = try Sandbox(0)
        for _ in 0..<3 { try sandbox.record().set(.sourceValidMark, 1, for: wg0) }
        // Somebody set it back: seen, and mended.
        try sandbox.write(0)
        #expect(try sandbox.record().value(of: .sourceValidMark, for: wg0) == 0)
        try sandbox.record().set(.sourceValidMark, 1, for: wg0)
        try sandbox.record().restore(.sourceValidMark, for: wg0)
        #expect(try sandbox.value() == "0\n")
    }

    @Test func a_tunnel_that_died_holds_nothing() throws {
        let sandbox = try Sandbox(0)
        for name in [wg0, wg1] { try sandbox.record().set(.sourceValidMark, 1, for: name) }
        // Without knowing the links, wg1 may live.
        try sandbox.record().restore(.sourceValidMark, for: wg0)
        #expect(try sandbox.value() == "1\n")
        try sandbox.record().set(.sourceValidMark, 1, for: wg0, links: ["wg0", "lo"])
        try sandbox.record().restore(.sourceValidMark, for: wg0, links: ["lo"])
        #expect(try sandbox.value() == "0\n")
        #expect(sandbox.records.isEmpty)
    }

    @Test func the_record_of_the_dead_is_believed_where_the_setting_is_as_they_left_it() throws {
        let sandbox = try Sandbox(0)
        try sandbox.record().set(.sourceValidMark, 1, for: wg1)
        try sandbox.record().set(.sourceValidMark, 1, for: wg0, links: ["wg0"])
        try sandbox.record().restore(.sourceValidMark, for: wg0, links: ["wg0"])
        #expect(try sandbox.value() == "0\n")
        // Another namespace, in which it was 2, has got the number of the old one.
        try sandbox.record().set(.sourceValidMark, 1, for: wg1)
        try sandbox.write(2)
        try sandbox.record().set(.sourceValidMark, 1, for: wg0, links: ["wg0"])
        try sandbox.record().restore(.sourceValidMark, for: wg0, links: ["wg0"])
        #expect(try sandbox.value() == "2\n")
    }

    @Test func what_others_set_since_stays() throws {
        let sandbox = try Sandbox(0)
        try sandbox.record().set(.sourceValidMark, 1, for: wg0)
        try sandbox.write(2)
        try sandbox.record().restore(.sourceValidMark, for: wg0)
        #expect(try sandbox.value() == "2\n")
        #expect(sandbox.records.isEmpty)
    }

    @Test func who_never_set_it_restores_nothing() throws {
        let sandbox = try Sandbox(1)
        try sandbox.record().restore(.sourceValidMark, for: wg0)
        #expect(try sandbox.value() == "1\n")
        try sandbox.record().set(.sourceValidMark, 1, for: wg1)
        try sandbox.record().restore(.sourceValidMark, for: wg0)
        #expect(try sandbox.record().value(of: .sourceValidMark, for: wg1) == 1)
    }

    /// Each keeper knows only its own tunnel. Without taking turns one that reads between another's
    /// two writes takes the tunnels' value for the host's, or writes over the other's name.
    @Test func keepers_at_the_same_time_take_turns() async throws {
        let sandbox = try Sandbox(0)
        let names = try (0..<8).map { try #require(InterfaceName("wg\($0)")) }
        for _ in 0..<5 {
            await atOnce(names) { name in
                try sandbox.record().set(.sourceValidMark, 1, for: name)
            }
            #expect(try sandbox.value() == "1\n")
            for name in names {
                #expect(try sandbox.record().value(of: .sourceValidMark, for: name) == 1)
            }
            await atOnce(names) { name in try sandbox.record().restore(.sourceValidMark, for: name)
            }
            #expect(try sandbox.value() == "0\n")
            #expect(sandbox.records.isEmpty)
        }
    }

    private func atOnce(
        _ names: [InterfaceName], _ body: @escaping @Sendable (InterfaceName) throws -> Void
    ) async {
        await withTaskGroup(of: Void.self) { group in
            for name in names {
                group.addTask {
                    do { try body(name) } catch { Testing.Issue.record(error) }
                }
            }
        }
    }
}
