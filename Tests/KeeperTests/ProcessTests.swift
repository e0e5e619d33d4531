// SPDX-License-Identifier: Apache-2.0
// The loop over a real socket, with a host in memory.
import Foundation
import HostProcess
import Synchronization
import Testing
import TunnelPlan
import WireGuard

@testable import Keeper

/// A memory host that outlives its keeper, as the kernel does.
private final class SharedHost: Sendable {
    let memory = Mutex(MemoryHost())
    var state: TunnelState? { memory.withLock { $0.state } }
}

private struct HostHandle: TunnelHost {
    let shared: SharedHost

    func snapshot() throws(KeeperFailure) -> TunnelState? {
        try shared.memory.withLock { host throws(KeeperFailure) in try host.snapshot() }
    }
    func facts(for configuration: ConfigurationFile) throws(KeeperFailure) -> HostFacts {
        try shared.memory.withLock { host throws(KeeperFailure) in
            try host.facts(for: configuration)
        }
    }
    func chooseBackend(_ preference: BackendKind?) throws(KeeperFailure) -> BackendChoice {
        BackendChoice(preference ?? .userspace)
    }
    func perform(_ change: Change) throws(KeeperFailure) {
        try shared.memory.withLock { host throws(KeeperFailure) in try host.perform(change) }
    }
    var descriptors: [Int32] { [] }
    func drainEvents() -> [HostEvent] { [] }
    func resolve(_ name: HostName) {}
}

/// One directory, one host, keepers in threads.
private final class Stage: Sendable {
    let directory: String
    let host = SharedHost()
    let failure = Mutex<KeeperFailure?>(nil)
    var files: StateFiles {
        StateFiles(directory: directory, persistentDirectory: directory, name: wg0)
    }

    init() {
        var template = Array("/tmp/keeper-test.XXXXXX".utf8CString)
        directory = unsafe String(cString: mkdtemp(&template))
    }

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    /// Returns a semaphore that tells its end.
    func startKeeper(writeInterval: Int64? = nil) -> DispatchSemaphore {
        let ready = DispatchSemaphore(value: 0)
        let ended = DispatchSemaphore(value: 0)
        Thread { [self] in
            do throws(KeeperFailure) {
                let lock = try asking { () throws(HostError) in
                    try FileLock.take(files.lockPath)
                }
                let listener = try asking { () throws(HostError) in
                    try Listener.open(files.socketPath)
                }
                let signals = try asking { () throws(HostError) in
                    try EndingSignals(hangupEnds: false)
                }
                var loop = try KeeperLoop(
                    name: wg0, files: files, group: nil, target: HostHandle(shared: host),
                    listener: listener, signals: signals)
                if let writeInterval { loop.unwritten.interval = writeInterval }
                try loop.start()
                ready.signal()
                _ = loop.run()
                _ = consume lock
            } catch {
                failure.withLock { $0 = error }
                ready.signal()
            }
            ended.signal()
        }.start()
        ready.wait()
        return ended
    }

    func connect() throws(KeeperFailure) -> KeeperClient {
        try KeeperClient.connect(wg0, directory: directory)
    }

    /// The keeper ends where it is, and leaves everything in place.
    func removeSocket() { try? HostFile.remove(files.socketPath) }

    var names: [String] { Host.names(in: directory).sorted() }
}

@Suite(.serialized) struct ProcessTests {
    @Test func aTunnelLivesAndLeavesNothing() throws {
        let stage = Stage()
        let ended = stage.startKeeper()
        var client = try stage.connect()
        #expect(try client.status().phase == .waiting)

        var dryRun = KeeperClient.ApplyOptions()
        dryRun.isDryRun = true
        let plan = try client.apply([UInt8](full.utf8), options: dryRun)
        #expect(plan.isPlan)
        #expect(stage.host.state == nil)
        let applied = try client.apply([UInt8](full.utf8))
        #expect(!applied.isPlan)
        let device = try #require(try client.deviceState())
        #expect(device.peers.map(\.publicKey) == [key(1)])
        #expect(applied.changes == plan.changes)
        #expect(stage.host.state?.host.rules.count == 2)
        #expect(try client.status().phase == .up)
        #expect(stage.names == ["wg0.conf", "wg0.keeper.sock", "wg0.lock"])
        #expect(try client.apply([UInt8](full.utf8)).changes.isEmpty)

        try client.down()
        ended.wait()
        #expect(stage.host.state == nil)
        #expect(stage.names == ["wg0.lock"])
        #expect(throws: KeeperFailure.self) { _ = try stage.connect() }
    }

    @Test func theNextKeeperAdoptsWhatIsThere() throws {
        let stage = Stage()
        let first = stage.startKeeper()
        var client = try stage.connect()
        _ = try client.apply([UInt8](full.utf8))
        stage.removeSocket()
        first.wait()
        let before = stage.host.state
        stage.host.memory.withLock { $0.forgetLog() }

        let second = stage.startKeeper()
        var next = try stage.connect()
        #expect(try next.status().phase == .up)
        #expect(stage.host.memory.withLock { $0.performed }.isEmpty)
        #expect(stage.host.state == before)
        // It knows what to undo.
        try next.down()
        second.wait()
        #expect(stage.host.state == nil)
    }

    @Test func aSecondKeeperIsRefusedAndNamesTheFirst() throws {
        let stage = Stage()
        let first = stage.startKeeper()
        let second = stage.startKeeper()
        second.wait()
        let failure = try #require(stage.failure.withLock { $0 })
        #expect(failure.exitCode == 8)
        #expect(failure.message.contains("process \(getpid())"))
        stage.removeSocket()
        first.wait()
    }

    @Test func refusalsKeepTheirKind() throws {
        let stage = Stage()
        let ended = stage.startKeeper()
        var client = try stage.connect()
        #expect(throws: KeeperFailure.self) {
            do throws(KeeperFailure) {
                _ = try client.apply([UInt8]("[Interface]\nnonsense\n".utf8))
            } catch {
                #expect(error.exitCode == 5)
                throw error
            }
        }
        stage.removeSocket()
        ended.wait()
    }

    /// Clients that send half a request, or read nothing, keep nobody waiting.
    @Test func aStalledClientBlocksNobody() throws {
        let stage = Stage()
        let ended = stage.startKeeper()
        let half = try Descriptor.connect(stage.files.socketPath)
        #expect(half.write([UInt8]("{\"schemaVersion\":1".utf8), from: 0) == 18)
        let deaf = try Descriptor.connect(stage.files.socketPath)
        let status = RequestText.plain("status")
        #expect(deaf.write(status, from: 0) == status.count)
        for _ in 0..<50 {
            var client = try stage.connect()
            #expect(try client.status().phase == .waiting)
        }
        stage.removeSocket()
        ended.wait()
    }

    @Test func aRequestThatIsTooLongIsRefused() throws {
        let stage = Stage()
        let ended = stage.startKeeper()
        let client = try Descriptor.connect(stage.files.socketPath)
        let chunk = [UInt8](repeating: 0x20, count: 1 << 20)
        var buffer = [UInt8](repeating: 0, count: 4096)
        var answer: [UInt8] = []
        var sent = 0
        var poller = Poller()
        loop: while true {
            poller.removeAll()
            poller.add(client.number, read: true, write: sent < requestLimit)
            poller.wait(milliseconds: 30_000)
            if sent < requestLimit { sent += client.write(chunk, from: 0) ?? requestLimit }
            switch client.read(into: &buffer) {
            case .bytes(let count): answer += buffer[..<count]
            case .empty: continue
            case .ended: break loop
            }
        }
        let told = try ReceivedAnswer(Array(answer.prefix { $0 != 0x0A }))
        #expect(told.failure?.kind == .configurationInvalid)
        var other = try stage.connect()
        #expect(try other.status().phase == .waiting)
        stage.removeSocket()
        ended.wait()
    }

    @Test func eventsAreHeard() throws {
        let stage = Stage()
        let ended = stage.startKeeper()
        var listener = try stage.connect()
        try listener.hearEvents()
        var client = try stage.connect()
        _ = try client.apply([UInt8](small.utf8))
        let event = try #require(try listener.nextEvent(milliseconds: 30_000))
        #expect(event.kind == .applied)
        try client.down()
        ended.wait()
        #expect(try listener.nextEvent(milliseconds: 30_000)?.kind == .ended)
    }

    @Test func case_C109_what_the_disk_refuses_is_said_and_written_later() throws {
        let stage = Stage()
        // What refuses root as well: a file where the directory has to be.
        let obstacle = "\(stage.directory)/tunnels"
        try HostFile.write([], to: obstacle, replacing: false)
        let ended = stage.startKeeper(writeInterval: 20)
        var client = try stage.connect()
        var options = KeeperClient.ApplyOptions()
        options.isPersistent = true
        _ = try client.apply([UInt8](small.utf8), options: options)
        #expect(stage.host.state != nil)
        let warning = try #require(try client.status().lastWarning)
        #expect(warning.contains("cannot write \(stage.files.persistentPath)"))
        try HostFile.remove(obstacle)
        for _ in 0..<1000 where try client.status().lastWarning != nil { usleep(10_000) }
        #expect(try client.status().lastWarning == nil)
        #expect(try stage.files.loadPersistent()?.configuration == intent(small).configuration)
        try client.down()
        ended.wait()
    }

    @Test func filesKeepEverything() throws {
        let stage = Stage()
        var stored = Stored()
        stored.confirmed = intent(small)
        stored.pending = intent(full, hooks: .ignore)
        for phase in [Stored.Phase.applying, .unconfirmed(deadline: 123_456), .ending] {
            stored.phase = phase
            try stage.files.save(stored, replacing: Stored())
            #expect(try stage.files.load() == stored)
        }
        for path in [stage.files.confirmedPath, stage.files.pendingPath] {
            #expect(try HostFile.read(path, limit: 1 << 20).permissions == 0o600)
        }
        var good = Stored()
        good.confirmed = intent(full)
        try stage.files.save(good, replacing: stored)
        #expect(try stage.files.load() == good)
        try stage.files.save(Stored(), replacing: good)
        #expect(stage.names.isEmpty)
    }
}
