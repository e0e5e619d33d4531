// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Agent

@Suite struct HubURLTests {
    @Test(arguments: [
        ("https://hub.example", "https://hub.example"),
        ("https://hub.example:8443/", "https://hub.example:8443"),
        ("https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443"),
        ("https://hub.example/path//", "https://hub.example/path"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://[::1]", "http://[::1]"), ("http://localhost:1", "http://localhost:1"),
    ]) func what_leads_to_a_hub_is_taken(_ text: String, _ meant: String) throws {
        #expect(try HubURL(text).description == meant)
    }

    @Test(arguments: [
        "", "hub.example", "ftp://hub.example", "https://", "https://:8443",
        "https://hub.example:0", "https://hub.example:70000", "https://hub.example:",
        "https://user@hub.example", "https://hub.example?x=1", "https://hub.example#x",
        "https://hub example", "https://hub.example\n", "http://hub.example", "http://192.0.2.1",
        "http://127.0.0.1.example", "https://[2001:db8::1", "https://hub\\example",
    ]) func nothing_else_is(_ text: String) {
        #expect(throws: HubURL.Refusal.self) { try HubURL(text) }
    }
}

@Suite struct SyncTests {
    @Test func what_is_rejected_is_named_by_the_hash_that_differs() {
        var sync = Sync()
        sync.restored(first)
        sync.succeeded(first)
        let forwards = Revision(configHash: "c1", forwardsHash: "f9")
        #expect(sync.offered(forwards, isSameMeaning: false) == .apply)
        sync.rejected(Rejection(revision: forwards, code: "x", reason: "y"))
        #expect(sync.rejectedHash == "f9")
        #expect(sync.offered(second, isSameMeaning: false) == .apply)
        sync.rejected(Rejection(revision: second, code: "x", reason: "y"))
        #expect(sync.rejectedHash == "c2")
        #expect(sync.offered(first, isSameMeaning: false) == .nothing)
        #expect(sync.rejectedHash == nil, "the hub wants what is there")
    }
}
