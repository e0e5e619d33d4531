// SPDX-License-Identifier: Apache-2.0
// docs/control-api.md says what the code does: its example is computed, its tables are complete.
import Testing

@testable import ControlAPI

/// The fenced block after the line `<!-- NAME -->`, without its line ends.
private func block(_ name: String, in page: String) throws -> String {
    let parts = page.split(separator: "<!-- \(name) -->\n")
    try #require(parts.count == 2, "\(name)")
    let lines = parts[1].split(separator: "\n", omittingEmptySubsequences: false)
    try #require(lines[0].hasPrefix("```"))
    return lines.dropFirst().prefix { $0 != "```" }.joined()
}

@Suite struct DocumentTests {
    private let page: String

    init() throws { page = String(decoding: try file("docs/control-api.md"), as: UTF8.self) }

    @Test func the_worked_example_is_right() throws {
        let answer = try Wire.decode(
            ProvisionAnswer.self, from: Array(try block("example answer", in: page).utf8))
        let hwid = try block("example hwid", in: page)
        let plaintext = try Envelope.open(answer.encrypted, hwid: hwid, salt: answer.salt)
        #expect(
            String(decoding: plaintext, as: UTF8.self)
                == (try block("example configuration", in: page)))
        let config = try Wire.decode(WireGuardConfig.self, from: plaintext)
        #expect(config.deviceId == answer.deviceId)
        #expect(answer.deviceToken.bearerToken != nil)
        #expect(
            String(decoding: try config.validated().canonicalText, as: UTF8.self)
                == (try block("example canonical", in: page)))
        let hash = try block("example hash", in: page)
        #expect(try configHash(config) == hash)
        #expect(config.configHash == hash)
        #expect(try config.forwardsHash == forwardsHash([]))
    }

    @Test func every_code_stands_on_the_page() {
        for code in Problem.Code.allCases { #expect(page.contains("`\(code.rawValue)`")) }
        for code in ConfigRefusal.Code.allCases { #expect(page.contains("`\(code.rawValue)`")) }
        for call in DeviceCall.allCases { #expect(page.contains("`\(call.method) \(call.path)`")) }
    }

    @Test func every_field_stands_on_the_page() {
        var heartbeat = HeartbeatRequest(
            deviceId: "", boot: 0, sessionId: "", sequence: 0, agentVersion: "")
        heartbeat.backend = .kernel
        heartbeat.lastHandshake = Timestamp(unixSeconds: 0)
        (heartbeat.configHash, heartbeat.forwardsHash) = ("", "")
        (heartbeat.rejectedHash, heartbeat.rejectedCode, heartbeat.problems) = ("", "", [])
        var answer = HeartbeatAnswer(
            configHash: "", forwardsHash: "", serverTime: Timestamp(unixSeconds: 0))
        (answer.salt, answer.encrypted, answer.forwards) = ("", "", [])
        (answer.heartbeatSeconds, answer.nextPin, answer.command) = (5, "", .reset)
        let forward = Forward(
            id: "", protocol: "", publicPort: 1, publicPortEnd: 1, targetIp: "", targetPort: 1,
            description: "")
        let values: [any Encodable] = [
            ProvisionRequest(
                token: SecretText(""), hwid: "", publicKey: "", name: "", platform: "",
                agentVersion: ""),
            ProvisionAnswer(
                deviceId: "", deviceToken: SecretText(""), salt: "", encrypted: "",
                heartbeatSeconds: 5),
            heartbeat, answer, forward, sampleConfig(),
            ConfigPeer(
                publicKey: "", presharedKey: SecretText(""), endpoint: "", allowedIps: "",
                persistentKeepalive: 0, name: ""),
        ]
        for value in values {
            for child in Mirror(reflecting: value).children {
                #expect(page.contains("`\(child.label!)`"), "\(type(of: value)).\(child.label!)")
            }
        }
    }
}
