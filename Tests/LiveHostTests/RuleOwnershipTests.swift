// SPDX-License-Identifier: Apache-2.0
import Testing
import TunnelPlan

@testable import LiveHost

/// The two rules of a full tunnel.
private func pair(
    _ mark: UInt32, at priority: UInt32, _ family: AddressFamily = .v4
) -> (local: Rule, rest: Rule) {
    var local = Rule(family: family, priority: priority, table: Route.mainTable)
    local.suppressPrefixLength = 0
    var rest = Rule(family: family, priority: priority + 1, table: mark)
    rest.mark = mark
    rest.isInverted = true
    return (local, rest)
}

private func ownership(
    _ rules: [Rule], known: Set<Rule> = [], mark: UInt32? = nil, tables: Set<UInt32> = [],
    routed: Set<UInt32> = [], otherMarks: Set<UInt32> = []
) -> RuleOwnership {
    RuleOwnership(
        rules: Set(rules), known: known, mark: mark, tables: tables, tablesWithRoutes: routed,
        otherMarks: otherMarks)
}

@Suite struct RuleOwnershipTests {
    let first = pair(51820, at: 32764)
    let second = pair(51821, at: 32762)

    private var both: [Rule] { [first.local, first.rest, second.local, second.rest] }

    @Test func a_tunnel_owns_the_pair_of_its_mark_or_of_its_table() {
        #expect(ownership(both, mark: 51820).own == [first.local, first.rest])
        #expect(ownership(both, mark: 0, tables: [51821]).own == [second.local, second.rest])
        #expect(ownership(both, mark: 0).own.isEmpty)
    }

    @Test func families_are_told_apart_although_they_share_priorities() {
        let six = pair(51821, at: 32764, .v6)
        let rules = [first.local, first.rest, six.local, six.rest]
        #expect(ownership(rules, mark: 51820).own == [first.local, first.rest])
        #expect(ownership(rules, mark: 51821).own == [six.local, six.rest])
    }

    @Test func half_a_pair_is_known_by_who_added_it() {
        #expect(ownership([first.local], mark: 51820).own.isEmpty)
        #expect(
            ownership([first.local], known: [first.local, first.rest], mark: 51820).own
                == [first.local])
    }

    @Test func a_dead_tunnels_pair_is_an_orphan_and_a_living_ones_is_not() {
        #expect(ownership(both, mark: 51820).orphans == [second.local, second.rest])
        #expect(ownership(both, mark: 51820, otherMarks: [51821]).orphans.isEmpty)
        #expect(ownership(both, mark: 51820, routed: [51821]).orphans.isEmpty)
        #expect(ownership(both).orphans == Set(both))
    }

    @Test func case_C52_the_rule_of_answers_belongs_to_its_tables_tunnel() {
        var answers = Rule(family: .v4, priority: 32763, table: 51823)
        answers.mark = 51823
        let rules = both + [answers]
        #expect(
            ownership(rules, mark: 51820, tables: [51823]).own
                == [first.local, first.rest, answers])
        #expect(ownership(rules, mark: 51820, routed: [51823]).own == [first.local, first.rest])
        #expect(
            ownership(rules, mark: 51820, routed: [51823]).orphans == [second.local, second.rest])
        #expect(ownership([answers], mark: 51820).orphans == [answers])
    }

    @Test func a_rule_that_is_no_half_of_a_pair_is_nobodys_orphan() {
        let plain = Rule(family: .v4, priority: 100, table: 7)
        #expect(ownership([plain, first.local]).orphans.isEmpty)
    }
}

@Suite struct RoutingTableTests {
    @Test func case_C38_names_of_tables_are_read_as_iproute2_writes_them() {
        var numbers: [String: UInt32] = [:]
        parseRoutingTables(
            """
            #
            # reserved values
            255\tlocal
            254  main # the usual one
            0x10 hexadecimal
            7
            x seven
            4294967296 large
            """, into: &numbers)
        #expect(numbers == ["local": 255, "main": 254, "hexadecimal": 16])
        parseRoutingTables("8 main\n", into: &numbers)
        #expect(numbers["main"] == 8)
    }

    @Test func files_that_are_not_there_say_nothing() {
        #expect(routingTableNumbers(["/nonexistent/rt_tables"]).isEmpty)
    }
}
