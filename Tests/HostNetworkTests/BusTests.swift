// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing

@testable import HostNetwork

private let login = "org.freedesktop.login1"
private let systemd = "org.freedesktop.systemd1"
private let hasBus = unsafe access("/usr/bin/dbus-daemon", X_OK) == 0

@Suite(.serialized, .enabled(if: hasBus, "no dbus-daemon: tools/setup installs it"))
struct SleepMonitorTests {
    private func prepareForSleep(_ sleeps: Bool) -> FakeService.Signal {
        FakeService.Signal(
            path: "/org/freedesktop/login1", interface: "\(login).Manager",
            member: "PrepareForSleep", values: [.flag(sleeps)])
    }

    /// Waits until the bus has something, at most 10 s.
    private func news(_ monitor: borrowing SleepMonitor) -> SleepMonitor.News {
        for _ in 0..<100 {
            var entry = pollfd(fd: monitor.descriptor, events: Int16(POLLIN), revents: 0)
            _ = unsafe poll(&entry, 1, 100)
            let news = monitor.next()
            if news != .nothing { return news }
        }
        return .nothing
    }

    @Test func case_C87_waking_is_heard_and_going_to_sleep_is_not() throws {
        let bus = try #require(PrivateBus())
        guard let monitor = SleepMonitor(busAddress: bus.address) else {
            Issue.record("no monitor")
            return
        }
        // logind may come later than the keeper.
        let logind = FakeService(bus, name: login)
        let quiet1 = monitor.next()
        #expect(quiet1 == .nothing)
        logind.emit(prepareForSleep(true))
        // Another signal of logind tells that the first has arrived.
        logind.emit(
            FakeService.Signal(
                path: "/org/freedesktop/login1", interface: "\(login).Manager",
                member: "PrepareForShutdown", values: [.flag(true)]))
        logind.emit(prepareForSleep(false))
        let heard = news(monitor)
        #expect(heard == .woke)
        let quiet2 = monitor.next()
        #expect(quiet2 == .nothing)
        logind.stop()
    }

    @Test func case_C87_a_signal_of_somebody_else_wakes_nobody() throws {
        let bus = try #require(PrivateBus())
        guard let monitor = SleepMonitor(busAddress: bus.address) else {
            Issue.record("no monitor")
            return
        }
        let other = FakeService(bus, name: "org.example.Other")
        let logind = FakeService(bus, name: login)
        other.emit(prepareForSleep(false))
        other.stop()
        let quiet3 = monitor.next()
        #expect(quiet3 == .nothing)
        logind.emit(prepareForSleep(false))
        let heard = news(monitor)
        #expect(heard == .woke)
        logind.stop()
    }

    @Test func theEndOfTheBusIsTold() throws {
        let bus = try #require(PrivateBus())
        guard let monitor = SleepMonitor(busAddress: bus.address) else {
            Issue.record("no monitor")
            return
        }
        bus.stop()
        let heard = news(monitor)
        #expect(heard == .ended)
    }

    @Test func withoutABusThereIsNone() {
        switch SleepMonitor(busAddress: "unix:path=/nonexistent/bus") {
        case nil: break
        case .some: Issue.record("a monitor without a bus")
        }
    }
}

@Suite(.serialized, .enabled(if: hasBus, "no dbus-daemon: tools/setup installs it"))
struct ServiceUnitsTests {
    @Test func the_table_of_unix_sockets_tells_whose_network_this_is() {
        let heading = "Num       RefCount Protocol Flags    Type St Inode Path\n"
        let line = "0000000000000000: 00000005 00000000 00000000 0002 03 495 "
        func has(_ path: String) -> Bool {
            ServiceUnits.hasSystemd(unixSockets: Array("\(heading)\(line)\(path)\n".utf8))
        }
        #expect(has("/run/systemd/notify"))
        #expect(!has("/tmp/run/systemd/notify"), "a path that only ends so")
        #expect(!has("@/run/systemd/notify"), "an abstract name")
        #expect(!has("/run/systemd/private"))
        #expect(!ServiceUnits.hasSystemd(unixSockets: []))
    }

    private func manager(
        _ bus: PrivateBus, result: String, loadState: String = "loaded"
    ) -> FakeService {
        FakeService(bus, name: systemd) { call in
            var reply = FakeService.Reply()
            if call.hasPrefix("LoadUnit") {
                reply.values = [.path("/org/freedesktop/systemd1/unit/x")]
            } else if call.hasPrefix("Get") {
                reply.values = [.textVariant(loadState)]
            } else if call.hasPrefix("RestartUnit") {
                reply.values = [.path("/org/freedesktop/systemd1/job/7")]
                // Of another job first, and the own one before the answer is read.
                reply.signals = [("6", "failed"), ("7", result)].map { job, result in
                    FakeService.Signal(
                        path: "/org/freedesktop/systemd1", interface: "\(systemd).Manager",
                        member: "JobRemoved",
                        values: [
                            .unsigned(7), .path("/org/freedesktop/systemd1/job/\(job)"),
                            .text("x.service"), .text(result),
                        ])
                }
            }
            return reply
        }
    }

    @Test func aUnitIsStartedAndItsJobAwaited() throws {
        let bus = try #require(PrivateBus())
        let systemd = manager(bus, result: "done")
        guard let units = ServiceUnits(busAddress: bus.address) else {
            Issue.record("no units")
            return
        }
        let isKnown = units.isKnown("nexusguard-engine@wg0.service")
        #expect(isKnown)
        try units.start("nexusguard-engine@wg0.service", limit: 10_000)
        #expect(
            systemd.calls.withLock { $0 }.contains(
                "RestartUnit nexusguard-engine@wg0.service replace"))
        systemd.stop()
    }

    @Test func aUnitThatFailsSaysWhereToLook() throws {
        let bus = try #require(PrivateBus())
        let systemd = manager(bus, result: "failed", loadState: "not-found")
        guard let units = ServiceUnits(busAddress: bus.address) else {
            Issue.record("no units")
            return
        }
        let isKnown = units.isKnown("nexusguard-engine@wg0.service")
        #expect(!isKnown)
        do throws(NetworkError) {
            try units.start("nexusguard-engine@wg0.service", limit: 10_000)
            Issue.record("started")
        } catch {
            #expect(error.message.contains("journalctl -u nexusguard-engine@wg0.service"))
        }
        systemd.stop()
    }

    @Test func aJobThatDoesNotEndIsGivenUp() throws {
        let bus = try #require(PrivateBus())
        let silent = FakeService(bus, name: systemd) { call in
            FakeService.Reply(
                values: call.hasPrefix("RestartUnit")
                    ? [.path("/org/freedesktop/systemd1/job/7")] : [])
        }
        guard let units = ServiceUnits(busAddress: bus.address) else {
            Issue.record("no units")
            return
        }
        #expect(throws: NetworkError.self) {
            try units.start("nexusguard-engine@wg0.service", limit: 50)
        }
        silent.stop()
    }

    @Test func namesThatWouldHaveToBeEscapedHaveNoUnit() {
        #expect(
            ServiceUnits.name("nexusguard-engine", "wg-0.a_b")
                == "nexusguard-engine@wg-0.a_b.service")
        for name in ["a=b", "a+b", "", "a/b", "a b"] {
            #expect(ServiceUnits.name("nexusguard-engine", name) == nil)
        }
    }
}
