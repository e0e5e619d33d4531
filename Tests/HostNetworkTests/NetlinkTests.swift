// SPDX-License-Identifier: Apache-2.0
// On the host's own network only questions are asked here, never anything changed. What changes is
// tested by NetlinkNamespaceTests.
import Glibc
import Testing
import TunnelPlan
import WireGuard

@testable import HostNetwork

@Suite struct NetlinkTests {
    @Test func theLoopbackIsFoundByNameIndexAndInTheList() throws {
        let netlink = try Netlink()
        let name = try #require(InterfaceName("lo"))
        let loopback = try #require(try netlink.link(named: name))
        #expect(loopback.name == "lo")
        #expect(loopback.kind == nil)
        #expect(loopback.mtu > 0)
        #expect(try netlink.link(index: loopback.index) == loopback)
        #expect(try netlink.links().filter { $0.index == loopback.index } == [loopback])
    }

    @Test func whatIsNotThereIsNil() throws {
        let netlink = try Netlink()
        let name = try #require(InterfaceName("no-such-link"))
        #expect(try netlink.link(named: name) == nil)
        #expect(try netlink.link(index: 0) == nil)
        #expect(try netlink.link(index: UInt32.max) == nil)
        #expect(try netlink.link(index: 0x7FFF_FFFF) == nil)
        #expect(try netlink.ownRoutes(index: 0x7FFF_FFFF).isEmpty)
    }

    @Test func theKernelsRulesAreNotOurs() throws {
        let netlink = try Netlink()
        let rules = try netlink.allRules()
        // ip-rule(8): 0 local, 32766 main; the kernel's protocol is 2.
        #expect(
            rules.contains {
                $0.family == .v4 && $0.priority == 32766 && $0.table == Route.mainTable
                    && $0.protocolNumber == 2 && $0.mark == nil
            })
        #expect(
            try netlink.ownRules().allSatisfy { rule in
                rules.contains { $0.priority == rule.priority }
            })
        #expect(try netlink.usedTables().isSuperset(of: rules.map(\.table)))
    }

    @Test(arguments: NetlinkTests.kinds) func anErrnoBecomesAKind(
        errno: Int32, kind: NetworkError.Kind
    ) {
        #expect(NetworkError.Kind(errno: errno) == kind)
    }

    static let kinds: [(Int32, NetworkError.Kind)] = [
        (EPERM, .permission), (EACCES, .permission), (ENODEV, .notFound), (ESRCH, .notFound),
        (EEXIST, .exists), (EADDRINUSE, .busy), (EBUSY, .busy), (EOPNOTSUPP, .unsupported),
        (EAFNOSUPPORT, .unsupported), (EINVAL, .other),
    ]

    @Test func anErrorSaysWhatWhyAndWhatToDo() {
        let plain = NetworkError(cannot: "list the links", result: -12)
        #expect(plain.message == "cannot list the links: Cannot allocate memory")
        let explained = NetworkError(
            cannot: "add x", result: -22, explanation: "bad y", hint: "try z")
        #expect(explained.message == "cannot add x: Invalid argument (bad y); try z")
        #expect(explained.errno == 22)
        let refused = NetworkError(cannot: "add x", result: -1)
        #expect(refused.kind == .permission)
        #expect(
            refused.message
                == "cannot add x: Operation not permitted; run it as root or with CAP_NET_ADMIN")
    }
}
