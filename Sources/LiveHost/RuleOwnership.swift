// SPDX-License-Identifier: Apache-2.0
import TunnelPlan

/// Whose a policy rule with our protocol number is: the kernel remembers no more than that.
///
/// A full tunnel has a pair of rules per family: `not fwmark M table M` and, right before it, one
/// that asks the main table without its default route. M is its device's mark and the table of its
/// default route, which is there before the rules come and after they go. What leads marked answers
/// back into a tunnel stands alone: `fwmark N table N`.
struct RuleOwnership {
    /// All rules with our protocol number.
    let rules: Set<Rule>
    /// Rules added by this process for this tunnel.
    let known: Set<Rule>
    /// This tunnel's mark; nil: there is no device. 0: none.
    let mark: UInt32?
    /// Tables with a route of ours through this tunnel's link.
    let tables: Set<UInt32>
    /// Tables with a route of anybody. A barrier is none.
    let tablesWithRoutes: Set<UInt32>
    /// Marks of other tunnels' devices.
    let otherMarks: Set<UInt32>

    /// This tunnel's.
    var own: Set<Rule> {
        let leading = rules.filter { leads($0) && isOwn(table: $0.table) }
        let answers = rules.filter { $0.isOfAnswers && isOwn(table: $0.table) }
        return known.intersection(rules).union(leading).union(neighbours(of: leading))
            .union(answers)
    }

    /// Of tunnels that are no more: their table is empty and nobody has their mark. Whoever died
    /// left them.
    var orphans: Set<Rule> {
        let alone = rules.filter {
            !isOwn(table: $0.table) && !tablesWithRoutes.contains($0.table)
                && !otherMarks.contains($0.table)
        }
        let leading = alone.filter { leads($0) }
        // A half that lost the other one says nothing about whose it was: it stays.
        return leading.union(neighbours(of: leading)).union(alone.filter(\.isOfAnswers))
            .subtracting(own)
    }

    private func leads(_ rule: Rule) -> Bool { rule.isInverted && rule.mark == rule.table }

    private func isOwn(table: UInt32) -> Bool { tables.contains(table) || table == mark }

    private func neighbours(of leading: Set<Rule>) -> Set<Rule> {
        rules.filter { !leads($0) && neighbour(of: $0, in: leading) != nil }
    }

    /// The one that `rule` comes right before.
    private func neighbour(of rule: Rule, in leading: Set<Rule>) -> Rule? {
        leading.first { $0.family == rule.family && $0.priority == rule.priority + 1 }
    }
}
