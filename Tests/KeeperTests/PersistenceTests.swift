// SPDX-License-Identifier: Apache-2.0
import Foundation
import HostProcess
import Testing
import TunnelPlan
import WireGuard

@testable import Keeper

private func persistent(_ text: String) -> Intent {
    var intent = intent(text)
    intent.isPersistent = true
    return intent
}

@Suite struct BootTests {
    @Test func case_C64_after_a_reboot_the_tunnel_comes_up_without_anybody() {
        var simulation = Simulation()
        simulation.apply(persistent(full))
        simulation.reboot()
        #expect(simulation.host.state == fresh(intent(full)))
        #expect(simulation.saved.confirmed == persistent(full))
        #expect(simulation.events.map(\.kind) == [.applied])
    }

    @Test func whatIsNotToComeBackDoesNot() {
        var simulation = Simulation()
        simulation.apply(intent(full))
        #expect(simulation.persisted == nil)
        simulation.reboot()
        #expect(simulation.host.state == nil)
        #expect(simulation.reconciler.phase == .waiting)
    }

    @Test func aLaterChangeComesBackToo() {
        var simulation = Simulation()
        simulation.apply(persistent(small))
        simulation.apply(intent(other))
        simulation.reboot()
        #expect(simulation.host.state == fresh(intent(other)))
    }

    @Test func anUnconfirmedChangeDoesNotComeBack() {
        var simulation = Simulation()
        simulation.apply(persistent(small))
        simulation.apply(intent(other), confirmSeconds: 60)
        #expect(simulation.persisted == persistent(small))
        simulation.confirm()
        #expect(simulation.persisted?.configuration == intent(other).configuration)
        #expect(simulation.persisted?.isPersistent == true)
    }

    @Test func downEndsItAndUntilBootDoesNot() {
        var simulation = Simulation()
        simulation.apply(persistent(small))
        simulation.down(staysPersistent: true)
        #expect(simulation.host.state == nil)
        #expect(simulation.persisted == persistent(small))
        simulation.reboot()
        #expect(simulation.host.state != nil)
        simulation.down()
        #expect(simulation.persisted == nil)
    }

    /// The network, a module or /dev/net/tun may come late.
    @Test func case_C90_what_cannot_be_brought_up_is_tried_again_for_ever() {
        var simulation = Simulation()
        simulation.apply(persistent(small))
        simulation.reboot { $0.host.snapshotFailure = KeeperFailure(.failed, "not yet") }
        #expect(simulation.host.state == nil)
        #expect(!simulation.reconciler.isVacant)
        simulation.pass(milliseconds: 600_000)
        // One line a minute at most (C109).
        #expect(simulation.events.count <= 11)
        simulation.host.snapshotFailure = nil
        simulation.handle(.host(.pathsChanged))
        simulation.pass(milliseconds: Healer.settlingTime)
        #expect(simulation.host.state == fresh(intent(small)))
        #expect(simulation.reconciler.nextTime == nil)
    }

    @Test func case_C62_a_step_that_fails_at_boot_leaves_nothing_and_is_tried_again() {
        var simulation = Simulation()
        simulation.apply(persistent(small))
        let steps = simulation.host.performed.count
        for step in 0..<steps {
            simulation.reboot { $0.host.fail(steps: step) }
            #expect(simulation.host.state == nil, "step \(step)")
            #expect(simulation.persisted == persistent(small))
            simulation.pass(milliseconds: Healer.retryTime)
            #expect(simulation.host.state == fresh(intent(small)), "step \(step)")
        }
    }

    @Test func aKeeperKilledWhileItBringsTheTunnelUpIsFinishedByTheNext() {
        var reference = Simulation()
        reference.apply(persistent(full))
        let kept = reference.persisted
        for life in 0..<30 {
            var simulation = Simulation()
            simulation.persisted = kept
            simulation.reboot { $0.actionsToLive = life }
            simulation.actionsToLive = nil
            let left = simulation.saved
            simulation.reconciler = Reconciler(name: wg0, seed: 9)
            var boot = Boot()
            boot.intent = kept
            boot.isDue = true
            simulation.handle(.start(left, boot))
            simulation.pass(milliseconds: Healer.retryTime)
            #expect(simulation.host.state == fresh(intent(full)), "killed after \(life)")
            #expect(simulation.persisted == kept)
        }
    }

    @Test func anotherRequestTakesThePlaceOfOneThatCannotBeBroughtUp() {
        var simulation = Simulation()
        simulation.apply(persistent(small))
        simulation.reboot { $0.host.fail(steps: 0) }
        simulation.apply(intent(other))
        simulation.pass(milliseconds: 60_000)
        #expect(simulation.host.state == fresh(intent(other)))
        #expect(simulation.persisted?.configuration == intent(other).configuration)
    }
}

@Suite struct PersistentFileTests {
    private let directory: String
    private var files: StateFiles {
        StateFiles(directory: directory, persistentDirectory: "\(directory)/lib", name: wg0)
    }

    init() {
        var template = Array("/tmp/keeper-test.XXXXXX".utf8CString)
        directory = unsafe String(cString: mkdtemp(&template))
    }

    private func remove() { try? FileManager.default.removeItem(atPath: directory) }

    private func gateway() -> Intent {
        var intent = persistent(full)
        intent.gateway.masquerades = true
        intent.gateway.forwardsBetweenPeers = true
        intent.gateway.answersThroughTunnel = true
        intent.gateway.forwards = [
            PortForward(
                .tcp, publicPort: 8443, target: IPAddress("10.7.0.9")!, targetPort: 443)!,
            PortForward(
                .udp, publicPort: 5000, publicPortEnd: 5010, target: IPAddress("fd00::2")!,
                targetPort: 5000, keepsSource: true)!,
        ]
        return intent
    }

    @Test func everythingIsReadBack() throws {
        defer { remove() }
        #expect(try files.loadPersistent() == nil)
        try files.savePersistent(gateway())
        #expect(try files.loadPersistent() == gateway())
        #expect(try HostFile.read(files.persistentPath, limit: 1 << 20).permissions == 0o600)
        try files.savePersistent(nil)
        #expect(try files.loadPersistent() == nil)
        try files.savePersistent(nil)
    }

    private func write(_ bytes: [UInt8]) throws {
        try HostFile.write(bytes, to: files.persistentPath, replacing: true)
    }

    @Test func case_C23_a_file_cut_off_anywhere_is_refused() throws {
        defer { remove() }
        try files.savePersistent(gateway())
        let whole = try HostFile.read(files.persistentPath, limit: 1 << 20).bytes
        for length in 0..<whole.count {
            try write(Array(whole[..<length]))
            #expect(throws: KeeperFailure.self, "\(length) bytes") {
                _ = try files.loadPersistent()
            }
        }
        try write(whole)
        #expect(try files.loadPersistent() == gateway())
    }

    @Test func case_C23_a_file_with_one_wrong_byte_is_refused() throws {
        defer { remove() }
        try files.savePersistent(gateway())
        let whole = try HostFile.read(files.persistentPath, limit: 1 << 20).bytes
        // What comes after the line of the sum.
        let start = whole.firstIndex(of: 0x0A)! + 1
        for index in start..<whole.count {
            var damaged = whole
            damaged[index] ^= 1
            try write(damaged)
            #expect(throws: KeeperFailure.self, "byte \(index)") { _ = try files.loadPersistent() }
        }
    }

    @Test func case_C26_a_file_that_others_can_write_is_refused() throws {
        defer { remove() }
        try files.savePersistent(gateway())
        #expect(unsafe chmod(files.persistentPath, 0o620) == 0)
        #expect(throws: KeeperFailure.self) { _ = try files.loadPersistent() }
    }

    /// An upgrade finds what the version before it left (C88).
    @Test func case_C88_a_file_without_a_sum_is_read_where_an_older_keeper_left_it() throws {
        defer { remove() }
        var text = Array("# nexusguard-keeper 1 good userspace refuse\n".utf8)
        text += intent(small).configuration.write()
        try HostFile.write(text, to: files.confirmedPath, replacing: true)
        #expect(try files.load().confirmed == intent(small))
    }
}
