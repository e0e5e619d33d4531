// SPDX-License-Identifier: Apache-2.0
import CTunnel

/// Counters since start, and what is in use now.
public struct EngineStatistics: Equatable, Sendable {
    public struct Named<Value: Equatable & Sendable>: Equatable, Sendable {
        public var name: String
        public var value: Value

        public init(_ name: String, _ value: Value) {
            self.name = name
            self.value = value
        }
    }

    public struct Direction: Equatable, Sendable {
        /// Inner packets, keepalives included.
        public var packets: UInt64 = 0
        /// Outer UDP payload.
        public var bytes: UInt64 = 0
        public var batches: UInt64 = 0
        public var systemCalls: UInt64 = 0
        public var cpuNanoseconds: UInt64 = 0
        /// Batches of 1, 2–3, 4–7, … packets; the last bucket is open.
        public var histogram: [UInt64] = []

        public init() {}
    }

    public struct Worker: Equatable, Sendable {
        public var sending = Direction()
        public var receiving = Direction()
        /// Time spent waiting without sleep, and how often that ended with a packet.
        public var spunNanoseconds: UInt64 = 0
        public var spinHits: UInt64 = 0
        /// The second thread serves the receiving direction now.
        public var isSplit = false

        public init() {}
    }

    public var aead = ""
    public var sessions: UInt32 = 0
    /// The offload ladder: each rung and whether it is in use.
    public var ladder: [Named<Bool>] = []
    public var drops: [Named<UInt64>] = []
    public var fallbacks: [Named<UInt64>] = []
    public var handshakesInitiated: UInt64 = 0
    public var handshakesCompleted: UInt64 = 0
    public var handshakeMessagesReceived: UInt64 = 0
    public var cookieRepliesSent: UInt64 = 0
    public var stagedBytes: UInt64 = 0
    public var controlWakeups: UInt64 = 0
    public var workers: [Worker] = []

    public init() {}
}

extension EngineStatistics {
    @unsafe init(_ source: UnsafeMutablePointer<tunnel_stats>) {
        let stats = unsafe source
        aead = unsafe string(of: &stats.pointee.aead)
        sessions = unsafe stats.pointee.sessions
        ladder = unsafe [
            Named("vnet_hdr", stats.pointee.vnet_hdr),
            Named("tun_tso", stats.pointee.tun_tso),
            Named("tun_uso", stats.pointee.tun_uso),
            Named("tun_tcp_merge", stats.pointee.tun_tcp_merge),
            Named("tun_udp_merge", stats.pointee.tun_udp_merge),
            Named("udp_gso", stats.pointee.udp_gso),
            Named("udp_gro", stats.pointee.udp_gro),
            Named("sendmmsg", stats.pointee.sendmmsg),
            Named("steering", stats.pointee.steering),
        ]
        drops = unsafe named(list(&stats.pointee.drops), tunnel_drop_name)
        fallbacks = unsafe named(list(&stats.pointee.fallbacks), tunnel_fallback_name)
        handshakesInitiated = unsafe stats.pointee.handshakes_initiated
        handshakesCompleted = unsafe stats.pointee.handshakes_completed
        handshakeMessagesReceived = unsafe stats.pointee.handshake_messages_received
        cookieRepliesSent = unsafe stats.pointee.cookie_replies_sent
        stagedBytes = unsafe stats.pointee.staged_bytes
        controlWakeups = unsafe stats.pointee.control_wakeups
        let all: [tunnel_worker_stats] = unsafe list(&stats.pointee.worker)
        workers = all.prefix(Int(unsafe stats.pointee.workers)).map { Worker($0) }
    }
}

extension EngineStatistics.Worker {
    fileprivate init(_ worker: tunnel_worker_stats) {
        sending = EngineStatistics.Direction(worker.tx, worker.tx_cpu_ns)
        receiving = EngineStatistics.Direction(worker.rx, worker.rx_cpu_ns)
        spunNanoseconds = worker.spun_ns
        spinHits = worker.spin_hits
        isSplit = worker.split
    }
}

extension EngineStatistics.Direction {
    fileprivate init(_ direction: tunnel_direction_stats, _ nanoseconds: UInt64) {
        var direction = direction
        packets = direction.packets
        bytes = direction.bytes
        batches = direction.batches
        systemCalls = direction.system_calls
        cpuNanoseconds = nanoseconds
        histogram = unsafe list(&direction.histogram)
    }
}

/// The elements of a C array member, which Swift imports as a tuple.
@unsafe func list<Array, Element: BitwiseCopyable>(_ source: inout Array) -> [Element] {
    unsafe withUnsafeBytes(of: &source) { unsafe [Element]($0.bindMemory(to: Element.self)) }
}

@unsafe func string<Characters>(of source: inout Characters) -> String {
    string(terminated: unsafe list(&source))
}

/// Pairs counters with their names; there are as many as names.
private func named(
    _ values: [UInt64], _ name: (Int) -> UnsafePointer<CChar>?
) -> [EngineStatistics.Named<UInt64>] {
    var result: [EngineStatistics.Named<UInt64>] = []
    for (index, value) in values.enumerated() {
        // Unsafe: the name is in static storage (tunnel.h).
        guard let text = unsafe name(index) else { break }
        unsafe result.append(EngineStatistics.Named(String(cString: text), value))
    }
    return result
}
