// SPDX-License-Identifier: Apache-2.0
import Glibc
import Testing
import TunnelPlan
import WireGuard

@testable import HostNetwork

private let wg0 = InterfaceName("wg0")!
private let wg1 = InterfaceName("wg1")!

func dns(_ servers: [String], _ domains: [String] = []) -> DNSSettings {
    var settings = DNSSettings()
    settings.servers = servers.map { DNSServer(Array($0.utf8).span)! }
    settings.searchDomains = domains.map { SearchDomain($0)! }
    return settings
}

/// No final newline, blanks, a comment, bytes that are no text.
private let before =
    "# made by hand\nnameserver 198.51.100.53\nsearch home.arpa\noptions ndots:2  \n;x"

struct ResolvConfTests {
    private let sandbox = Sandbox()
    private var file: ResolvConfFile {
        ResolvConfFile(
            path: sandbox.at("resolv.conf"), statePath: sandbox.at("state"),
            lockPath: sandbox.at("lock"))
    }
    private let settings = dns(["10.0.0.1", "fd00::1"], ["corp.example", "~only.example"])

    private func lines() -> [String] {
        (sandbox.read("resolv.conf") ?? "").split(separator: "\n").map(String.init)
            .filter { !$0.hasPrefix("#") }
    }

    @Test func tunnelsServersReplaceTheHostsAndOptionsStay() throws {
        sandbox.write("resolv.conf", before)
        try file.apply(settings, for: wg0)
        #expect(
            lines() == [
                "nameserver 10.0.0.1", "nameserver fd00::1", "search corp.example",
                "options ndots:2  ",
            ])
        #expect(file.isApplied(settings, for: wg0))
        #expect(!file.isApplied(settings, for: wg1))
        #expect(!file.isApplied(dns(["10.0.0.1"]), for: wg0))
    }

    /// A killed writer leaves what it had half written: nothing else to take back, or before the next.
    @Test(arguments: [false, true])
    func what_a_killed_writer_had_half_written_goes(applied: Bool) throws {
        sandbox.write("resolv.conf", before)
        if applied { try file.apply(settings, for: wg0) }
        for draft in ["resolv.conf.nexusguard", "state.nexusguard"] {
            sandbox.write(draft, "half", mode: 0o400)
        }
        if applied { try file.apply(dns(["10.0.0.2"]), for: wg0) }
        try file.revert(wg0)
        #expect(sandbox.read("resolv.conf") == before)
        for draft in ["resolv.conf.nexusguard", "state.nexusguard"] {
            #expect(sandbox.read(draft) == nil)
        }
    }

    @Test func hostsServersStayWithoutOneOfTheTunnel() throws {
        sandbox.write("resolv.conf", before)
        try file.apply(dns([], ["corp.example"]), for: wg0)
        #expect(
            lines() == ["search corp.example", "nameserver 198.51.100.53", "options ndots:2  "])
    }

    @Test(arguments: [0o644, 0o600, 0o444] as [UInt32])
    func fileComesBackByteForByte(mode: UInt32) throws {
        sandbox.write("resolv.conf", before, mode: mode)
        let original = try file.entry()
        for _ in 0..<3 {
            try file.apply(settings, for: wg0)
            #expect(try file.entry() != original)
            try file.revert(wg0)
            #expect(try file.entry() == original)
            #expect(!sandbox.exists("state"))
        }
    }

    @Test(arguments: ["target", "nowhere/at/all"])
    func linkComesBackAndItsTargetIsNotTouched(target: String) throws {
        sandbox.write("target", before)
        sandbox.link("resolv.conf", to: target)
        try file.apply(settings, for: wg0)
        #expect(lines().first == "nameserver 10.0.0.1")
        #expect(sandbox.read("target") == before)
        try file.revert(wg0)
        guard case .link(target, _) = try file.entry() else {
            Issue.record("\(try file.entry())")
            return
        }
        #expect(sandbox.read("target") == before)
    }

    @Test func absentFileIsAbsentAgain() throws {
        try file.apply(settings, for: wg0)
        #expect(lines().count == 3)
        try file.revert(wg0)
        #expect(!sandbox.exists("resolv.conf"))
    }

    @Test func applyingTwiceForgetsNothing() throws {
        sandbox.write("resolv.conf", before)
        try file.apply(settings, for: wg0)
        let first = sandbox.read("resolv.conf")
        try file.apply(settings, for: wg0)
        #expect(sandbox.read("resolv.conf") == first)
        try file.apply(dns(["10.9.9.9"]), for: wg0)
        try file.revert(wg0)
        #expect(sandbox.read("resolv.conf") == before)
    }

    @Test(arguments: [[wg0, wg1], [wg1, wg0]])
    func twoTunnelsMayEndInAnyOrder(order: [InterfaceName]) throws {
        sandbox.write("resolv.conf", before)
        try file.apply(dns(["10.0.0.1"]), for: wg0)
        try file.apply(dns(["10.0.1.1"]), for: wg1)
        #expect(
            lines() == ["nameserver 10.0.1.1", "nameserver 10.0.0.1", "options ndots:2  "])
        try file.revert(order[0])
        let remaining = order[1] == wg0 ? "nameserver 10.0.0.1" : "nameserver 10.0.1.1"
        #expect(lines() == [remaining, "options ndots:2  "])
        try file.revert(order[1])
        #expect(sandbox.read("resolv.conf") == before)
    }

    @Test func newerEditOfOthersStays() throws {
        sandbox.write("resolv.conf", before)
        try file.apply(settings, for: wg0)
        sandbox.write("resolv.conf", "nameserver 203.0.113.1\n")
        #expect(!file.isApplied(settings, for: wg0))
        try file.revert(wg0)
        #expect(sandbox.read("resolv.conf") == "nameserver 203.0.113.1\n")
        #expect(!sandbox.exists("state"))
    }

    @Test func newerEditIsWhatComesBackAfterHealing() throws {
        sandbox.write("resolv.conf", before)
        try file.apply(settings, for: wg0)
        sandbox.write("resolv.conf", "nameserver 203.0.113.1\n", mode: 0o640)
        let edit = try file.entry()
        try file.apply(settings, for: wg0)
        #expect(file.isApplied(settings, for: wg0))
        try file.revert(wg0)
        #expect(try file.entry() == edit)
    }

    @Test func case_C32_nextStartPutsBackWhatACrashLeft() throws {
        sandbox.write("resolv.conf", before)
        let original = try file.entry()
        try file.apply(settings, for: wg0)
        try file.apply(dns(["10.0.1.1"]), for: wg1)
        try file.recover { $0 == wg1 }
        #expect(lines() == ["nameserver 10.0.1.1", "options ndots:2  "])
        try file.recover { _ in true }
        #expect(lines() == ["nameserver 10.0.1.1", "options ndots:2  "])
        try file.recover { _ in false }
        #expect(try file.entry() == original)
        try file.recover { _ in false }
        #expect(try file.entry() == original)
    }

    /// The state is written, then the file: a crash leaves the file of before, whose content may be
    /// the host's or what we wrote for other settings.
    @Test func crashBetweenStateAndFileLosesNothing() throws {
        sandbox.write("resolv.conf", before)
        try file.apply(settings, for: wg0)
        let first = try #require(sandbox.read("resolv.conf"))
        try file.apply(dns(["10.0.9.9"]), for: wg0)
        sandbox.write("resolv.conf", first)
        try file.apply(dns(["10.0.8.8"]), for: wg0)
        #expect(lines().first == "nameserver 10.0.8.8")
        try file.revert(wg0)
        #expect(sandbox.read("resolv.conf") == before)

        try file.apply(settings, for: wg0)
        sandbox.write("resolv.conf", before)
        try file.revert(wg0)
        #expect(sandbox.read("resolv.conf") == before)
    }

    @Test func revertWithoutApplyTouchesNothing() throws {
        sandbox.write("resolv.conf", before)
        try file.revert(wg0)
        try file.recover { _ in false }
        #expect(sandbox.read("resolv.conf") == before)
        #expect(!sandbox.exists("lock"))
    }

    @Test func damagedStateIsNamedAndNothingIsWritten() throws {
        sandbox.write("resolv.conf", before)
        try file.apply(settings, for: wg0)
        let ours = sandbox.read("resolv.conf")
        sandbox.write("state", "nexusguard resolv.conf 1\nfile 420 0 0 9999\nx\n")
        let error = #expect(throws: NetworkError.self) { try file.revert(wg0) }
        #expect(error?.message.contains(sandbox.at("state")) == true)
        #expect(sandbox.read("resolv.conf") == ours)
    }

    @Test func lockOfOthersIsWaitedForWithABound() throws {
        let held = try FileLock(sandbox.at("lock"))
        let error = #expect(throws: NetworkError.self) { try file.apply(settings, for: wg0) }
        #expect(error?.kind == .busy)
        held.release()
        try file.apply(settings, for: wg0)
    }
}

struct ResolvConfStateTests {
    private func states() -> [ResolvConfState] {
        let entries: [ResolvConfEntry] = [
            .absent, .file(bytes: [], mode: 0o600, user: 1, group: 2),
            .file(bytes: [0, 10, 255, 10, 10], mode: 0o644, user: 0, group: 0),
            .link(target: "../run/a b", bytes: Array("end\n".utf8)),
        ]
        return entries.map { entry in
            var state = ResolvConfState(original: entry)
            state.set(dns(["10.0.0.1", "fe80::1%wg0"], ["~.", "a.example"]), for: wg0)
            state.set(DNSSettings(), for: wg1)
            state.willWrite([1, 10, 2])
            state.willWrite([])
            return state
        }
    }

    @Test func stateIsReadAsWritten() {
        for state in states() { #expect(ResolvConfState(state.serialised) == state) }
    }

    @Test func everyCutIsRefused() {
        for state in states() {
            let bytes = state.serialised
            for length in 0..<bytes.count {
                #expect(ResolvConfState(Array(bytes[..<length])) == nil)
            }
        }
    }

    @Test func onlyTheTwoLastContentsAreOurs() {
        var state = ResolvConfState(original: .absent)
        for content in [[1], [2], [2], [3]] as [[UInt8]] { state.willWrite(content) }
        let isOurs = [1, 2, 3].map { (byte: UInt8) in
            state.isOurs(.file(bytes: [byte], mode: 0o644, user: 0, group: 0))
        }
        #expect(isOurs == [false, true, true])
        #expect(!state.isOurs(.link(target: "x", bytes: [3])))
    }
}
