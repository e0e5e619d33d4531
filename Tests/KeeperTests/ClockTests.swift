// SPDX-License-Identifier: Apache-2.0
// A clock that went back (C78).
import Foundation
import HostProcess
import Testing
import TunnelPlan
import WireGuard

@testable import Keeper

private let own = key(77)
private let dialling = text(
    "Address = 10.7.0.1/24", "MTU = 1420",
    peers: peer(1, "AllowedIPs = 10.7.0.2/32", "Endpoint = 192.0.2.1:51820"),
    peer(2, "AllowedIPs = 10.7.0.3/32"))

private func persistent(on backend: BackendKind) -> Intent {
    var intent = intent(dialling)
    intent.backend = backend
    intent.isPersistent = true
    return intent
}

/// It ran, and its latest handshake was at `label`.
private func ran(on backend: BackendKind, label: Int64 = 1_700_000_000) -> Simulation {
    var simulation = Simulation()
    simulation.host.ownPublicKey = own
    simulation.apply(persistent(on: backend))
    simulation.host.label = label
    simulation.pass(milliseconds: ClockGuard.lookInterval)
    return simulation
}

/// The machine begins `seconds` before its latest handshake.
private func begun(_ backend: BackendKind, behind seconds: Int64) -> Simulation {
    var simulation = ran(on: backend)
    simulation.reboot {
        $0.host.ownPublicKey = own
        $0.setClock(1_700_000_000 - seconds)
    }
    return simulation
}

extension Simulation {
    fileprivate var endpoint: Endpoint? {
        host.state?.device.peers.first { $0.publicKey == key(1) }?.endpoint
    }
    fileprivate var status: Int64? { reconciler.clock.behind(now) }
}

@Suite struct ClockTests {
    @Test func case_C78_an_engine_begins_above_what_was_sent_before_the_clock_went_back() {
        let simulation = begun(.userspace, behind: 86_400)
        #expect(simulation.host.floor == 1_700_000_000 + ClockGuard.margin)
        #expect(simulation.endpoint == Endpoint("192.0.2.1:51820"))
        #expect(simulation.events.map(\.kind) == [.clock, .applied])
        #expect(simulation.status == 86_400)
    }

    @Test(arguments: [BackendKind.userspace, .kernel])
    func with_a_good_clock_nothing_waits_and_nothing_is_raised(_ backend: BackendKind) {
        let simulation = begun(backend, behind: 0)
        #expect(simulation.host.floor == nil)
        #expect(simulation.endpoint != nil)
        #expect(simulation.events.map(\.kind) == [.applied])
        #expect(simulation.status == nil)
    }

    @Test func case_C78_the_kernels_endpoints_wait_for_the_clock() {
        var simulation = begun(.kernel, behind: 86_400)
        #expect(simulation.endpoint == nil)
        #expect(simulation.host.state?.device.peers.count == 2)
        simulation.pass(milliseconds: 30_000)
        // A restarted agent asks for the same again.
        #expect(simulation.apply(persistent(on: .kernel))?.applied?.changes == [])
        #expect(simulation.endpoint == nil)
        simulation.setClock(1_700_000_040)
        simulation.pass(milliseconds: ClockGuard.holdInterval)
        #expect(simulation.endpoint == Endpoint("192.0.2.1:51820"))
        #expect(simulation.status == nil)
        #expect(simulation.events.last?.message.contains("has passed") == true)
    }

    @Test func case_C78_but_not_for_ever() {
        var simulation = begun(.kernel, behind: 86_400)
        simulation.pass(milliseconds: ClockGuard.longestHold - 1)
        #expect(simulation.endpoint == nil)
        simulation.pass(milliseconds: ClockGuard.holdInterval)
        #expect(simulation.endpoint == Endpoint("192.0.2.1:51820"))
        #expect(simulation.status != nil)
        #expect(simulation.events.last?.message.contains("set the clock") == true)
        let said = simulation.events.count
        simulation.pass(milliseconds: 600_000)
        #expect(simulation.events.count == said)
    }

    @Test func endpoints_with_names_wait_too() {
        var simulation = Simulation()
        simulation.host.ownPublicKey = own
        var named = persistent(on: .kernel)
        named.configuration =
            intent(
                text(
                    "Address = 10.7.0.1/24", "MTU = 1420",
                    peers: peer(1, "AllowedIPs = 10.7.0.2/32", "Endpoint = hub.example:51820"))
            ).configuration
        simulation.apply(named)
        simulation.host.label = 1_700_000_000
        simulation.pass(milliseconds: ClockGuard.lookInterval)
        simulation.reboot {
            $0.host.ownPublicKey = own
            $0.setClock(1_600_000_000)
        }
        let address = ResolvedAddress(IPAddress("192.0.2.9")!)
        simulation.handle(.host(.resolved(HostName("hub.example")!, [address])))
        simulation.pass(milliseconds: 60_000)
        #expect(simulation.endpoint == nil)
        simulation.setClock(1_700_000_100)
        simulation.pass(milliseconds: NameBook.checkInterval)
        #expect(simulation.endpoint == Endpoint("192.0.2.9:51820"))
    }

    @Test func a_tunnel_that_runs_keeps_its_endpoints_when_the_clock_goes_back() {
        var simulation = ran(on: .kernel)
        simulation.host.forgetLog()
        simulation.setClock(1_600_000_000)
        simulation.restart()
        simulation.pass(milliseconds: 300_000)
        #expect(simulation.endpoint == Endpoint("192.0.2.1:51820"))
        #expect(simulation.host.performed == [])
    }

    @Test func a_link_that_somebody_removed_under_an_early_clock_is_made_with_the_floor() {
        var simulation = ran(on: .userspace)
        simulation.setClock(1_600_000_000)
        simulation.host.state = nil
        simulation.handle(.host(.tunnelChanged))
        simulation.pass(milliseconds: Healer.settlingTime)
        #expect(simulation.host.floor == 1_700_000_000 + ClockGuard.margin)
        #expect(simulation.endpoint != nil)
    }

    @Test func another_key_has_sent_nothing() {
        var simulation = ran(on: .kernel)
        simulation.reboot {
            $0.host.ownPublicKey = key(78)
            $0.setClock(1_600_000_000)
        }
        #expect(simulation.endpoint != nil)
        #expect(simulation.status == nil)
    }

    @Test func a_plan_holds_nothing_back() {
        var simulation = ran(on: .kernel)
        simulation.down(staysPersistent: true)
        simulation.setClock(1_600_000_000)
        let planned = simulation.apply(persistent(on: .kernel), dryRun: true)
        #expect(planned?.applied?.changes.isEmpty == false)
        #expect(simulation.reconciler.clock.hold == nil)
    }

    // MARK: the record

    @Test func a_tunnel_in_use_is_recorded_seldom_and_its_end_exactly() {
        var simulation = ran(on: .kernel)
        #expect(simulation.recorded == [ClockRecord(publicKey: own, seconds: 1_700_000_000)])
        for _ in 0..<30 {
            simulation.host.label! += 120
            simulation.pass(milliseconds: 120_000)
        }
        #expect(simulation.recorded.count == 1 + 15)
        #expect(simulation.recorded.last!.seconds + ClockGuard.margin > simulation.host.label!)
        simulation.host.label! += 7
        let end = simulation.host.label!
        simulation.down()
        #expect(simulation.recorded.last?.seconds == end)
    }

    @Test func an_idle_tunnel_is_not_written() {
        var simulation = ran(on: .userspace)
        simulation.pass(milliseconds: 24 * 3_600_000)
        #expect(simulation.recorded.count == 1)
        simulation.handle(.leaving)
        #expect(simulation.recorded.count == 1)
    }

    @Test func a_clock_that_is_set_forward_is_recorded_with_the_next_handshake() {
        var simulation = ran(on: .userspace, label: 1_000)
        simulation.host.label = 1_700_000_000
        simulation.pass(milliseconds: ClockGuard.lookInterval)
        #expect(simulation.recorded.map(\.seconds) == [1_000, 1_700_000_000])
    }

    /// A wrong clock of once does not come back with each look.
    @Test func a_record_never_falls() {
        var simulation = ran(on: .userspace)
        simulation.host.label = 5
        simulation.pass(milliseconds: 600_000)
        simulation.handle(.leaving)
        #expect(simulation.recorded.map(\.seconds) == [1_700_000_000])
    }

    @Test func the_label_is_read_from_an_engines_document() {
        let document = #"{"schemaVersion":1,"ladder":{"udp_gso":true},"timestamp_floor":"#
        #expect(latestLabel(ofStateDocument: Array((document + "\"17.000000005\"}").utf8)) == 17)
        #expect(latestLabel(ofStateDocument: Array((document + "\"0.000000000\"}").utf8)) == nil)
        #expect(latestLabel(ofStateDocument: Array((document + "5}").utf8)) == nil)
        #expect(latestLabel(ofStateDocument: Array("{}".utf8)) == nil)
        #expect(latestLabel(ofStateDocument: []) == nil)
    }
}

@Suite struct ClockFileTests {
    @Test func a_record_is_read_back_and_damage_is_no_record() throws {
        var template = Array("/tmp/keeper-clock.XXXXXX".utf8CString)
        let directory = unsafe String(cString: mkdtemp(&template))
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let files = StateFiles(
            directory: directory, persistentDirectory: "\(directory)/lib", name: wg0)
        #expect(files.loadClock() == nil)
        let record = ClockRecord(publicKey: own, seconds: 1_700_000_000)
        try files.saveClock(record)
        #expect(files.loadClock() == record)
        let whole = try HostFile.read(files.clockPath, limit: 256).bytes
        for length in 0..<whole.count {
            try HostFile.write(Array(whole[..<length]), to: files.clockPath, replacing: true)
            #expect(files.loadClock() == nil, "\(length) bytes")
        }
        try files.saveClock(record)
        #expect(unsafe chmod(files.clockPath, 0o620) == 0)
        #expect(files.loadClock() == nil)
    }
}
