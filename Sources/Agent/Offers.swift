// SPDX-License-Identifier: Apache-2.0

/// Configurations that the hub sent and the tunnel does not have yet. One that is wanted and one that the
/// keeper is being asked for is all that there can be; what was rejected, or overtaken by another, goes.
struct Offers {
    private var offers: [Revision: HeartbeatResult.Offer] = [:]
    private var applying: Revision?

    var count: Int { offers.count }

    subscript(_ revision: Revision) -> HeartbeatResult.Offer? {
        get { offers[revision] }
        set { offers[revision] = newValue }
    }

    /// The keeper is asked for it.
    mutating func isApplying(_ revision: Revision) { applying = revision }

    /// The keeper has answered. What it was asked for stays until `keep`: it may have to be stored now.
    mutating func noteEnd(of event: AgentEvent) {
        switch event {
        case .applied(let revision, _), .applyFailed(let revision, _, _):
            if applying == revision { applying = nil }
        default: break
        }
    }

    /// After an event was followed by all that it leads to.
    mutating func keep(wanted: Revision?) {
        offers = offers.filter { $0.key == wanted || $0.key == applying }
    }
}
