// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import Crypto
import HTTP
import Synchronization
import Testing
import WireGuard

@testable import Hub

struct RotationTests {
    private func rotate(_ test: TestHub, _ device: TestDevice, _ key: PublicKey) -> HTTPResponse {
        test.send(
            "POST", "/api/v1/device/rotate", RotateRequest(publicKey: key.base64),
            bearer: device.token)
    }

    private func observe(
        _ test: TestHub, _ peers: [PublicKey: PeerReport]
    ) throws {
        let now = test.clock.now
        try test.hub.locked { (core) throws(Refusal) in try core.observe(peers, at: now) }
    }

    private func peers(_ test: TestHub) -> [ConfigurationFile.Peer] {
        test.hub.withCore { $0.desiredConfiguration().peers }
    }

    private func report(handshake: Int64? = nil, received: UInt64 = 0) -> PeerReport {
        PeerReport(handshake: handshake, received: received)
    }

    @Test func case_C72_theOldKeyGoesWhenTheNewOneHasCarriedData() throws {
        let test = try TestHub()
        let device = try test.enrol()
        let (old, new) = (device.key, SecretKey.generate().publicKey)
        #expect(rotate(test, device, new).status == 200)
        #expect(rotate(test, device, new).status == 200)
        // Beside the old one, without prefixes.
        #expect(peers(test).map(\.publicKey) == [old, new])
        #expect(peers(test).map(\.allowedIPs.count) == [2, 0])
        try observe(test, [old: report(handshake: 1), new: report()])
        #expect(peers(test).map(\.allowedIPs.count) == [2, 0])
        #expect(peers(test).first?.publicKey == old)
        // Its first handshake moves the prefixes.
        try observe(test, [old: report(handshake: 1), new: report(handshake: 2, received: 180)])
        #expect(peers(test).map(\.publicKey) == [new, old])
        #expect(peers(test).map(\.allowedIPs.count) == [2, 0])
        try observe(test, [old: report(handshake: 1), new: report(handshake: 2, received: 180)])
        #expect(peers(test).count == 2)
        // Data does away with the old one.
        try observe(test, [old: report(handshake: 1), new: report(handshake: 2, received: 300)])
        #expect(peers(test).map(\.publicKey) == [new])
        #expect(try test.view(device.id).publicKey == new.base64)
        try test.expectStored()
    }

    private func announce(
        _ test: TestHub, _ device: TestDevice, _ key: PublicKey, inUse: Bool
    ) -> HTTPResponse {
        test.send(
            "POST", "/api/v1/device/rotate",
            RotateRequest(publicKey: key.base64, isInUse: inUse), bearer: device.token)
    }

    /// Before that a handshake would open a way for packets that the hub drops: one prefix, one peer.
    @Test func case_C72_aKeyThatIsAnnouncedIsNoPeerBeforeItIsUsed() throws {
        let test = try TestHub()
        let device = try test.enrol()
        let (old, new) = (device.key, SecretKey.generate().publicKey)
        var peer = report(handshake: 1, received: 500)
        peer.endpoint = "192.0.2.7:1234"
        try observe(test, [old: peer])
        #expect(announce(test, device, new, inUse: false).status == 200)
        #expect(announce(test, device, new, inUse: false).status == 200)
        #expect(peers(test).map(\.publicKey) == [old])
        #expect(try test.view(device.id).rotation == "promised")
        try test.expectStored()
        // It moves at once, and the hub begins the handshake.
        #expect(announce(test, device, new, inUse: true).status == 200)
        #expect(announce(test, device, new, inUse: true).status == 200)
        #expect(peers(test).map(\.publicKey) == [new, old])
        #expect(peers(test).map(\.allowedIPs.count) == [2, 0])
        #expect(peers(test)[0].endpoint == .address(Endpoint("192.0.2.7:1234")!))
        #expect(peers(test)[0].keepalive != nil)
        // A handshake alone is no data.
        try observe(test, [old: peer, new: report()])
        try observe(test, [old: peer, new: report(handshake: 2, received: 92)])
        try observe(test, [old: peer, new: report(handshake: 2, received: 92)])
        #expect(peers(test).count == 2)
        try observe(test, [old: peer, new: report(handshake: 2, received: 124)])
        #expect(peers(test).map(\.publicKey) == [new])
        #expect(peers(test)[0].keepalive == nil)
        #expect(peers(test)[0].endpoint == nil)
        try test.expectStored()
    }

    @Test func case_C72_aDeviceThatGoesBackIsFollowed() throws {
        for isTold in [true, false] {
            let test = try TestHub()
            let device = try test.enrol()
            let (old, new) = (device.key, SecretKey.generate().publicKey)
            let before = report(handshake: test.clock.now - 60_000, received: 500)
            #expect(announce(test, device, new, inUse: false).status == 200)
            #expect(announce(test, device, new, inUse: true).status == 200)
            try observe(test, [old: before, new: report()])
            #expect(peers(test).map(\.publicKey) == [new, old])
            test.clock.advance(seconds: 30)
            if isTold {
                #expect(announce(test, device, old, inUse: true).status == 200)
            } else {
                try observe(test, [old: report(handshake: test.clock.now), new: report()])
            }
            #expect(peers(test).map(\.publicKey) == [old])
            #expect(peers(test).map(\.allowedIPs.count) == [2])
            try test.expectStored()
        }
    }

    @Test func aKeyThatWasNotOfferedIsNotUsed() throws {
        let test = try TestHub()
        let device = try test.enrol()
        let key = SecretKey.generate().publicKey
        #expect(announce(test, device, key, inUse: true).code == "bad_request")
        #expect(announce(test, device, device.key, inUse: true).status == 200)
        #expect(announce(test, device, key, inUse: false).status == 200)
        test.clock.advance(seconds: 601)
        try observe(test, [:])
        #expect(announce(test, device, key, inUse: true).code == "bad_request")
        #expect(peers(test).map(\.publicKey) == [device.key])
    }

    @Test func aKeyThatNobodyUsesIsForgotten() throws {
        let test = try TestHub()
        let device = try test.enrol()
        #expect(rotate(test, device, SecretKey.generate().publicKey).status == 200)
        test.clock.advance(seconds: 600)
        try observe(test, [:])
        #expect(peers(test).count == 2)
        test.clock.advance(seconds: 1)
        try observe(test, [:])
        #expect(peers(test).map(\.publicKey) == [device.key])
        try test.expectStored()
    }

    @Test func aKeyOfAnotherDeviceIsRefused() throws {
        let test = try TestHub()
        let (one, two) = (try test.enrol(1), try test.enrol(2))
        #expect(rotate(test, one, two.key).code == "conflict")
        let key = SecretKey.generate().publicKey
        #expect(rotate(test, one, key).status == 200)
        #expect(rotate(test, two, key).code == "conflict")
        let hub = test.hub.withCore { $0.publicKey }
        #expect(rotate(test, two, hub).code == "conflict")
        #expect(rotate(test, one, one.key).status == 200)
        #expect(
            test.send(
                "POST", "/api/v1/device/rotate", RotateRequest(publicKey: "x"), bearer: one.token
            ).code == "bad_request")
    }

    @Test func whatTheHubsInterfaceSeesIsShown() throws {
        let test = try TestHub()
        let device = try test.enrol()
        var peer = report(handshake: test.clock.now, received: 5)
        peer.endpoint = "192.0.2.7:1234"
        try observe(test, [device.key: peer])
        let hub = try #require(try test.view(device.id).tunnel.hub)
        #expect(hub.endpoint == "192.0.2.7:1234")
        #expect(hub.rxBytes == 5)
        #expect(hub.lastHandshake?.unixSeconds == test.clock.now / 1000)
    }
}

struct EventTests {
    @Test func changesAreTold() throws {
        let test = try TestHub()
        let device = try test.enrol()
        let stream = EventList()
        test.hub.streams.add(stream, device: device.id)
        #expect(test.operate("PATCH", "/settings", ["mtu": "1400"]).status == 200)
        #expect(try test.forward(device, port: 80).status == 201)
        #expect(test.operate("POST", "/devices/\(device.id)/reset").status == 204)
        #expect(stream.events == ["config", "forwards", "command"])
        _ = try test.enrol(2)
        #expect(stream.events.count == 3)
        #expect(test.operate("POST", "/devices/\(device.id)/revoke").status == 204)
        #expect(stream.events.count > 3)
    }

    @Test func anOfferedKeyThatComesAgainIsOnePeer() throws {
        let test = try TestHub()
        let token = try test.makeToken()
        let answer = try test.provision(token).decoded(ProvisionAnswer.self)
        let key = SecretKey.generate().publicKey
        let request = RotateRequest(publicKey: key.base64)
        let offered = test.send(
            "POST", "/api/v1/device/rotate", request, bearer: answer.deviceToken.exposed)
        #expect(offered.status == 200)
        #expect(test.provision(token, key: key).status == 200)
        let peers = test.hub.withCore { $0.desiredConfiguration().peers.map(\.publicKey) }
        #expect(peers == [key])
        try test.expectStored()
    }

    @Test func whoIsRevokedOrLeavesHearsNoMore() throws {
        let test = try TestHub()
        let (one, two) = (try test.enrol(1), try test.enrol(2))
        let streams = [EventList(), EventList()]
        test.hub.streams.add(streams[0], device: one.id)
        test.hub.streams.add(streams[1], device: two.id)
        #expect(test.operate("POST", "/devices/\(one.id)/revoke").status == 204)
        #expect(streams.map(\.isClosed) == [true, false])
        #expect(streams[0].events == ["command"])
        #expect(test.send("POST", "/api/v1/unenroll", bearer: two.token).status == 204)
        #expect(streams[1].isClosed)
    }

    @Test func anOperatorThatIsGoneHearsNoMore() throws {
        let test = try TestHub()
        let request = OperatorRequest(name: "ada", password: SecretText("correct horse battery"))
        #expect(test.operate("POST", "/operators", request).status == 201)
        let session = try test.send(
            "POST", "/api/v1/admin/login",
            LoginRequest(name: request.name, password: request.password)
        ).decoded(LoginAnswer.self).session.exposed
        let streams = [
            try #require(test.send("GET", "/api/v1/admin/events", bearer: session).stream),
            try #require(test.operate("GET", "/events").stream),
        ]
        try test.hub.upkeep()
        #expect(streams.map(\.isClosed) == [false, false])
        #expect(test.operate("DELETE", "/operators/ada").status == 204)
        try test.hub.upkeep()
        #expect(streams.map(\.isClosed) == [true, false])
    }

    @Test func aDeviceHasTwoStreamsAtMost() throws {
        let test = try TestHub()
        let device = try test.enrol()
        let streams = (0..<3).map { _ in EventList() }
        for stream in streams { test.hub.streams.add(stream, device: device.id) }
        #expect(streams.map(\.isClosed) == [true, false, false])
        test.hub.close()
        #expect(streams.map(\.isClosed) == [true, true, true])
    }
}

private final class EventList: EventSink {
    private let state = Mutex<(events: [String], isClosed: Bool)>(([], false))

    var events: [String] { state.withLock { $0.events } }
    var isClosed: Bool { state.withLock { $0.isClosed } }

    func send(event: String, data: String) -> Bool {
        state.withLock { $0.events.append(event) }
        return true
    }

    func close() { state.withLock { $0.isClosed = true } }
}
