// SPDX-License-Identifier: Apache-2.0
import CTunnel
import Glibc
import Synchronization
import WireGuard

/// A WireGuard engine: the one owner of the C handle. Pointers and packets stay below it.
///
/// Every method may be called from any thread; the C side has the locks (tunnel.h).
@safe public final class Engine: Sendable {
    // Unsafe: the pointer is written once, by `init`, and what it points to is thread-safe. It is
    // freed by `deinit` only, when no call can be running: a caller holds a reference.
    private nonisolated(unsafe) let handle: OpaquePointer
    public let version: String
    private let replacing = Atomic<Bool>(false)
    private let raisedFloor = Mutex(TimestampFloor(seconds: 0, nanoseconds: 0))
    /// Every sink ever set: an engine thread may still be inside one that was replaced.
    private let sinks = Mutex<[LogSink]>([])

    public init(options: EngineOptions) throws(EngineError) {
        guard var settings = options.toC() else {
            throw EngineError(
                errno: EINVAL, message: "interface name or AEAD name is too long or holds a NUL")
        }
        var made: OpaquePointer?
        var text = [CChar](repeating: 0, count: Int(TUNNEL_ERROR_TEXT_CAPACITY))
        // Unsafe: tunnel_create reads `settings` and fills `made` and `text` during the call only.
        let result = unsafe text.withUnsafeMutableBufferPointer {
            unsafe tunnel_create(&settings, &made, $0.baseAddress)
        }
        guard result == 0, let made = unsafe made else {
            throw EngineError(errno: -result, message: string(terminated: text))
        }
        unsafe handle = unsafe made
        version = options.version
    }

    deinit {
        // Joins the threads, so no sink is called afterwards.
        unsafe tunnel_destroy(handle)
    }

    /// Starts every thread; at most once, after the process dropped what it does not need.
    public func start() throws(EngineError) {
        let result = unsafe tunnel_start(handle)
        guard result == 0 else {
            throw EngineError(errno: -result, message: "\(name): cannot start the engine's threads")
        }
    }

    /// Stops and joins every thread. Idempotent.
    public func stop() { unsafe tunnel_stop(handle) }

    /// Becomes readable when the engine ended by itself. Poll it, never close it.
    public var endDescriptor: Int32 { unsafe tunnel_end_fd(handle) }

    /// The interface's name as it is now.
    public var name: String {
        var text = [CChar](repeating: 0, count: Int(TUNNEL_NAME_CAPACITY))
        // Unsafe: the buffer has the capacity that tunnel.h asks for.
        unsafe text.withUnsafeMutableBufferPointer { unsafe tunnel_name(handle, $0.baseAddress!) }
        return string(terminated: text)
    }

    /// Lines up to `level` go to `sink`, from any engine thread, one at a time. Before `start`.
    public func setLog(level: LogLevel, _ sink: @escaping @Sendable (LogLevel, String) -> Void) {
        let box = LogSink(sink)
        sinks.withLock { $0.append(box) }
        // Unsafe: the context is not retained by C; `sinks` keeps it alive until `deinit` has
        // joined the threads.
        unsafe tunnel_set_log(
            handle, tunnel_log_level(level.rawValue),
            { context, level, line in
                guard let context = unsafe context, let line = unsafe line else { return }
                let box = unsafe Unmanaged<LogSink>.fromOpaque(context).takeUnretainedValue()
                unsafe box.write(
                    LogLevel(rawValue: level.rawValue) ?? .debug, String(cString: line))
            }, Unmanaged.passUnretained(box).toOpaque())
    }

    /// The later of the latest label an initiation carried and the highest floor set: whoever keeps
    /// what is read here over restarts never goes back, also when no initiation was sent.
    public var timestampFloor: TimestampFloor {
        var sent = TimestampFloor(seconds: 0, nanoseconds: 0)
        unsafe tunnel_get_timestamp_floor(handle, &sent.seconds, &sent.nanoseconds)
        return max(sent, raisedFloor.withLock { $0 })
    }

    /// From now on no initiation carries a label at or below `floor`. Only ever raises it.
    public func raiseTimestampFloor(to floor: TimestampFloor) {
        unsafe tunnel_set_timestamp_floor(handle, floor.seconds, floor.nanoseconds)
        raisedFloor.withLock { $0 = max($0, floor) }
    }

    public func statistics() -> EngineStatistics {
        // Unsafe: 14 KB of plain numbers, filled by the call, read by the initialiser, freed here.
        let stats = UnsafeMutablePointer<tunnel_stats>.allocate(capacity: 1)
        unsafe stats.initialize(to: tunnel_stats())
        defer { unsafe stats.deallocate() }
        unsafe tunnel_get_stats(handle, stats)
        return unsafe EngineStatistics(stats)
    }

    /// Everything a reader of the second socket gets; docs/engine-state.md describes it.
    public func stateDocument() -> [UInt8] {
        StateDocument(
            name: name, version: version, timestampFloor: timestampFloor, statistics: statistics()
        ).json()
    }
}

private final class LogSink: Sendable {
    let write: @Sendable (LogLevel, String) -> Void
    init(_ write: @escaping @Sendable (LogLevel, String) -> Void) { self.write = write }
}

extension Engine: UAPIDevice {
    public func snapshot() throws(UAPIError) -> DeviceSnapshot {
        var device = tunnel_device_state()
        defer { unsafe erase(&device) }
        unsafe tunnel_get_device(handle, &device)
        var result = DeviceSnapshot(device)
        result.peers.reserveCapacity(device.peer_count)
        // Unsafe: the context is `result`'s list, the callback runs during the call only, and
        // copies all that its pointers lead to.
        unsafe withUnsafeMutablePointer(to: &result.peers) { peers in
            unsafe tunnel_for_each_peer(
                handle,
                { context, peer, prefixes, count in
                    guard let peer = unsafe peer else { return false }
                    let peers = unsafe context!.assumingMemoryBound(to: [PeerSnapshot].self)
                    let list = unsafe UnsafeBufferPointer(start: prefixes, count: count)
                    unsafe peers.pointee.append(PeerSnapshot(peer, list))
                    return true
                }, peers)
        }
        return result
    }

    public func set(device change: DeviceChange) throws(UAPIError) {
        var settings = tunnel_device_change(change)
        defer { unsafe erase(&settings) }
        try check(unsafe tunnel_set_device(handle, &settings))
    }

    public func set(peer change: PeerChange) throws(UAPIError) {
        var settings = unsafe try tunnel_peer_change(change)
        defer { unsafe erase(&settings) }
        let prefixes = change.prefixes.map { tunnel_prefix($0) }
        // Unsafe: the list outlives the call, which copies from it.
        let result = unsafe prefixes.withUnsafeBufferPointer { list in
            unsafe settings.prefixes = list.baseAddress
            unsafe settings.prefix_count = list.count
            return unsafe tunnel_set_peer(handle, &settings)
        }
        try check(result)
    }

    public func beginReplacePeers() throws(UAPIError) {
        try check(unsafe tunnel_replace_peers_begin(handle))
        replacing.store(true, ordering: .releasing)
    }

    public func commitReplacePeers() throws(UAPIError) {
        unsafe tunnel_replace_peers_commit(handle)
        replacing.store(false, ordering: .releasing)
    }

    public func abortReplacePeers() {
        unsafe tunnel_replace_peers_abort(handle)
        replacing.store(false, ordering: .releasing)
    }

    public var isReplacingPeers: Bool { replacing.load(ordering: .acquiring) }

    private func check(_ result: Int32) throws(UAPIError) {
        guard result == 0 else { throw UAPIError(errno: -result) }
    }
}
