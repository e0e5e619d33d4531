// SPDX-License-Identifier: Apache-2.0
// Keeps the hub's interface as the hub wants it, through its keeper. Runs on a thread of its own: a
// keeper may take its time.
import HostProcess
import Keeper
import Synchronization
import TunnelPlan
import WireGuard

/// When to speak to the keeper. Pure.
struct KeeperSchedule: Equatable, Sendable {
    enum Action: Equatable, Sendable { case apply, look }

    /// Changes that come within this time go together, in milliseconds.
    static let coalescing: Int64 = 250
    /// Between two looks at the peers, in milliseconds.
    static let interval: Int64 = 2000
    /// Between two tries after a failure: doubled up to the limit.
    static let firstPause: Int64 = 1000
    static let longestPause: Int64 = 30_000

    private var isDirty = true
    private var nextApply: Int64 = 0
    private var nextLook: Int64 = 0
    private var failures = 0

    mutating func changed() { isDirty = true }

    /// `now` in milliseconds of a clock that only goes forward.
    func action(at now: Int64) -> Action? {
        if isDirty, now >= nextApply { return .apply }
        return failures == 0 && now >= nextLook ? .look : nil
    }

    mutating func applied(at now: Int64) {
        isDirty = false
        failures = 0
        nextApply = now + Self.coalescing
        nextLook = now
    }

    /// Whether all is as it should be; else it is applied again.
    mutating func looked(at now: Int64, isComplete: Bool) {
        nextLook = now + Self.interval
        if !isComplete { isDirty = true }
    }

    mutating func failed(at now: Int64) {
        isDirty = true
        failures += 1
        let pause = min(Self.longestPause, Self.firstPause << Int64(min(failures - 1, 10)))
        nextApply = now + pause
    }
}

/// One step at a time; never two threads at once.
final class KeeperSync: Sendable {
    private let hub: Hub
    private let name: InterfaceName
    private let directory: String
    private let schedule = Mutex(KeeperSchedule())

    init(hub: Hub, name: InterfaceName, directory: String) {
        self.hub = hub
        self.name = name
        self.directory = directory
    }

    /// Does what is due.
    func step() {
        if hub.takeTunnelDirty() { schedule.withLock { $0.changed() } }
        let now = Host.monotonicMilliseconds()
        guard let action = schedule.withLock({ $0.action(at: now) }) else { return }
        do throws(KeeperFailure) {
            switch action {
            case .apply: try apply()
            case .look: try look()
            }
        } catch {
            report(error)
            schedule.withLock { $0.failed(at: Host.monotonicMilliseconds()) }
        }
    }

    private func apply() throws(KeeperFailure) {
        let (text, options) = hub.desiredTunnel()
        var client = try KeeperClient.connect(name, directory: directory)
        let applied = try client.apply(text, options: options)
        for warning in applied.warnings { Log.write(.warning, warning) }
        for change in applied.changes.prefix(20) { Log.write(.debug, change) }
        schedule.withLock { $0.applied(at: Host.monotonicMilliseconds()) }
        if hub.keeperIsGood() { Log.write(.info, "peers and forwards of \(name) are applied") }
    }

    private func look() throws(KeeperFailure) {
        var client = try KeeperClient.connect(name, directory: directory)
        let device = try client.deviceState()
        if let device { hub.observe(device) }
        schedule.withLock {
            $0.looked(at: Host.monotonicMilliseconds(), isComplete: device != nil)
        }
    }

    private func report(_ failure: KeeperFailure) {
        if hub.keeperIsBad(failure.message) {
            Log.write(.warning, "cannot apply peers and forwards: \(failure.message)")
        }
    }
}

// MARK: what the hub keeps of it

extension Hub {
    func desiredTunnel() -> (text: [UInt8], options: KeeperClient.ApplyOptions) {
        withCore { $0.desiredTunnel() }
    }

    /// True: it was not good before.
    func keeperIsGood() -> Bool {
        let now = now
        return withCore { core in
            let was = core.keeper
            core.keeper = KeeperReport(problem: nil, lastApplied: now, lastTried: now)
            return was.problem != nil || was.lastApplied == nil
        }
    }

    /// True: this problem is new.
    func keeperIsBad(_ problem: String) -> Bool {
        let now = now
        return withCore { core in
            let was = core.keeper.problem
            core.keeper.problem = problem
            core.keeper.lastTried = now
            return was != problem
        }
    }

    func observe(_ device: DeviceState) {
        var peers: [PublicKey: PeerReport] = [:]
        for peer in device.peers {
            var report = PeerReport()
            report.endpoint = peer.endpoint?.description
            // 0 is never (C79).
            if peer.lastHandshakeSeconds > 0 { report.handshake = peer.lastHandshakeSeconds * 1000 }
            report.received = peer.receivedBytes
            report.sent = peer.sentBytes
            peers[peer.publicKey] = report
        }
        let (now, reports) = (now, peers)
        do throws(Refusal) {
            try locked { (core) throws(Refusal) in try core.observe(reports, at: now) }
        } catch {
            Log.write(.warning, "\(error.problem.detail ?? "")")
        }
    }
}
