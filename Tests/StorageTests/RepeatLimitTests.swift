// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Storage

@Suite struct RepeatLimitTests {
    private let place = RepeatLimit.Place(file: "a", line: 1)

    @Test func case_C109_aPlaceMayWriteSoOftenInAWindow() {
        var limit = RepeatLimit()
        var written = 0
        // Ten times a second for an hour.
        for time in stride(from: Int64(0), to: 3_600_000, by: 100) {
            if case .write = limit.decide(place, .error, "tun", "I/O error", now: time) {
                written += 1
            }
        }
        #expect(written == 60 * RepeatLimit.allowed)
    }

    @Test func whatWasLeftOutIsCountedAndSaidWithTheNextOne() {
        var limit = RepeatLimit()
        for _ in 0..<RepeatLimit.allowed {
            #expect(limit.decide(place, .warn, "a", "m", now: 0) == .write(after: nil))
        }
        #expect(limit.decide(place, .error, "a", "m1", now: 1) == .leaveOut)
        #expect(limit.decide(place, .warn, "a", "m2", now: 59_999) == .leaveOut)
        let expected = RepeatLimit.Repetition(level: .error, tag: "a", message: "m2", count: 2)
        #expect(limit.decide(place, .warn, "a", "m3", now: 60_000) == .write(after: expected))
        #expect(expected.text == "repeated 2 times, lastly: m2")
        #expect(limit.takeRepetitions(now: 200_000) == [])
    }

    @Test func whatWasLeftOutIsSaidWhenNothingFollows() {
        var limit = RepeatLimit()
        for _ in 0..<RepeatLimit.allowed + 5 { _ = limit.decide(place, .info, "a", "m", now: 0) }
        #expect(limit.takeRepetitions(now: 59_999) == [])
        #expect(limit.takeRepetitions(now: 60_000).map(\.count) == [5])
        #expect(limit.takeRepetitions(now: 60_000) == [])
        #expect(limit.decide(place, .info, "a", "m", now: 60_001) == .write(after: nil))
    }

    @Test func placesDoNotLimitEachOther() {
        var limit = RepeatLimit()
        for _ in 0..<100 { _ = limit.decide(place, .info, "a", "m", now: 0) }
        let other = RepeatLimit.Place(file: "a", line: 2)
        #expect(limit.decide(other, .info, "a", "m", now: 0) == .write(after: nil))
    }
}
