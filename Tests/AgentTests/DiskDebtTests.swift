// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Agent

@Suite struct DiskDebtTests {
    private let full = StoreFault(code: "disk_full", reason: "cannot write: make room")
    private let readOnly = StoreFault(code: "storage_failed", reason: "cannot write: read-only")

    @Test func case_C109_the_same_refusal_is_said_once() {
        var debt = DiskDebt()
        #expect(debt.nextTry == nil)
        var isNews = debt.refused(.configuration, full, at: 1_000)
        #expect(isNews)
        for time: Moment in stride(from: 11_000, through: 301_000, by: 10_000) {
            isNews = debt.refused(.configuration, full, at: time)
            #expect(!isNews)
            #expect(debt.nextTry == time + DiskDebt.interval)
        }
        #expect(debt.since == 1_000)
        isNews = debt.refused(.identity, readOnly, at: 302_000)
        #expect(isNews, "another reason is news")
        #expect(debt.fault == readOnly)
        #expect(debt.since == 1_000)
    }

    @Test func it_is_over_when_the_last_of_it_is_written() {
        var debt = DiskDebt()
        _ = debt.refused(.configuration, full, at: 0)
        _ = debt.refused(.identity, full, at: 5)
        debt.written(.configuration)
        #expect(debt.items == [.identity])
        #expect(debt.fault == full)
        debt.written(.identity)
        #expect(debt == DiskDebt())
        debt.written(.identity)
        #expect(debt == DiskDebt())
        let isNews = debt.refused(.identity, full, at: 9)
        #expect(isNews, "a new one is news again")
    }
}
