// SPDX-License-Identifier: Apache-2.0
import Testing
import TunnelPlan
import WireGuard

@testable import HostNetwork

private let wg0 = InterfaceName("wg0")!

struct ResolverManagerTests {
    private func choose(
        resolved: Bool = false, link: String? = nil, _ content: String = "", nss: String = "",
        resolvconf: String? = nil
    ) -> ResolverManager {
        let bytes = Array(content.utf8)
        return Resolver.choose(
            resolvedRuns: resolved,
            entry: link.map { .link(target: $0, bytes: bytes) }
                ?? .file(bytes: bytes, mode: 0o644, user: 0, group: 0),
            nameServiceSwitch: Array(nss.utf8), resolvconf: resolvconf, path: "F")
    }

    @Test func resolvedCountsWhereLookupsLeadToIt() {
        let stub = "../run/systemd/resolve/stub-resolv.conf"
        #expect(choose(resolved: true, link: stub) == .systemdResolved)
        #expect(choose(resolved: true, "options x\nnameserver 127.0.0.53\n") == .systemdResolved)
        #expect(choose(resolved: true, "nameserver\t127.0.0.54") == .systemdResolved)
        #expect(
            choose(resolved: true, nss: "passwd: files\nhosts: files resolve [!UNAVAIL=return] dns")
                == .systemdResolved)
        // It runs, but is not asked.
        #expect(choose(resolved: true, "nameserver 192.0.2.53\n") == .file("F"))
        #expect(choose(resolved: true, "nameserver 127.0.0.53.1\n") == .file("F"))
        #expect(choose(resolved: true, "#nameserver 127.0.0.53\n") == .file("F"))
        #expect(choose(resolved: true, nss: "hosts: files dns") == .file("F"))
        // It is asked, but does not run.
        #expect(choose(link: stub) == .file("F"))
    }

    @Test func resolvconfComesBeforeTheFile() {
        #expect(choose(resolvconf: "/sbin/resolvconf") == .resolvconf("/sbin/resolvconf"))
        #expect(
            choose(resolved: true, "nameserver 192.0.2.53\n", resolvconf: "/sbin/resolvconf")
                == .resolvconf("/sbin/resolvconf"))
        #expect(
            choose(resolved: true, "nameserver 127.0.0.53\n", resolvconf: "/sbin/resolvconf")
                == .systemdResolved)
    }

    @Test func standInOfSystemdIsNoResolvconf() {
        let sandbox = Sandbox()
        sandbox.write("resolvectl", "#!/bin/sh\n", mode: 0o755)
        sandbox.link("resolvconf", to: "resolvectl")
        sandbox.write("real", "#!/bin/sh\n", mode: 0o755)
        sandbox.write("text", "#!/bin/sh\n", mode: 0o644)
        let find = { (names: [String]) in ResolvconfProgram.find(names.map(sandbox.at))?.path }
        #expect(find(["absent", "resolvconf"]) == nil)
        #expect(find(["resolvconf", "real"]) == sandbox.at("real"))
        #expect(find(["absent", "text"]) == nil)
    }
}

struct ResolvedLinkTests {
    private func domains(_ settings: DNSSettings) -> [String] {
        ResolvedLink(settings).domains.map { ($0.routesOnly ? "~" : "") + $0.name }
    }

    @Test func allNamesGoToTheTunnelUnlessItRoutesSome() {
        #expect(domains(dns(["10.0.0.1"])) == ["~."])
        #expect(domains(dns(["10.0.0.1"], ["a.example"])) == ["a.example", "~."])
        #expect(domains(dns(["10.0.0.1"], ["~a.example"])) == ["~a.example"])
        #expect(domains(dns(["10.0.0.1"], ["~.", "b.example"])) == ["~.", "b.example"])
        #expect(domains(dns([], ["a.example"])) == ["a.example"])
    }
}

struct ResolverTests {
    private let sandbox = Sandbox()
    private let settings = dns(["10.0.0.1"], ["corp.example"])

    private func resolver(resolvconf: String? = nil) -> Resolver {
        var paths = Resolver.Paths()
        paths.resolvConf = sandbox.at("resolv.conf")
        paths.nameServiceSwitch = sandbox.at("nsswitch.conf")
        paths.resolvconfPrograms = resolvconf.map { [$0] } ?? []
        paths.interfaceOrder = sandbox.at("interface-order")
        paths.busAddress = "unix:path=\(sandbox.at("no-bus"))"
        paths.state = sandbox.at("state")
        paths.run = sandbox.at("run")
        return Resolver(paths)
    }

    @Test func fileIsUsedWhereNobodyManagesIt() throws {
        sandbox.write("resolv.conf", "nameserver 198.51.100.53\n")
        let resolver = resolver()
        #expect(resolver.current(wg0, index: 5) == nil)
        #expect(
            try resolver.apply(settings, for: wg0, index: 5)
                == .file(sandbox.at("resolv.conf")))
        #expect(resolver.current(wg0, index: 5) == settings)
        #expect(resolver.isApplied(settings, for: wg0, index: 5))
        sandbox.write("resolv.conf", "nameserver 203.0.113.1\n")
        #expect(resolver.current(wg0, index: 5) == nil)
        try resolver.apply(settings, for: wg0, index: 5)
        #expect(resolver.current(wg0, index: 5) == settings)
        try resolver.revert(wg0, index: 5)
        #expect(sandbox.read("resolv.conf") == "nameserver 203.0.113.1\n")
        #expect(!sandbox.exists("run/wg0.dns"))
    }

    /// Keeps records as resolvconf does, in files beside it.
    private let program = """
        #!/bin/sh
        cd "${0%/*}" || exit 1
        echo "$@" >>calls
        case $1 in
        -a) cat >"record-$2" ;;
        -d) rm -f "record-$2" ;;
        -i) for record in record-*; do printf '%s ' "${record#record-}"; done ;;
        esac
        """

    @Test func case_C33_resolvconfIsToldWhereItIsInstalled() throws {
        sandbox.write("resolv.conf", "nameserver 198.51.100.53\n")
        sandbox.write("resolvconf", program, mode: 0o755)
        let resolver = resolver(resolvconf: sandbox.at("resolvconf"))
        #expect(
            try resolver.apply(settings, for: wg0, index: 5)
                == .resolvconf(sandbox.at("resolvconf")))
        #expect(sandbox.read("record-wg0.wg") == "nameserver 10.0.0.1\nsearch corp.example\n")
        #expect(resolver.current(wg0, index: 5) == settings)
        sandbox.remove("record-wg0.wg")
        #expect(resolver.current(wg0, index: 5) == nil)
        try resolver.apply(settings, for: wg0, index: 5)
        try resolver.revert(wg0, index: nil)
        #expect(!sandbox.exists("record-wg0.wg"))
        #expect(sandbox.read("resolv.conf") == "nameserver 198.51.100.53\n")
        #expect(sandbox.read("calls")?.hasPrefix("-a wg0.wg -m 0 -x\n-i\n") == true)
    }

    @Test func debiansResolvconfAsksOursFirst() throws {
        sandbox.write("resolvconf", program, mode: 0o755)
        sandbox.write("interface-order", "lo*\ntun*\neth*\n*\n")
        let resolver = resolver(resolvconf: sandbox.at("resolvconf"))
        try resolver.apply(settings, for: wg0, index: 5)
        #expect(sandbox.exists("record-tun.wg0.wg"))
        #expect(resolver.current(wg0, index: 5) == settings)
        try resolver.revert(wg0, index: 5)
        #expect(!sandbox.exists("record-tun.wg0.wg"))
    }

    @Test func case_C33_failureSaysWhyAndLeavesTheHostAlone() throws {
        sandbox.write("resolv.conf", "nameserver 198.51.100.53\n")
        sandbox.write("resolvconf", "#!/bin/sh\necho no space >&2\nexit 7\n", mode: 0o755)
        let resolver = resolver(resolvconf: sandbox.at("resolvconf"))
        let error = #expect(throws: NetworkError.self) {
            try resolver.apply(settings, for: wg0, index: 5)
        }
        #expect(error?.message.contains("failed with 7: no space") == true)
        #expect(resolver.current(wg0, index: 5) == nil)
        #expect(sandbox.read("resolv.conf") == "nameserver 198.51.100.53\n")
    }

    @Test func changeOfManagerTakesTheOldOneBack() throws {
        sandbox.write("resolv.conf", "nameserver 198.51.100.53\n")
        try resolver().apply(settings, for: wg0, index: 5)
        sandbox.write("resolvconf", program, mode: 0o755)
        let later = resolver(resolvconf: sandbox.at("resolvconf"))
        try later.apply(settings, for: wg0, index: 5)
        #expect(sandbox.read("resolv.conf") == "nameserver 198.51.100.53\n")
        #expect(sandbox.exists("record-wg0.wg"))
        try later.revert(wg0, index: 5)
        #expect(!sandbox.exists("record-wg0.wg"))
    }

    @Test func case_C32_recordIsGoneAfterARestartAndTheFileComesBackAllTheSame() throws {
        sandbox.write("resolv.conf", "nameserver 198.51.100.53\n")
        try resolver().apply(settings, for: wg0, index: 5)
        sandbox.remove("run/wg0.dns")
        try resolver().recover { _ in false }
        #expect(sandbox.read("resolv.conf") == "nameserver 198.51.100.53\n")
    }

    @Test func programThatEndsWithoutReadingIsNoHarm() throws {
        let long = dns([], (0..<2000).map { "domain\($0).example" })
        sandbox.write("resolvconf", "#!/bin/sh\nexit 0\n", mode: 0o755)
        let program = ResolvconfProgram(path: sandbox.at("resolvconf"))
        for _ in 0..<20 { try program.add(long, for: wg0) }
    }
}
