// SPDX-License-Identifier: Apache-2.0
// The life of `nexusguard hub run`: open the state, listen, serve; on a signal leave. The tunnel is
// its keeper's and goes on without the hub (C65).
import HTTP
import HostProcess
import SQLite
import Storage
import Synchronization
import TunnelPlan
import WireGuard

public enum HubProgram {
    public enum Listen: Sendable {
        /// `certificate` and `key`: PEM files; nil: one of the hub's own.
        case tls(address: String, port: UInt16, certificate: (file: String, key: String)?)
        /// Plain HTTP, for a proxy on this machine or for tests.
        case loopback(port: UInt16)
    }

    public struct Options: Sendable {
        public var stateDirectory = "/var/lib/nexusguard/hub"
        public var interface: InterfaceName
        public var listen = Listen.tls(address: "*", port: 8443, certificate: nil)
        /// For operators on this machine.
        public var socketPath = "/run/nexusguard/hub/hub.sock"
        /// Its members may use the socket; where there is no such group, only this user and root.
        public var group = "nexusguard"
        public var keeperDirectory = "/run/nexusguard"
        /// Application-specific machine id: what the state is sealed for.
        public var machine: String
        public var version: String
        /// Names in a certificate of the hub's own, besides the host of the endpoint.
        public var names: [String] = []

        public init(interface: InterfaceName, machine: String, version: String) {
            self.interface = interface
            self.machine = machine
            self.version = version
        }
    }

    /// Returns after a signal. Call it before any thread exists.
    public static func run(_ options: Options) throws(HubError) {
        Log.open(.standardError, program: "nexusguard", subject: "hub")
        // Its connections, event streams among them, and its own. 1024 are usual, which one address
        // may have.
        Host.raiseFileLimit(to: UInt(connectionLimit) + 1024)
        let manager = ServiceManager()
        let signals = try hosting { () throws(HostError) in try EndingSignals(hangupEnds: true) }
        let running = try Running(options)
        Log.write(.info, running.greeting(options))
        manager.notify("READY=1")
        running.loop(signals, manager)
        manager.notify("STOPPING=1")
        running.stop()
    }

    /// Milliseconds since 1970.
    static let wallClock: @Sendable () -> Milliseconds = { UniversalTime.now() }
}

/// Everything a running hub consists of.
private struct Running: ~Copyable {
    private let state: HubState
    private let log: Logger
    private let hub: Hub
    private let control: HTTPServer
    private let socket: HTTPServer
    private let flusher: Database
    private let worker: Worker
    private let turn: KeeperTurn

    init(_ options: HubProgram.Options) throws(HubError) {
        let state = try HubState(options.stateDirectory, machine: options.machine)
        let log = Logger(program: "nexusguard-hub", directory: state.directory)
        log.receiveLines(tag: "hub")
        if let remark = state.secrets.remark { Log.write(.warning, remark) }
        let keys = try state.keys()
        let core = try openCore(state.databasePath, keys)
        var surroundings = Hub.Surroundings()
        surroundings.version = options.version
        surroundings.interface = "\(options.interface)"
        surroundings.protection = state.protection
        let host = core.model.settings.endpointHost
        let listen = try listening(options, state, host, &surroundings)
        let backup = state.backupSource(certificatePath: state.certificatePath)
        let hub = Hub(
            core: core, surroundings: surroundings, backup: backup,
            monotonic: Host.monotonicMilliseconds(), clock: HubProgram.wallClock)
        let flusher = try openDatabase(state.databasePath)
        let control = try startServer(controlOptions(listen), hub)
        hub.setControlPort(control.port)
        let socket = try startServer(socketOptions(options), hub)
        let worker = try hosting { () throws(HostError) in try Worker() }
        turn = KeeperTurn(
            KeeperSync(hub: hub, name: options.interface, directory: options.keeperDirectory))
        self.state = state
        self.log = log
        self.hub = hub
        self.flusher = flusher
        self.control = control
        self.socket = socket
        self.worker = worker
    }

    /// One line for the log.
    func greeting(_ options: HubProgram.Options) -> String {
        let place =
            switch options.listen {
            case .loopback: "http://127.0.0.1:\(control.port)"
            case .tls: "https, port \(control.port)"
            }
        let pin = hub.surroundings.pin.map { ", pin \($0)" } ?? ""
        return "listening: \(place)\(pin); operators: \(options.socketPath)"
    }

    /// Until a signal.
    func loop(_ signals: borrowing EndingSignals, _ manager: ServiceManager) {
        var report = ServiceReport(
            period: ServiceManager.watchdogPeriod, now: Host.monotonicMilliseconds())
        var nextUpkeep: Int64 = 0
        var nextFlush = Host.monotonicMilliseconds() + Self.flushInterval
        var poller = Poller()
        while true {
            poller.removeAll()
            poller.add(signals.descriptor)
            poller.wait(milliseconds: Self.tick)
            if signals.next() != nil { return }
            let now = Host.monotonicMilliseconds()
            hub.compareClocks(monotonic: now)
            if turn.begin() { worker.submit { [turn] in turn.perform() } }
            if now >= nextUpkeep {
                nextUpkeep = now + Self.upkeepInterval
                upkeep()
                // Whoever holds the lock for ever holds up the upkeep too.
                let message = report.message(isWell: true, status: hub.summary, now: now)
                if let message { manager.notify(message) }
            }
            if now >= nextFlush {
                nextFlush = now + Self.flushInterval
                flush()
            }
        }
    }

    /// All in milliseconds.
    private static let tick: Int64 = 100
    private static let upkeepInterval: Int64 = 1000
    private static let flushInterval: Int64 = 5000

    private func upkeep() {
        log.flushIfDue()
        var problem: String?
        do throws(Refusal) {
            try hub.upkeep()
        } catch {
            problem = error.problem.detail ?? error.problem.title
        }
        if hub.upkeepTrouble.note(problem), let problem { Log.write(.warning, problem) }
    }

    private func flush() {
        var problem: String?
        do throws(SQLiteError) {
            try hub.flush(to: flusher)
        } catch {
            problem = "\(error)"
        }
        guard hub.storageTrouble.note(problem) else { return }
        if let problem {
            Log.write(.warning, "what devices reported is not written yet: \(problem)")
        } else {
            Log.write(.info, "what devices reported is written again")
        }
    }

    func stop() {
        hub.close()
        control.stop()
        socket.stop()
        flush()
        log.close()
    }
}

/// Lets one step of the keeper's thread run at a time.
private final class KeeperTurn: Sendable {
    private let sync: KeeperSync
    private let isBusy = Atomic<Bool>(false)

    init(_ sync: KeeperSync) { self.sync = sync }

    /// False: the last step still runs.
    func begin() -> Bool { !isBusy.exchange(true, ordering: .acquiring) }

    func perform() {
        sync.step()
        isBusy.store(false, ordering: .releasing)
    }
}

// MARK: opening

private func openDatabase(_ path: String) throws(HubError) -> Database {
    do throws(SQLiteError) {
        return try Database(path)
    } catch {
        throw HubError(error)
    }
}

private func openCore(_ path: String, _ keys: HubKeys) throws(HubError) -> sending HubCore {
    let store: Store
    do throws(SQLiteError) {
        store = try Store(path)
    } catch {
        throw HubError(error)
    }
    do throws(StoreError) {
        return try HubCore(store: store, keys: keys, now: HubProgram.wallClock())
    } catch {
        throw HubError(error)
    }
}

private func listening(
    _ options: HubProgram.Options, _ state: borrowing HubState, _ endpointHost: String?,
    _ surroundings: inout Hub.Surroundings
) throws(HubError) -> HTTPServer.Listen {
    switch options.listen {
    case .loopback(let port):
        return .plainLoopback(port: port)
    case .tls(let address, let port, let given):
        let names = options.names + (endpointHost.map { [$0] } ?? [])
        let (certificate, key) =
            if let given {
                try givenCertificate(given.file, given.key)
            } else {
                try state.ownCertificate(names: names)
            }
        do throws(HTTPError) {
            surroundings.pin = try Certificate.pin(ofPEM: certificate)
            surroundings.certificateEnd = try Certificate.expiry(ofPEM: certificate) * 1000
        } catch {
            throw HubError(error)
        }
        return .tls(address: address, port: port, certificatePEM: certificate, key: key)
    }
}

private func givenCertificate(
    _ file: String, _ keyFile: String
) throws(HubError) -> (certificate: [UInt8], key: ConnectionSecret) {
    let certificate = try hosting { () throws(HostError) in
        try HostFile.read(file, limit: 1 << 20)
    }
    var key = try hosting { () throws(HostError) in try HostFile.read(keyFile, limit: 1 << 20) }
    defer { erase(&key.bytes) }
    guard !key.isOpenToAll else {
        throw HubError(.permission, "everybody may read the key \(keyFile); run chmod 600 on it")
    }
    let secret = ConnectionSecret(copying: key.bytes)
    do throws(HTTPError) {
        try Certificate.check(certificate.bytes, secret)
    } catch {
        throw HubError(.configuration, "\(file), \(keyFile): \(error)")
    }
    return (certificate.bytes, secret)
}

/// Of the control server.
private let connectionLimit = 8192

private func controlOptions(_ listen: HTTPServer.Listen) -> HTTPServer.Options {
    var options = HTTPServer.Options(listen)
    // Many devices may stand behind one address.
    options.addressLimit = 1024
    options.connectionLimit = connectionLimit
    return options
}

private func socketOptions(_ options: HubProgram.Options) -> HTTPServer.Options {
    let group = Host.group(named: options.group)
    return HTTPServer.Options(
        .unix(path: options.socketPath, mode: group == nil ? 0o600 : 0o660, group: group))
}

private func startServer(
    _ options: HTTPServer.Options, _ hub: Hub
) throws(HubError) -> HTTPServer {
    do throws(HTTPError) {
        return try HTTPServer(options) { hub.answer($0) }
    } catch {
        throw HubError(error)
    }
}

extension HubSettings {
    /// Of the endpoint, without its port; nil: none.
    var endpointHost: String? {
        switch PeerEndpoint(text: endpoint) {
        case .address(let endpoint): endpoint.address.description
        case .host(let name, _): name.description
        case nil: nil
        }
    }
}
