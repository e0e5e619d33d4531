// SPDX-License-Identifier: Apache-2.0
// An agent and an enrolment in one state directory: two stores.
import ControlAPI
import Crypto
import Foundation
import Testing
import WireGuard

@testable import Agent

private let machine = "0123456789abcdef0123456789abcdef"

private func enrolled(_ id: String, allowed: String = "10.172.21.0/24") throws -> Enrolled {
    let config = WireGuardConfig(
        deviceId: id, internalIp: "10.172.21.2/32",
        serverPub: "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        endpoint: "hub.example.com:51820", allowedIps: allowed, dns: "")
    let stored = StoredConfiguration(
        configHash: "c", forwardsHash: "f", config: config, forwards: [])
    return Enrolled(
        identity: Identity(
            url: "https://hub.example", pins: [], deviceId: id, hwid: machine,
            token: SecretText(BearerToken.generate()), tokenIssued: 0,
            privateKey: SecretText(SecretKey.generate())),
        configuration: try UsableConfiguration(stored))
}

@Suite final class StoreTests {
    private let path: String
    private let agent: AgentStore
    private let enrolment: AgentStore

    init() throws {
        var template = Array("/tmp/agent-store.XXXXXX".utf8CString)
        path = unsafe String(cString: mkdtemp(&template))
        agent = try AgentStore(path, machine: machine)
        enrolment = try AgentStore(path, machine: machine)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    @Test func what_an_agent_stores_does_not_undo_an_enrolment() throws {
        let old = try enrolled("old")
        try agent.save(old)
        var changed = old.identity
        changed.heartbeatSeconds = 7
        try agent.change(to: changed)
        // The same device with another token is another identity too.
        for id in ["new", "old"] {
            let new = try enrolled(id, allowed: "10.0.0.0/8")
            try enrolment.save(new)
            #expect(throws: StoreFault.self) { try agent.change(to: changed) }
            #expect(throws: StoreFault.self) { try agent.save(old.configuration.stored) }
            let found = try #require(try agent.identity())
            #expect(found.token == new.identity.token)
            #expect(agent.configuration() == new.configuration.stored)
            #expect(!agent.recognise(found))
            #expect(agent.recognise(found))
            changed = found
            changed.heartbeatSeconds = 9
            try agent.change(to: changed)
            #expect(try agent.identity()?.heartbeatSeconds == 9)
        }
    }

    @Test func an_identity_that_was_forgotten_is_not_stored_again() throws {
        let old = try enrolled("old")
        try agent.save(old)
        try enrolment.forget()
        #expect(throws: StoreFault.self) { try agent.change(to: old.identity) }
        #expect(try agent.identity() == nil)
    }

    @Test func stores_at_the_same_time_wait_for_each_other() async throws {
        let old = try enrolled("old")
        try agent.save(old)
        let (agent, enrolment) = (agent, enrolment)
        let fresh = try (0..<20).map { try enrolled("new\($0)") }
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                for _ in 0..<20 { try? agent.change(to: old.identity) }
            }
            group.addTask {
                for new in fresh { #expect(throws: Never.self) { try enrolment.save(new) } }
            }
        }
        #expect(try agent.identity()?.deviceId == "new19")
    }
}
