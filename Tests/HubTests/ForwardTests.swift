// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import HTTP
import Testing
import WireGuard

@testable import Hub

struct ForwardTests {
    @Test func aForwardReachesItsDevice() throws {
        let test = try TestHub()
        let device = try test.enrol()
        let made = try test.forward(device, port: 8443) { $0.targetPort = 443 }
            .decoded(ForwardView.self)
        #expect(made.targetIp == "10.99.0.2")
        let answer = try test.heartbeat(device).decoded(HeartbeatAnswer.self)
        let forward = try #require(answer.forwards?.first)
        #expect(forward.publicPort == 8443)
        #expect(forward.targetPort == 443)
        #expect(answer.forwardsHash == (try forwardsHash([forward])))
        #expect(test.operate("DELETE", "/forwards/\(made.id)").status == 204)
        let next = try test.heartbeat(device) { $0.forwardsHash = answer.forwardsHash }
            .decoded(HeartbeatAnswer.self)
        #expect(next.forwards == [])
        try test.expectStored()
    }

    @Test func aDeviceShowsItsForwardsAndARevokedOneHasNone() throws {
        let test = try TestHub()
        let device = try test.enrol()
        let other = try test.enrol(2)
        #expect(try test.view(device.id).forwards == [])
        for port in [9000, 8443] { #expect(try test.forward(device, port: port).status == 201) }
        #expect(try test.forward(other, port: 7000).status == 201)
        let shown = try #require(try test.view(device.id).forwards)
        #expect(shown.map(\.publicPort) == [8443, 9000])
        let list = try test.operate("GET", "/devices").decoded(Page<DeviceView>.self)
        #expect(list.items.allSatisfy { $0.forwards == nil })
        let some = try test.operate("GET", "/forwards", query: ["deviceId": device.id])
            .decoded(Page<ForwardView>.self)
        #expect(some.items == shown)
        #expect(test.operate("POST", "/devices/\(device.id)/revoke").status == 204)
        #expect(try test.view(device.id).forwards == [])
        let rest = try test.operate("GET", "/forwards").decoded(Page<ForwardView>.self)
        #expect(rest.items.map(\.publicPort) == [7000])
        // Its ports are free again.
        #expect(try test.forward(other, port: 8443).status == 201)
    }

    @Test func ownAndReservedPortsAndOverlapsAreConflicts() throws {
        let test = try TestHub()
        let device = try test.enrol()
        #expect(try test.forward(device, port: 8000) { $0.publicPortEnd = 8010 }.status == 201)
        for (port, change) in [
            (443, { _ in }), (22, { _ in }), (8005, { _ in }), (8010, { $0.publicPortEnd = 8020 }),
            (7990, { $0.publicPortEnd = 8000 }), (51820, { $0.protocol = "udp" }),
            (
                51000,
                {
                    $0.protocol = "udp"
                    $0.publicPortEnd = 52000
                }
            ),
        ] as [(Int, (inout ForwardRequest) -> Void)] {
            let answer = try test.forward(device, port: port, change)
            #expect(answer.status == 409, "\(port)")
            #expect(answer.code == "conflict")
        }
        #expect(try test.forward(device, port: 8005) { $0.protocol = "udp" }.status == 201)
        #expect(try test.forward(device, port: 8005) { $0.targetIp = "fd99::2" }.status == 201)
        #expect(try test.forward(device, port: 8011).status == 201)
        try test.expectStored()
    }

    @Test func aTargetMustBeRoutedToTheDevice() throws {
        let test = try TestHub()
        let device = try test.enrol(1)
        _ = try test.enrol(2)
        for target in ["10.99.0.3", "10.99.0.1", "192.0.2.1", "fd99::3", "nonsense", "10.99.0.02"] {
            #expect(
                try test.forward(device, port: 9000) { $0.targetIp = target }.code
                    == "bad_request", "\(target)")
        }
        var patch = DevicePatchRequest()
        patch.networks = ["10.1.2.0/24"]
        #expect(test.operate("PATCH", "/devices/\(device.id)", patch).status == 200)
        #expect(try test.forward(device, port: 9000) { $0.targetIp = "10.1.2.3" }.status == 201)
        // The network cannot go while something leads there.
        patch.networks = []
        #expect(test.operate("PATCH", "/devices/\(device.id)", patch).status == 409)
    }

    @Test func nonsenseIsNamed() throws {
        let test = try TestHub()
        let device = try test.enrol()
        for change in [
            { $0.protocol = "icmp" }, { $0.publicPort = 0 }, { $0.publicPort = 65536 },
            { $0.publicPortEnd = 100 }, { $0.targetPort = -1 }, { $0.id = "a b" },
            { $0.description = "a\nb" },
            {
                $0.publicPortEnd = 65535
                $0.targetPort = 60000
            },
            {
                $0.publicPortEnd = 2048
                $0.targetPort = 1025
            },
        ] as [(inout ForwardRequest) -> Void] {
            #expect(try test.forward(device, port: 1024, change).code == "bad_request")
        }
        var request = ForwardRequest(deviceId: "nobody", protocol: "tcp", publicPort: 80)
        #expect(test.operate("POST", "/forwards", request).status == 404)
        request.deviceId = device.id
        request.id = "web"
        #expect(test.operate("POST", "/forwards", request).status == 201)
        request.publicPort = 81
        #expect(test.operate("POST", "/forwards", request).status == 409)
        #expect(test.operate("PUT", "/forwards/web", request).status == 200)
        #expect(test.operate("PUT", "/forwards/other", request).status == 404)
    }

    @Test func theHubsPortIsNotPutWhereAForwardIs() throws {
        let test = try TestHub()
        let device = try test.enrol()
        #expect(try test.forward(device, port: 9000) { $0.protocol = "udp" }.status == 201)
        #expect(test.operate("PATCH", "/settings", ["listenPort": "9000"]).status == 409)
        #expect(test.operate("PATCH", "/settings", ["listenPort": "9001"]).status == 200)
    }

    @Test func aDisabledForwardIsNobodysButItsPortIsTaken() throws {
        let test = try TestHub()
        let device = try test.enrol()
        #expect(try test.forward(device, port: 80) { $0.isEnabled = false }.status == 201)
        #expect(try test.heartbeat(device).decoded(HeartbeatAnswer.self).forwards == [])
        #expect(try test.forward(device, port: 80).status == 409)
    }

    @Test func aForwardThatMovesLeavesItsFormerDevice() throws {
        let test = try TestHub()
        let (one, two) = (try test.enrol(1), try test.enrol(2))
        let made = try test.forward(one, port: 80).decoded(ForwardView.self)
        let before = try test.heartbeat(one).decoded(HeartbeatAnswer.self)
        #expect(before.forwards?.count == 1)
        let request = ForwardRequest(deviceId: two.id, protocol: "tcp", publicPort: 80)
        #expect(test.operate("PUT", "/forwards/\(made.id)", request).status == 200)
        let after = try test.heartbeat(one).decoded(HeartbeatAnswer.self)
        #expect(after.forwards == [])
        #expect(after.forwardsHash != before.forwardsHash)
        #expect(try test.heartbeat(two).decoded(HeartbeatAnswer.self).forwards?.count == 1)
        try test.expectStored()
    }
}
