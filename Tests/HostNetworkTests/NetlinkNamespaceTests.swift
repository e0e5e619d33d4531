// SPDX-License-Identifier: Apache-2.0
// Changes, made in a network namespace of the test process's own: Tests/netns/netlink.sh runs these
// (`swift test` alone skips them). The script has made what is used here:
//
//   tnl0  the tunnel's link, a TUN device (stands for one of kind wireguard, which not every kernel
//         has), down, MTU 1420, with 10.9.9.9/32 from somebody else
//   out0 ═ out1  a veth pair, up; out0 has 192.0.2.1/24 and 2001:db8::1/64 and the default routes
//         by 192.0.2.254 and 2001:db8::fe
//
// Each test leaves the namespace as it found it.
import Glibc
import Testing
import TunnelPlan
import WireGuard

@testable import HostNetwork

private let isPrepared = unsafe getenv("NEXUSGUARD_TEST_NAMESPACE") != nil

private func name(_ text: String) throws -> InterfaceName { try #require(InterfaceName(text)) }
private func prefix(_ text: String) throws -> Prefix { try #require(Prefix(text)) }
private func address(_ text: String) throws -> InterfaceAddress {
    let bytes = [UInt8](text.utf8)
    let address = InterfaceAddress(bytes.span)
    return try #require(address)
}
private func ip(_ text: String) throws -> IPAddress { try #require(IPAddress(text)) }

extension NetlinkMonitor {
    /// All events of now.
    fileprivate func drain() -> [NetlinkEvent] {
        var events: [NetlinkEvent] = []
        while let event = next() { events.append(event) }
        return events
    }
}

@Suite(.serialized, .enabled(if: isPrepared, "needs Tests/netns/netlink.sh"))
struct NetlinkNamespaceTests {
    let tunnel: UInt32
    let outside: UInt32

    init() throws {
        let netlink = try Netlink()
        tunnel = try #require(try netlink.link(named: name("tnl0"))).index
        outside = try #require(try netlink.link(named: name("out0"))).index
    }

    /// Up for the test and down again after it, by which the kernel takes all IPv4 routes away.
    private func withTunnelUp(_ body: (borrowing Netlink) throws -> Void) throws {
        let netlink = try Netlink()
        try netlink.setUp(index: tunnel, true)
        defer { try? netlink.setUp(index: tunnel, false) }
        try body(netlink)
    }

    // MARK: links

    @Test func aLinkIsMadeChangedAndRemoved() throws {
        let netlink = try Netlink()
        let index = try netlink.createLink(name("made0"), kind: .veth)
        let made = try #require(try netlink.link(index: index))
        #expect(made.kind == "veth" && !made.isUp && made.name == "made0" && made.alias == nil)

        try netlink.setMTU(index: index, 1380)
        try netlink.setUp(index: index, true)
        try netlink.setAlias(index: index, "nexusguard: made0")
        let changed = try #require(try netlink.link(index: index))
        #expect(changed.mtu == 1380 && changed.isUp && changed.alias == "nexusguard: made0")
        try netlink.setUp(index: index, false)
        try netlink.setAlias(index: index, "")
        try netlink.rename(index: index, to: name("made1"))
        #expect(try netlink.link(named: name("made0")) == nil)
        let renamed = try #require(try netlink.link(named: name("made1")))
        #expect(renamed.index == index && !renamed.isUp && renamed.alias == nil)

        try netlink.removeLink(index: index)
        #expect(try netlink.link(index: index) == nil)
        try netlink.removeLink(index: index)
    }

    @Test func aTakenNameAndAnUnknownKindAreToldApart() throws {
        let netlink = try Netlink()
        let taken = #expect(throws: NetworkError.self) {
            try netlink.createLink(name("tnl0"), kind: .veth)
        }
        #expect(taken?.kind == .exists)
        #expect(taken?.message.contains("tnl0") == true)
        #expect(try netlink.link(named: name("tnl0"))?.index == tunnel)
    }

    @Test func anImpossibleMTUIsExplainedByTheKernel() throws {
        let netlink = try Netlink()
        let error = #expect(throws: NetworkError.self) {
            try netlink.setMTU(index: tunnel, 1)
        }
        #expect(error?.errno == EINVAL)
        // The extended acknowledgement, in the kernel's words.
        #expect(error?.message.contains("mtu") == true)
    }

    // MARK: addresses

    @Test func addressesAreOursAndAddingTwiceIsFine() throws {
        try withTunnelUp { netlink in
            let mine = try Set(
                ["10.9.0.1/24", "10.9.0.2/24", "10.8.0.1/32", "fd09::1/64"].map(address))
            for address in mine { try netlink.addAddress(address, index: tunnel) }
            for address in mine { try netlink.addAddress(address, index: tunnel) }
            #expect(try netlink.addresses(index: tunnel) == mine)
            // What somebody else gave the link is there but not ours.
            let all = try netlink.allAddresses(index: tunnel)
            #expect(try all.contains { try $0.address == address("10.9.9.9/32") })
            for address in mine { try netlink.removeAddress(address, index: tunnel) }
            for address in mine { try netlink.removeAddress(address, index: tunnel) }
            #expect(try netlink.addresses(index: tunnel).isEmpty)
            #expect(
                try netlink.allAddresses(index: tunnel).count == all.count - mine.count)
        }
    }

    @Test func anAddressOfOthersIsNotOurs() throws {
        let netlink = try Netlink()
        #expect(try netlink.addresses(index: outside).isEmpty)
        let all = try netlink.allAddresses(index: outside).map(\.address)
        #expect(try all.contains(address("192.0.2.1/24")))
        #expect(try all.contains(address("2001:db8::1/64")))
    }

    // MARK: routes

    private func routes() throws -> Set<Route> {
        try [
            Route(prefix("10.20.0.0/16")), Route(prefix("10.20.1.0/24"), metric: 77),
            Route(prefix("0.0.0.0/0"), table: 51820), Route(prefix("10.30.0.7/32"), table: 200),
            Route(prefix("fd20::/48")), Route(prefix("::/0"), table: 51820),
            Route(prefix("fd30::7/128"), table: 200, metric: 5),
        ]
    }

    @Test func routesAreOursAndAddingTwiceIsFine() throws {
        try withTunnelUp { netlink in
            let mine = try routes()
            let before = Set(try netlink.hostRoutes())
            for route in mine { try netlink.addRoute(route, index: tunnel) }
            for route in mine { try netlink.addRoute(route, index: tunnel) }
            #expect(try netlink.ownRoutes(index: tunnel) == mine)
            #expect(try netlink.ownRoutes(index: outside).isEmpty)
            #expect(try netlink.usedTables().isSuperset(of: [51820, 200, 254, 255]))
            #expect(Set(try netlink.hostRoutes(besides: tunnel)) == before)
            #expect(Set(try netlink.hostRoutes()).count == before.count + mine.count)
            for route in mine { try netlink.removeRoute(route, index: tunnel) }
            for route in mine { try netlink.removeRoute(route, index: tunnel) }
            #expect(try netlink.ownRoutes(index: tunnel).isEmpty)
            #expect(Set(try netlink.hostRoutes()) == before)
            #expect(try !netlink.usedTables().contains(51820))
        }
    }

    /// Only who has no route into the tunnel notices it; neither the wider route behind nor another's of
    /// the same width is taken then.
    @Test(arguments: [
        ("198.51.100.7", "0.0.0.0/0", 51820), ("2001:db8:9::7", "::/0", 51820),
        ("198.51.100.7", "128.0.0.0/1", Route.mainTable),
        ("2001:db8:9::7", "::/1", Route.mainTable),
    ])
    func aBarrierStandsRightBehindARoute(
        _ target: String, _ destination: String, _ table: UInt32
    ) throws {
        try withTunnelUp { netlink in
            let inside = try Route(prefix(destination), table: table)
            let barrier = Barrier(behind: inside)
            let family = try ip(target).family
            var full = Rule(family: family, priority: 32764, table: 51820)
            full.mark = 51820
            full.isInverted = true
            let anothers = Route(inside.destination, table: table, metric: 2000)
            try netlink.addRoute(anothers, index: outside)
            defer { try? netlink.removeRoute(anothers, index: outside) }
            let before = Set(try netlink.hostRoutes())
            try netlink.addRoute(inside, index: tunnel)
            try netlink.addRule(full)
            defer { try? netlink.removeRule(full) }
            for _ in 1...2 { try netlink.addBarrier(barrier) }
            #expect(try netlink.barriers() == [barrier])
            #expect(try netlink.ownRoutes(index: tunnel) == [inside])
            #expect(try netlink.path(to: ip(target), mark: nil)?.linkIndex == tunnel)
            try netlink.removeRoute(inside, index: tunnel)
            #expect(try netlink.path(to: ip(target), mark: nil) == nil)
            if table != Route.mainTable {
                #expect(try netlink.path(to: ip(target), mark: 51820)?.linkIndex == outside)
            }
            #expect(Set(try netlink.hostRoutes()) == before)
            try netlink.addRoute(inside, index: tunnel)
            #expect(try netlink.path(to: ip(target), mark: nil)?.linkIndex == tunnel)
            for _ in 1...2 { try netlink.removeBarrier(barrier) }
            #expect(try netlink.barriers().isEmpty)
            try netlink.removeRoute(inside, index: tunnel)
            #expect(try netlink.path(to: ip(target), mark: nil)?.linkIndex == outside)
            #expect(Set(try netlink.hostRoutes()) == before)
        }
    }

    @Test func aBarrierWhereAnotherRouteStandsIsRefused() throws {
        try withTunnelUp { netlink in
            let anothers = try Route(prefix("10.40.0.0/16"), metric: 1)
            let barrier = Barrier(behind: Route(anothers.destination))
            try netlink.addRoute(anothers, index: outside)
            let error = #expect(throws: NetworkError.self) { try netlink.addBarrier(barrier) }
            #expect(error?.kind == .exists)
            #expect(throws: NetworkError.self) { try netlink.addBarriers([barrier]) }
            // And removing it does not touch the other.
            try netlink.removeBarrier(barrier)
            #expect(try netlink.ownRoutes(index: outside) == [anothers])
            try netlink.removeRoute(anothers, index: outside)
        }
    }

    /// More than one datagram holds, of both families.
    @Test func manyRoutesAtOnceAreThoseOneByOne() throws {
        try withTunnelUp { netlink in
            var many: [Route] = []
            for number in 0..<1500 {
                many.append(Route(try prefix("10.21.\(number >> 8).\(number & 255)/32")))
                many.append(Route(try prefix("fd21::\(number + 1)/128"), table: 200))
            }
            try netlink.addRoutes(many, index: tunnel)
            #expect(try netlink.ownRoutes(index: tunnel) == Set(many))
            // One that is there already in the middle is told, and the next request gets its own answer.
            let more = try (0..<5).map { Route(try prefix("10.22.0.\($0)/32")) }
            let error = try #require(
                #expect(throws: NetworkError.self) {
                    try netlink.addRoutes(
                        Array(more[..<2] + many[..<2] + more[2...]), index: tunnel)
                })
            #expect(error.kind == .exists)
            for route in more { try netlink.addRoute(route, index: tunnel) }
            #expect(try netlink.ownRoutes(index: tunnel) == Set(many + more))
            for route in many + more { try netlink.removeRoute(route, index: tunnel) }
            #expect(try netlink.ownRoutes(index: tunnel).isEmpty)
        }
    }

    @Test func case_C41_aRouteOfOthersInTheTableIsToldAndStays() throws {
        try withTunnelUp { netlink in
            let before = Set(try netlink.hostRoutes())
            let error = try #require(
                #expect(throws: NetworkError.self) {
                    try netlink.addRoute(Route(prefix("0.0.0.0/0")), index: tunnel)
                })
            #expect(error.kind == .exists)
            #expect(error.message.contains("0.0.0.0/0 in table 254"))
            try netlink.removeRoute(Route(prefix("0.0.0.0/0")), index: tunnel)
            try netlink.removeRoute(Route(prefix("0.0.0.0/0")), index: outside)
            try netlink.removeRoute(Route(prefix("::/0")), index: outside)
            #expect(Set(try netlink.hostRoutes()) == before)
        }
    }

    @Test func theHostsRoutesNameTheirLink() throws {
        let netlink = try Netlink()
        let routes = Set(try netlink.hostRoutes())
        #expect(routes.contains(HostRoute(try prefix("0.0.0.0/0"), link: "out0", metric: 0)))
        #expect(routes.contains(HostRoute(try prefix("192.0.2.0/24"), link: "out0", metric: 0)))
        // What IPv6 gives an address's own route, and one without a metric.
        #expect(
            routes.contains(HostRoute(try prefix("2001:db8::/64"), link: "out0", metric: 256)))
        #expect(routes.contains(HostRoute(try prefix("::/0"), link: "out0", metric: 1024)))
        // Two next hops, and none at all: the script made both.
        for link in ["out0", "out1"] {
            let hop = HostRoute(try prefix("198.18.0.0/24"), table: 77, link: link, metric: 0)
            #expect(routes.contains(hop))
        }
        #expect(routes.contains(HostRoute(try prefix("198.19.0.0/24"), link: nil, metric: 0)))
    }

    // MARK: rules

    private func rules() -> Set<Rule> {
        var rules: Set<Rule> = []
        for family in AddressFamily.allCases {
            var full = Rule(family: family, priority: 32764, table: 51820)
            full.mark = 51820
            full.isInverted = true
            var main = Rule(family: family, priority: 32763, table: Route.mainTable)
            main.suppressPrefixLength = 0
            rules.formUnion([full, main, Rule(family: family, priority: 900, table: 70000)])
        }
        return rules
    }

    @Test func case_C42_rulesAreOursAndOthersStay() throws {
        let netlink = try Netlink()
        let mine = rules()
        let before = Set(try netlink.allRules())
        #expect(try netlink.ownRules().isEmpty)
        for rule in mine { try netlink.addRule(rule) }
        for rule in mine { try netlink.addRule(rule) }
        #expect(try netlink.ownRules() == mine)
        #expect(Set(try netlink.allRules()).count == before.count + mine.count)
        #expect(try netlink.usedTables().isSuperset(of: [51820, 70000]))
        for rule in mine { try netlink.removeRule(rule) }
        for rule in mine { try netlink.removeRule(rule) }
        #expect(try netlink.ownRules().isEmpty)
        // Among them one of another tunnel: suppress_prefixlength 0, like ours but for its tag.
        #expect(Set(try netlink.allRules()) == before)
        #expect(before.contains { $0.protocolNumber != 2 && $0.table == Route.mainTable })
    }

    @Test func aRuleOfOthersLikeOursStays() throws {
        let netlink = try Netlink()
        let before = Set(try netlink.allRules())
        // As the script made it, by another protocol number.
        var like = Rule(family: .v4, priority: 32760, table: Route.mainTable)
        like.suppressPrefixLength = 0
        try netlink.removeRule(like)
        #expect(Set(try netlink.allRules()) == before)
        try netlink.addRule(like)
        #expect(try netlink.ownRules() == [like])
        try netlink.removeRule(like)
        #expect(Set(try netlink.allRules()) == before)
    }

    // MARK: paths

    @Test func aPathHasLinkGatewaySourceAndMTU() throws {
        let netlink = try Netlink()
        let far = try #require(try netlink.path(to: ip("198.51.100.7"), mark: nil))
        #expect(
            try far
                == Path(
                    linkIndex: outside, mtu: 1500, gateway: ip("192.0.2.254"),
                    source: ip("192.0.2.1"), table: 254))
        let near = try #require(try netlink.path(to: ip("2001:db8::9"), mark: nil))
        #expect(near.linkIndex == outside && near.gateway == nil && near.mtu == 1500)
        // A route with an MTU of its own, made by the script.
        #expect(try netlink.path(to: ip("198.51.101.1"), mark: nil)?.mtu == 1412)
        #expect(try netlink.path(to: ip("2001:db8:1::1"), mark: nil)?.mtu == 1412)
        // Blackhole, and no route for the mark's table.
        #expect(try netlink.path(to: ip("198.19.0.1"), mark: nil) == nil)
    }

    @Test func case_C37_theMarkDecidesWhetherTheTunnelIsTheWay() throws {
        try withTunnelUp { netlink in
            var full = Rule(family: .v4, priority: 32764, table: 51820)
            full.mark = 51820
            full.isInverted = true
            try netlink.addRoute(Route(prefix("0.0.0.0/0"), table: 51820), index: tunnel)
            try netlink.addRule(full)
            defer { try? netlink.removeRule(full) }
            let inside = try netlink.path(to: ip("198.51.100.7"), mark: nil)
            #expect(inside?.linkIndex == tunnel && inside?.table == 51820 && inside?.mtu == 1420)
            let marked = try netlink.path(to: ip("198.51.100.7"), mark: 51820)
            #expect(marked?.linkIndex == outside && marked?.table == 254)
        }
    }

    // MARK: monitor

    @Test func everyChangeIsToldAndOwnEchoesCarryThePort() throws {
        let monitor = try NetlinkMonitor()
        let netlink = try Netlink()
        var rule = Rule(family: .v6, priority: 700, table: 51830)
        rule.mark = 7
        let route = try Route(prefix("10.44.0.0/16"), table: 51830)
        try netlink.setUp(index: tunnel, true)
        try netlink.addAddress(address("10.9.0.1/24"), index: tunnel)
        try netlink.addRoute(route, index: tunnel)
        try netlink.addRule(rule)
        try netlink.removeRule(rule)
        try netlink.removeRoute(route, index: tunnel)
        try netlink.removeAddress(address("10.9.0.1/24"), index: tunnel)
        try netlink.setUp(index: tunnel, false)

        var poller = pollfd(fd: monitor.descriptor, events: Int16(POLLIN), revents: 0)
        #expect(unsafe poll(&poller, 1, 0) == 1)
        let events = monitor.drain()
        #expect(monitor.next() == nil)
        #expect(unsafe poll(&poller, 1, 0) == 0)
        func has(_ kind: NetlinkEvent.Kind, _ test: (NetlinkEvent) -> Bool) -> Bool {
            events.contains { $0.kind == kind && test($0) }
        }
        #expect(has(.link) { $0.linkIndex == tunnel })
        #expect(has(.address) { $0.linkIndex == tunnel && $0.protocolNumber == 0x4E })
        #expect(has(.addressGone) { $0.linkIndex == tunnel && $0.family == .v4 })
        for kind in [NetlinkEvent.Kind.route, .routeGone] {
            #expect(
                has(kind) {
                    $0.linkIndex == tunnel && $0.table == 51830 && $0.protocolNumber == 0x4E
                        && $0.port == netlink.port && $0.family == .v4
                })
        }
        for kind in [NetlinkEvent.Kind.rule, .ruleGone] {
            #expect(
                has(kind) {
                    $0.table == 51830 && $0.protocolNumber == 0x4E && $0.port == netlink.port
                        && $0.family == .v6
                })
        }
    }

    @Test func aLinkThatComesAndGoesIsTold() throws {
        let monitor = try NetlinkMonitor()
        let netlink = try Netlink()
        let index = try netlink.createLink(name("made2"), kind: .veth)
        try netlink.removeLink(index: index)
        let events = monitor.drain().filter { $0.linkIndex == index }
        #expect(events.first?.kind == .link)
        #expect(events.last?.kind == .linkGone)
    }

    @Test func lostEventsAreToldAsAnOverflow() throws {
        let monitor = try NetlinkMonitor()
        let netlink = try Netlink()
        var size: Int32 = 1  // the least the kernel gives
        let set = unsafe setsockopt(
            monitor.descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        #expect(set == 0)
        let rule = Rule(family: .v4, priority: 701, table: 51831)
        for _ in 0..<200 {
            try netlink.addRule(rule)
            try netlink.removeRule(rule)
        }
        #expect(monitor.drain().contains { $0.kind == .overflow })
        #expect(monitor.next() == nil)
    }
}
