// SPDX-License-Identifier: Apache-2.0
import Glibc

/// systemd's units (org.freedesktop.systemd1(5)): what has to outlive the process that starts it is
/// started by systemd, in a control group of its own.
public struct ServiceUnits: ~Copyable {
    private static let service = "org.freedesktop.systemd1"
    private static let path = "/org/freedesktop/systemd1"
    private static let manager = "org.freedesktop.systemd1.Manager"

    private let bus: SystemBus

    /// nil: systemd does not run this machine, it is not to be reached, or its units would live in
    /// another network namespace than this process. `busAddress` is for tests, and nothing else is
    /// asked then.
    public init?(busAddress: String? = nil) {
        guard busAddress != nil || Self.isInit && Self.sharesNetwork else { return nil }
        do throws(SystemBus.Failure) {
            bus = try SystemBus(address: busAddress)
        } catch {
            return nil
        }
    }

    /// As sd_booted(3) tells.
    private static var isInit: Bool { unsafe access("/run/systemd/system", F_OK) == 0 }

    /// Without CAP_SYS_PTRACE nobody may look at /proc/1/ns/net (namespaces(7)), so a unit with few
    /// capabilities could not tell.
    private static var sharesNetwork: Bool {
        // A line of a busy machine's thousands of sockets has up to 160 bytes.
        guard let table = try? SmallFile.read("/proc/self/net/unix", limit: 64 << 20) else {
            return false
        }
        return hasSystemd(unixSockets: table)
    }

    /// The table of a network namespace (/proc/net/unix, proc(5)) has the sockets that were made in
    /// it, and so that of sd_notify(3) only where systemd itself runs.
    static func hasSystemd(unixSockets table: [UInt8]) -> Bool {
        table.split(separator: 0x0A).contains { line in
            line.suffix(notifySocket.count).elementsEqual(notifySocket)
        }
    }

    private static let notifySocket = Array(" /run/systemd/notify".utf8)

    /// The unit of a template for `instance`; nil where the name would have to be escaped
    /// (systemd.unit(5)), which %i would not undo.
    public static func name(_ template: String, _ instance: String) -> String? {
        let isPlain = instance.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
                UInt8(ascii: "."):
                true
            default: false
            }
        }
        return isPlain && !instance.isEmpty ? "\(template)@\(instance).service" : nil
    }

    /// Whether there is a file for it.
    public func isKnown(_ unit: String) -> Bool { state(of: unit, "LoadState") == "loaded" }

    /// Whether it has processes, or soon will.
    public func isActive(_ unit: String) -> Bool {
        switch state(of: unit, "ActiveState") {
        case nil, "inactive", "failed": false
        default: true
        }
    }

    /// nil where systemd does not tell.
    private func state(of unit: String, _ property: String) -> String? {
        do throws(SystemBus.Failure) {
            let answer = try bus.call(Self.service, Self.path, Self.manager, "LoadUnit") {
                (message) throws(SystemBus.Failure) in try message.append(unit)
            }
            let path = try answer.readText(type: "o")
            let state = try bus.call(
                Self.service, path, "org.freedesktop.DBus.Properties", "Get"
            ) { (message) throws(SystemBus.Failure) in
                try message.append("org.freedesktop.systemd1.Unit")
                try message.append(property)
            }
            return try state.readTextInVariant()
        } catch {
            return nil
        }
    }

    /// Returns when it is started: one of Type=notify has said that it is ready. One that runs is ended
    /// before: its process may be on its way out. `limit` in milliseconds. Throws what systemd says, `.busy` when it is not started in time.
    public func start(_ unit: String, limit: Int64) throws(NetworkError) {
        do throws(SystemBus.Failure) {
            try bus.listen(
                "type='signal',sender='\(Self.service)',path='\(Self.path)',"
                    + "interface='\(Self.manager)',member='JobRemoved'")
            try bus.call(Self.service, Self.path, Self.manager, "Subscribe")
            let answer = try bus.call(Self.service, Self.path, Self.manager, "RestartUnit") {
                (message) throws(SystemBus.Failure) in
                try message.append(unit)
                try message.append("replace")
            }
            let job = try answer.readText(type: "o")
            guard let result = try result(of: job, limit: limit) else {
                throw SystemBus.Failure(
                    errno: ETIMEDOUT, name: nil, text: "it was not ready in \(limit) ms")
            }
            guard result == "done" else {
                throw SystemBus.Failure(
                    errno: 0, name: nil,
                    text: "systemd says \(result); see journalctl -u \(unit)")
            }
        } catch {
            throw NetworkError(
                error.errno == ETIMEDOUT ? .busy : .other, errno: error.errno,
                "cannot start \(unit): \(error.text)")
        }
    }

    /// nil: the time is over.
    private func result(of job: String, limit: Int64) throws(SystemBus.Failure) -> String? {
        var now = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &now)
        let deadline = Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000 + limit
        while true {
            while let signal = try bus.nextSignal(Self.manager, "JobRemoved") {
                _ = try signal.readUnsigned()
                guard try signal.readText(type: "o") == job else { continue }
                _ = try signal.readText()  // the unit
                return try signal.readText()
            }
            unsafe clock_gettime(CLOCK_MONOTONIC, &now)
            let rest = deadline - Int64(now.tv_sec) * 1000 - Int64(now.tv_nsec) / 1_000_000
            guard rest > 0 else { return nil }
            bus.wait(microseconds: UInt64(rest) * 1000)
        }
    }
}
