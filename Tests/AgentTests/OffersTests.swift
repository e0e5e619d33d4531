// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Agent
@testable import ControlAPI

@Suite struct OffersTests {
    private let refused = HeartbeatResult.Offer.refused(
        ConfigRefusal(.prefixInvalid, "allowedIps", "is none"))

    private func revision(_ number: Int) -> Revision {
        Revision(configHash: "c\(number)", forwardsHash: "f")
    }

    /// A hub that sends another bad configuration with each heartbeat, for years.
    @Test func what_was_rejected_does_not_pile_up() {
        var offers = Offers()
        for number in 0..<1_000 {
            offers[revision(number)] = refused
            offers.keep(wanted: nil)
            #expect(offers.count == 0)
        }
    }

    @Test func what_is_wanted_and_what_is_being_applied_stay() {
        var offers = Offers()
        for number in 1...3 { offers[revision(number)] = refused }
        offers.isApplying(revision(1))
        offers.keep(wanted: revision(3))
        #expect(offers.count == 2)
        #expect(offers[revision(2)] == nil)
        // It is committed with the event, and goes after it.
        offers.noteEnd(of: .applied(revision(1), .current))
        #expect(offers[revision(1)] != nil)
        offers.keep(wanted: revision(3))
        #expect(offers.count == 1)
        #expect(offers[revision(3)] != nil)
    }
}
