// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Hub

struct TroubleTests {
    @Test func case_C109_whatGoesOnIsSaidOnce() {
        let trouble = Trouble()
        #expect(!trouble.note(nil))
        #expect(trouble.note("full"))
        for _ in 0..<60 { #expect(!trouble.note("full")) }
        #expect(trouble.reason == "full")
        #expect(trouble.note("read-only"))
        #expect(trouble.note(nil), "its end is news")
        #expect(trouble.reason == nil)
        #expect(!trouble.note(nil))
    }
}
