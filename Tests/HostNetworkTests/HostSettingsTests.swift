// SPDX-License-Identifier: Apache-2.0
import Glibc
import Testing
import TunnelPlan

@testable import HostNetwork

struct HostSettingsTests {
    private let sandbox = Sandbox()
    private let name = "net/ipv4/conf/all/src_valid_mark"

    private func prepare(_ text: String, mode: UInt32 = 0o644) -> HostSettings {
        let parts = name.split(separator: "/").dropLast()
        for count in 1...parts.count {
            sandbox.makeDirectory(parts.prefix(count).joined(separator: "/"))
        }
        sandbox.write(name, text, mode: mode)
        return HostSettings(root: sandbox.path)
    }

    private func clean() {
        sandbox.remove(name)
        var parts = name.split(separator: "/").dropLast()
        while !parts.isEmpty {
            unsafe rmdir(sandbox.at(parts.joined(separator: "/")))
            parts = parts.dropLast()
        }
    }

    @Test func writesOnlyWhatDiffers() throws {
        let settings = prepare("0\n")
        defer { clean() }
        #expect(try settings.read(.sourceValidMark) == 0)
        #expect(try settings.write(.sourceValidMark, 1))
        #expect(sandbox.read(name) == "1\n")
        // Blanks stand for a value that is there already: a second write would take them away.
        sandbox.write(name, "1\t\n")
        #expect(try !settings.write(.sourceValidMark, 1))
        #expect(sandbox.read(name) == "1\t\n")
    }

    @Test func missingSettingIsUnsupported() {
        let settings = HostSettings(root: sandbox.path)
        let error = #expect(throws: NetworkError.self) { try settings.read(.sourceValidMark) }
        #expect(error?.kind == .unsupported)
        #expect(error?.errno == ENOENT)
        #expect(throws: NetworkError.self) { try settings.write(.sourceValidMark, 1) }
    }

    @Test func nonsenseIsNoNumber() {
        for text in ["", "\n", "yes\n", "-1\n"] {
            let settings = prepare(text)
            defer { clean() }
            #expect(throws: NetworkError.self) { try settings.read(.sourceValidMark) }
        }
    }
}
