// SPDX-License-Identifier: Apache-2.0
import Testing
import WireGuard

@testable import Hub

struct HubKeeperTests {
    @Test func changesGoTogether() {
        var schedule = KeeperSchedule()
        #expect(schedule.action(at: 0) == .apply)
        schedule.applied(at: 0)
        #expect(schedule.action(at: 0) == .look)
        schedule.looked(at: 0, isComplete: true)
        #expect(schedule.action(at: 1) == nil)
        var applied = 0
        for time in Int64(1)...1000 {
            schedule.changed()
            if schedule.action(at: time) == .apply {
                applied += 1
                schedule.applied(at: time)
            }
        }
        #expect(applied == 4)
    }

    @Test func failuresWaitLongerAndEnd() {
        var schedule = KeeperSchedule()
        var (time, pauses): (Int64, [Int64]) = (0, [])
        for _ in 0..<8 {
            schedule.failed(at: time)
            let start = time
            while schedule.action(at: time) != .apply { time += 100 }
            pauses.append(time - start)
        }
        #expect(pauses == [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000])
        schedule.applied(at: time)
        schedule.failed(at: time)
        #expect(schedule.action(at: time + 1000) == .apply)
    }

    @Test func aDeviceThatIsGoneIsAppliedAgain() {
        var schedule = KeeperSchedule()
        schedule.applied(at: 0)
        schedule.looked(at: 0, isComplete: false)
        #expect(schedule.action(at: KeeperSchedule.coalescing) == .apply)
    }

    @Test func theTunnelIsWhatTheModelSays() throws {
        let test = try TestHub { $0.masquerades = true }
        let (one, two) = (try test.enrol(1), try test.enrol(2))
        var patch = DevicePatchRequest()
        patch.networks = ["10.1.0.0/16"]
        #expect(test.operate("PATCH", "/devices/\(one.id)", patch).status == 200)
        #expect(try test.forward(two, port: 80).status == 201)
        #expect(try test.forward(two, port: 81) { $0.isEnabled = false }.status == 201)
        let (text, options) = test.hub.desiredTunnel()
        let parsed = try ConfigurationFile.parse(text.span, file: "hub.conf", lenient: false)
        #expect(parsed.warnings.isEmpty)
        let file = parsed.configuration
        #expect(file.interface.addresses.map(\.description) == ["10.99.0.1/24", "fd99::1/64"])
        #expect(file.interface.listenPort == 51820)
        #expect(file.interface.hooks.isEmpty)
        let prefixes = Dictionary(
            uniqueKeysWithValues: file.peers.map { ($0.publicKey, joined($0.allowedIPs)) })
        #expect(prefixes[one.key] == "10.99.0.2/32,fd99::2/128,10.1.0.0/16")
        #expect(prefixes[two.key] == "10.99.0.3/32,fd99::3/128")
        #expect(options.masquerades && options.forwardsBetweenPeers && options.isPersistent)
        #expect(options.forwards.map(\.publicPort) == [80])
        #expect(test.operate("POST", "/devices/\(two.id)/revoke").status == 204)
        let next = test.hub.desiredTunnel()
        #expect(next.options.forwards.isEmpty)
        #expect(!String(decoding: next.text, as: UTF8.self).contains(two.key.base64))
    }
}
