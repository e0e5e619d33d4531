// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import HTTP
import SQLite
import Synchronization

/// The control server: HTTP requests in, answers out. It opens no socket and starts no thread; a
/// `HubProgram` does.
///
/// Thread-safety: everything may be called from any thread.
public final class Hub: Sendable {
    /// What the machine it runs on adds to the answers.
    public struct Surroundings: Sendable {
        public var version = ""
        public var interface = "nghub0"
        /// Of the certificate; nil: plain HTTP.
        public var pin: String?
        /// When the certificate ends; nil: plain HTTP.
        public var certificateEnd: Milliseconds?
        /// A sentence about how secrets are kept.
        public var protection = ""

        public init() {}
    }

    public let surroundings: Surroundings
    let started: Milliseconds
    let streams = Streams()
    let sessions = OperatorSessions()
    /// nil: a hub without files.
    let backup: BackupSource?
    private let core: Mutex<HubCore>
    private let clock: @Sendable () -> Milliseconds
    /// Why `flush` fails, and why `upkeep` does.
    let storageTrouble = Trouble()
    let upkeepTrouble = Trouble()
    private let isTunnelDirty = Atomic<Bool>(true)
    /// The wall clock before the monotonic one, in milliseconds, as far as it has been followed.
    private let clockOffset: Atomic<Int64>

    init(
        core: consuming sending HubCore, surroundings: Surroundings,
        backup: BackupSource? = nil, monotonic: Milliseconds = 0,
        clock: @escaping @Sendable () -> Milliseconds
    ) {
        started = core.started
        self.core = Mutex(core)
        self.surroundings = surroundings
        self.backup = backup
        self.clock = clock
        clockOffset = Atomic(clock() - monotonic)
    }

    var now: Milliseconds { clock() }

    /// Runs `body` under the lock, then does what has to follow from it.
    func locked<Result: Sendable>(
        _ body: (inout HubCore) throws(Refusal) -> Result
    ) throws(Refusal) -> Result {
        let (result, effects) = core.withLock { core in
            let result: Swift.Result<Result, Refusal>
            do throws(Refusal) {
                result = .success(try body(&core))
            } catch {
                result = .failure(error)
            }
            return (result, core.takeEffects())
        }
        perform(effects)
        return try result.get()
    }

    private func perform(_ effects: Effects) {
        if effects.isTunnelChanged { isTunnelDirty.store(true, ordering: .releasing) }
        // One change may say the same thing twice.
        for note in Set(effects.deviceEvents) { streams.tell(note.deviceId, note.event) }
        for id in effects.endedDevices { streams.close(device: id) }
        for note in Set(effects.operatorEvents) { streams.tellOperators(note) }
    }

    /// Whether peers or forwards have changed since the last call.
    func takeTunnelDirty() -> Bool {
        isTunnelDirty.exchange(false, ordering: .acquiringAndReleasing)
    }
    func setTunnelDirty() { isTunnelDirty.store(true, ordering: .releasing) }

    /// The handler of the servers.
    public func answer(_ request: HTTPRequest) -> HTTPResponse {
        do throws(Refusal) {
            return try route(request)
        } catch {
            return HTTPResponse(error)
        }
    }

    /// TCP port of the control server, which no forward may take.
    func setControlPort(_ port: UInt16) { withCore { $0.ownPorts.control = port } }

    /// Ends all event streams.
    public func close() { streams.close() }
}

extension HTTPResponse {
    init(_ refusal: Refusal) {
        self = .json(
            refusal.problem.status, Wire.encode(refusal.problem), contentType: Problem.contentType)
        if let seconds = refusal.retryAfter { headers["Retry-After"] = "\(seconds)" }
        if let methods = refusal.allow { headers["Allow"] = methods }
        // RFC 9110 section 15.5.2 asks for it.
        if refusal.problem.status == 401 { headers["WWW-Authenticate"] = "Bearer" }
    }

    static func json(_ value: some Encodable, status: Int = 200) -> HTTPResponse {
        .json(status, Wire.encode(value))
    }

    static var noContent: HTTPResponse {
        HTTPResponse(status: 204, headers: ["Cache-Control": "no-store"])
    }
}

// MARK: called now and then

extension Hub {
    /// One line for systemctl(1).
    var summary: String {
        withCore { core in
            let count = core.model.devices.count
            let tunnel = core.keeper.problem == nil ? "applied" : "not applied, see the log"
            return "\(count) \(count == 1 ? "device" : "devices"), peers and forwards: \(tunnel)"
        }
    }

    /// Alarms, rests of addresses, old rows. About once a second.
    func upkeep() throws(Refusal) {
        let now = now
        defer { streams.forgetClosed(at: now) }
        while try locked({ (core) throws(Refusal) in try core.upkeepPart(at: now) }) {}
    }

    /// Says so when the wall clock has moved otherwise than `monotonic` (milliseconds) since the last
    /// call. One thread only.
    func compareClocks(monotonic: Milliseconds) {
        let offset = now - monotonic
        let step = offset - clockOffset.load(ordering: .relaxed)
        // Small ones add up, where a clock is led to the right time slowly.
        guard abs(step) >= Self.clockTolerance else { return }
        clockOffset.store(offset, ordering: .relaxed)
        withCore { $0.clockWasSet(by: step) }
    }

    /// Milliseconds: less makes nobody silent.
    private static let clockTolerance: Int64 = 2000

    /// Writes what devices have reported, through a connection of its own: no request waits.
    func flush(to database: Database) throws(SQLiteError) {
        let rows = core.withLock { $0.takeUnwritten() }
        do throws(SQLiteError) {
            try Store.write(live: rows, to: database)
        } catch {
            core.withLock { $0.putBack(rows) }
            throw error
        }
    }
}

extension Hub {
    /// For what has no effects and cannot fail.
    func withCore<Result: Sendable>(_ body: (inout HubCore) -> Result) -> Result {
        core.withLock { body(&$0) }
    }
}
