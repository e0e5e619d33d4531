// SPDX-License-Identifier: Apache-2.0
import TestSupport
import Testing
import TunnelPlan
import WireGuard

@testable import Keeper

@Suite struct JSONReaderTests {
    private func accepts(_ text: String) -> Bool {
        var reader = JSONReader([UInt8](text.utf8))
        do throws(JSONError) {
            try reader.skip()
            try reader.end()
            return true
        } catch {
            return false
        }
    }

    @Test(arguments: [
        "{}", "[]", "\"\"", "0", "-1.5e3", "true", "null", " [ 1 , \"a\" , { \"b\" : [ ] } ] ",
        "\"\\u00e9\\ud83d\\ude00\\n\"", "[[[[]]]]",
    ])
    func jsonIsRead(_ text: String) { #expect(accepts(text)) }

    @Test(arguments: [
        "", "{", "[", "\"", "\"\\\"", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "[1,]", "[,1]", "[1 2]",
        "{\"a\":1 \"b\":2}", "tru", "nul", "01x", "\"\\x\"", "\"\\u12\"", "\"\\ud83d\"",
        "\"\\ud83d\\u0041\"", "\"a\nb\"", "{} {}", "[1]]", "'a'", "{a:1}",
        String(repeating: "[", count: 100) + String(repeating: "]", count: 100),
    ])
    func anythingElseIsRefused(_ text: String) { #expect(!accepts(text)) }

    @Test func stringsAreDecoded() throws {
        var reader = JSONReader([UInt8](#""a\"\\\/\b\f\n\r\t\u0041\u00e9\ud83d\ude00""#.utf8))
        let bytes = try reader.string()
        #expect(bytes == [UInt8]("a\"\\/\u{8}\u{c}\n\r\tAé😀".utf8))
    }

    @Test func numbersAreExactOrRefused() throws {
        var exact = JSONReader([UInt8]("9007199254740992".utf8))
        #expect(try exact.number() == 1 << 53)
        for text in ["9007199254740993", "18446744073709551616", "1.0", "1e3", "-1", "007", ""] {
            #expect(throws: JSONError.self) {
                var reader = JSONReader([UInt8](text.utf8))
                _ = try reader.number()
                try reader.end()
            }
        }
    }
}

@Suite struct RequestTests {
    private func parse(_ text: String) throws(KeeperFailure) -> Request {
        try Request.parse([UInt8](text.utf8))
    }

    @Test func whatTheClientWritesTheKeeperReads() throws {
        var options = KeeperClient.ApplyOptions()
        options.confirmSeconds = 90
        options.backend = .kernel
        options.hooks = .allow
        options.isLenient = true
        options.isPersistent = true
        options.renewsLink = true
        options.masquerades = true
        options.answersThroughTunnel = true
        options.forwards = [
            PortForward(
                .tcp, publicPort: 8443, target: IPAddress("10.1.2.3")!, targetPort: 443)!,
            PortForward(
                .udp, publicPort: 5000, publicPortEnd: 5010, target: IPAddress("fd00::2")!,
                targetPort: 6000, keepsSource: true)!,
        ]
        let text = [UInt8]("[Interface]\r\n# \"é\\\t\u{1}\u{0}\u{7f}\n".utf8)
        var line = RequestText.apply(text, options)
        #expect(line.removeLast() == 0x0A)
        #expect(!line.contains(0x0A))
        guard case .apply(let request) = try Request.parse(line) else {
            Issue.record("not an apply")
            return
        }
        #expect(request.configuration == text)
        #expect(request.options.confirmSeconds == 90)
        #expect(!request.options.isDryRun)
        #expect(request.options.renewsLink)
        #expect(request.backend == .kernel)
        #expect(request.hooks == .allow)
        #expect(request.isLenient)
        #expect(request.isPersistent)
        #expect(request.gateway == options.gateway)
        #expect(!request.gateway.forwardsBetweenPeers)
    }

    @Test(arguments: [
        #"{"protocol":"tcp","publicPort":1,"target":"10.0.0.2"}"#,
        #"{"protocol":"sctp","publicPort":1,"target":"10.0.0.2","targetPort":1}"#,
        #"{"protocol":"tcp","publicPort":65536,"target":"10.0.0.2","targetPort":1}"#,
        #"{"protocol":"tcp","publicPort":0,"target":"10.0.0.2","targetPort":1}"#,
        #"{"protocol":"tcp","publicPort":2,"publicPortEnd":1,"target":"10.0.0.2","targetPort":1}"#,
        #"{"protocol":"tcp","publicPort":2,"publicPortEnd":70000,"target":"10.0.0.2","targetPort":2}"#,
        #"{"protocol":"tcp","publicPort":1,"target":"host","targetPort":1}"#,
        #"{"protocol":"tcp","publicPort":1,"target":"10.0.0.2","targetPort":1,"more":1}"#,
        #"{}"#, #"[]"#, #"1"#,
    ])
    func aForwardThatIsNoneIsRefused(_ forward: String) {
        #expect(throws: KeeperFailure.self) {
            try parse(
                #"{"schemaVersion":1,"verb":"apply","configuration":"","options":{"forwards":[\#(forward)]}}"#
            )
        }
    }

    @Test func forwardsAreBounded() {
        let one = #"{"protocol":"tcp","publicPort":1,"target":"10.0.0.2","targetPort":1}"#
        func request(_ count: Int) -> String {
            let all = Array(repeating: one, count: count).joined(separator: ",")
            return
                #"{"schemaVersion":1,"verb":"apply","configuration":"","options":{"forwards":[\#(all)]}}"#
        }
        #expect(throws: Never.self) { try parse(request(forwardLimit)) }
        #expect(throws: KeeperFailure.self) { try parse(request(forwardLimit + 1)) }
    }

    @Test func downSaysWhetherTheTunnelComesBack() throws {
        for stays in [true, false] {
            let line = RequestText.down(staysPersistent: stays).dropLast()
            guard case .down(let options) = try Request.parse(Array(line)) else {
                Issue.record("not down")
                continue
            }
            #expect(options.staysPersistent == stays)
        }
    }

    @Test func case_C93_the_device_is_told_without_its_secrets() throws {
        var snapshot = DeviceSnapshot()
        snapshot.privateKey = SecretKey(copying: [UInt8](repeating: 7, count: 32).span)
        snapshot.publicKey = key(9)
        snapshot.listenPort = 51820
        snapshot.fwmark = 51820
        snapshot.mtu = 1420
        snapshot.isUp = true
        var first = PeerSnapshot(publicKey: key(1))
        first.presharedKey = PresharedKey(copying: [UInt8](repeating: 7, count: 32).span)
        first.endpoint = Endpoint("[2001:db8::1]:4500")
        first.lastHandshakeSeconds = 1_700_000_000
        first.receivedBytes = 1 << 40
        first.sentBytes = 7
        first.keepalive = 25
        first.prefixes = [Prefix("10.0.0.2/32")!, Prefix("fd00::/64")!]
        snapshot.peers = [first, PeerSnapshot(publicKey: key(2))]
        let device = DeviceState(backend: .kernel, snapshot)
        let line = Array(Reply.line(device).dropLast())
        #expect(try ReceivedAnswer(line).device == device)
        #expect(device.peers[0].presharedKey == nil)
        // Seven sevens in hexadecimal or base64.
        let text = String(decoding: line, as: UTF8.self)
        #expect(!text.contains("070707") && !text.contains("BwcH"))
        #expect(try ReceivedAnswer(Array(Reply.line(nil as DeviceState?).dropLast())).device == nil)
    }

    @Test func everyByteSurvives() throws {
        var random = SeededRandom(seed: 5)
        for _ in 0..<300 {
            let text = (0..<random.below(200)).map { _ in UInt8(random.below(256)) }
            var line = RequestText.apply(text, KeeperClient.ApplyOptions())
            line.removeLast()
            guard case .apply(let request) = try Request.parse(line) else { continue }
            #expect(request.configuration == text)
        }
    }

    @Test(arguments: [
        #"{"verb":"status"}"#, #"{"schemaVersion":2,"verb":"status"}"#,
        #"{"schemaVersion":1}"#, #"{"schemaVersion":1,"verb":"reboot"}"#,
        #"{"schemaVersion":1,"verb":"apply"}"#,
        #"{"schemaVersion":1,"verb":"down","configuration":""}"#,
        #"{"schemaVersion":1,"verb":"device","configuration":""}"#,
        #"{"schemaVersion":1,"verb":"status","verb":"down"}"#,
        #"{"schemaVersion":1,"verb":"status","more":1}"#,
        #"{"schemaVersion":1,"verb":"apply","configuration":"","options":{"force":true}}"#,
        #"{"schemaVersion":1,"verb":"apply","configuration":"","options":{"confirmSeconds":0}}"#,
        #"{"schemaVersion":1,"verb":"apply","configuration":"","options":{"backend":"magic"}}"#,
    ])
    func whatIsNotUnderstoodIsRefused(_ text: String) {
        #expect(throws: KeeperFailure.self) { try parse(text) }
    }

    /// No part of a request is in an error: a client may have put a key in the wrong place (C93).
    @Test func case_C93_errors_show_no_value() {
        let secret = String(repeating: "A", count: 42) + "E="
        for text in [
            #"{"schemaVersion":1,"verb":"\#(secret)"}"#,
            #"{"schemaVersion":1,"\#(secret)":1}"#,
            #"{"schemaVersion":1,"verb":"apply","configuration":"","options":{"backend":"\#(secret)"}}"#,
            "\(secret)",
        ] {
            do throws(KeeperFailure) {
                _ = try parse(text)
                Issue.record("accepted")
            } catch {
                #expect(!error.message.contains("AAAAAAAA"))
            }
        }
    }

    @Test func case_C26_hook_lines_are_named() throws {
        var request = ApplyRequest()
        request.configuration = [UInt8](
            "[Interface]\nPrivateKey = \(String(repeating: "A", count: 42))E=\npostup = x\n PreDown=y\n"
                .utf8)
        do throws(KeeperFailure) {
            _ = try request.intent(name: wg0, isRoot: true)
            Issue.record("accepted")
        } catch {
            #expect(error.kind == .configurationInvalid)
            #expect(error.message.contains("line 3 (postup), line 4 (PreDown)"))
        }
        #expect(request.configuration.allSatisfy { $0 == 0 })
    }

    @Test func case_C26_only_root_may_allow_hooks() {
        var request = ApplyRequest()
        request.configuration = [UInt8](small.utf8)
        request.hooks = .allow
        do throws(KeeperFailure) {
            _ = try request.intent(name: wg0, isRoot: false)
            Issue.record("accepted")
        } catch {
            #expect(error.kind == .permission)
        }
    }

    @Test func anAnswerHasThePlanForPeopleAndForPrograms() throws {
        var simulation = Simulation()
        let applied = try #require(simulation.apply(intent(full))?.applied)
        let line = Reply.line(.applied(applied), name: wg0)
        let told = try ReceivedAnswer(Array(line.dropLast()))
        #expect(told.applied.changes.count == applied.changes.count)
        #expect(told.applied.changes.first == "+ link wg0 (userspace)")
        let text = String(decoding: told.applied.json, as: UTF8.self)
        #expect(text.contains("\"plan\":{\"schemaVersion\":1,\"interface\":\"wg0\""))
        #expect(!text.contains("AWE="), "no private key (C93)")
    }

    @Test func answersReadBack() throws {
        let failure = KeeperFailure(.busy, "a \"quoted\"\nline")
        let line = Reply.line(.failure(failure), name: wg0)
        #expect(line.last == 0x0A)
        #expect(line.dropLast().allSatisfy { $0 != 0x0A })
        #expect(try ReceivedAnswer(Array(line.dropLast())).failure == failure)

        var status = KeeperStatus(phase: .unconfirmed, process: 77)
        status.confirmSeconds = 12
        status.unresolved = ["a.example"]
        status.mended = 3
        status.lastWarning = "w"
        let told = try ReceivedAnswer(Array(Reply.line(status, name: wg0).dropLast()))
        #expect(told.status == status)

        let event = KeeperEvent(.healed, "it is back")
        let heard = try ReceivedAnswer(Array(Reply.line(event, wallSeconds: 5).dropLast()))
        #expect(heard.event == event)
    }
}
