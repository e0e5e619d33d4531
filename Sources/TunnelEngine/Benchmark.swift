// SPDX-License-Identifier: Apache-2.0
import CTunnel

/// What the engine's own code costs on this machine, measured without device, socket or rights.
public struct Benchmark: Equatable, Sendable {
    /// One direction of one kind of traffic; times in nanoseconds.
    public struct Direction: Equatable, Sendable {
        /// Per packet: all that the engine does, the AEAD included. The kernel's work is not in it.
        public var path: Double
        /// Per packet: sealing or opening alone.
        public var aead: Double
        /// Per packet: outbound splitting with its checksums, inbound verifying them and planning
        /// what is merged.
        public var offload: Double
        /// Elapsed time of a batch: other load on the machine is in it.
        public var batchMedian: Double
        public var batchP99: Double
        public var batches: UInt64
        public var packetsPerBatch: UInt32

        /// Lookups, headers, counters, the replay window, timers.
        public var rest: Double { max(0, path - aead - offload) }
        public var packetsPerSecond: Double { path > 0 ? 1e9 / path : 0 }
    }

    public struct Traffic: Equatable, Sendable {
        /// Inner, IP header included.
        public var packetLength: UInt32
        /// As TCP offload hands them over; else one packet per read.
        public var isSuperPackets: Bool
        public var out: Direction
        public var `in`: Direction

        /// What one core's time allows if the kernel's part were free.
        public func gigabitsPerSecond(_ direction: Direction) -> Double {
            direction.packetsPerSecond * Double(packetLength) * 8 / 1e9
        }
    }

    /// A back-end that runs here; nanoseconds per packet, by `aeadLengths`.
    public struct AEAD: Equatable, Sendable {
        public var name: String
        public var seal: [Double]
        public var open: [Double]
    }

    /// The back-end in use.
    public var aead: String
    public var aeadLengths: [UInt32]
    public var aeads: [AEAD]
    public var traffic: [Traffic]

    /// Measures for about `milliseconds` on the calling thread. `aead` is a name, or "" for the
    /// fastest.
    public static func run(milliseconds: UInt32, aead: String = "") throws(EngineError) -> Benchmark
    {
        var result = tunnel_bench()
        var text = [CChar](repeating: 0, count: Int(TUNNEL_ERROR_TEXT_CAPACITY))
        // Unsafe: tunnel_bench fills `result` and `text` during the call only.
        let error = unsafe text.withUnsafeMutableBufferPointer {
            unsafe tunnel_bench(milliseconds, aead, &result, $0.baseAddress)
        }
        guard error == 0 else {
            throw EngineError(errno: -error, message: string(terminated: text))
        }
        return Benchmark(result)
    }
}

extension Benchmark {
    fileprivate init(_ result: tunnel_bench) {
        var result = result
        aead = unsafe string(of: &result.aead)
        aeadLengths = unsafe list(&result.aead_lengths)
        let aeads: [tunnel_bench_aead] = unsafe list(&result.aeads)
        self.aeads = aeads.prefix(Int(result.aead_count)).map { AEAD($0) }
        let shapes: [tunnel_bench_shape] = unsafe list(&result.shapes)
        traffic = shapes.map {
            Traffic(
                packetLength: $0.packet_length, isSuperPackets: $0.super_packets,
                out: Direction($0.out), in: Direction($0.in))
        }
    }
}

extension Benchmark.AEAD {
    fileprivate init(_ aead: tunnel_bench_aead) {
        var aead = aead
        name = unsafe string(of: &aead.name)
        seal = unsafe list(&aead.seal_ns)
        open = unsafe list(&aead.open_ns)
    }
}

extension Benchmark.Direction {
    fileprivate init(_ direction: tunnel_bench_direction) {
        path = direction.path_ns
        aead = direction.aead_ns
        offload = direction.offload_ns
        batchMedian = direction.batch_p50_ns
        batchP99 = direction.batch_p99_ns
        batches = direction.batches
        packetsPerBatch = direction.batch_packets
    }
}
