// SPDX-License-Identifier: Apache-2.0
import WireGuard

/// The benchmark's result as JSON; nexusguard-engine(8) is its description.
public struct BenchmarkDocument: Equatable, Sendable {
    public static let schemaVersion: UInt64 = 1

    public var version: String
    public var benchmark: Benchmark
    public var host: HostOffer

    public init(version: String, benchmark: Benchmark, host: HostOffer) {
        self.version = version
        self.benchmark = benchmark
        self.host = host
    }

    /// One line, without a newline.
    public func json() -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.number("schemaVersion", Self.schemaVersion)
        writer.string("version", version)
        writer.string("aead", benchmark.aead)
        writer.beginArray("traffic")
        for traffic in benchmark.traffic { write(traffic, to: &writer) }
        writer.endArray()
        writer.beginArray("aeads")
        for aead in benchmark.aeads { write(aead, to: &writer) }
        writer.endArray()
        write(host, to: &writer)
        writer.beginArray("advice")
        for advice in host.advice {
            writer.beginObject()
            writer.string("name", advice.name)
            writer.string("text", advice.text)
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
        return writer.text
    }

    private func write(_ traffic: Benchmark.Traffic, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.number("packet_bytes", UInt64(traffic.packetLength))
        writer.bool("super_packets", traffic.isSuperPackets)
        for (name, direction) in [("out", traffic.out), ("in", traffic.in)] {
            writer.beginObject(name)
            writer.number("path_ns", thousandths: direction.path)
            writer.number("aead_ns", thousandths: direction.aead)
            writer.number("offload_ns", thousandths: direction.offload)
            writer.number("rest_ns", thousandths: direction.rest)
            writer.number("packets_per_second", UInt64(direction.packetsPerSecond.rounded()))
            writer.number("gbit_per_second", thousandths: traffic.gigabitsPerSecond(direction))
            writer.number("packets_per_batch", UInt64(direction.packetsPerBatch))
            writer.number("batches", direction.batches)
            writer.number("batch_p50_ns", thousandths: direction.batchMedian)
            writer.number("batch_p99_ns", thousandths: direction.batchP99)
            writer.endObject()
        }
        writer.endObject()
    }

    private func write(_ aead: Benchmark.AEAD, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.string("name", aead.name)
        writer.beginArray("sizes")
        for (index, length) in benchmark.aeadLengths.enumerated() {
            writer.beginObject()
            writer.number("bytes", UInt64(length))
            writer.number("seal_ns", thousandths: aead.seal[index])
            writer.number("open_ns", thousandths: aead.open[index])
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
    }

    private func write(_ host: HostOffer, to writer: inout JSONWriter) {
        writer.beginObject("host")
        writer.string("kernel", host.kernel)
        writer.number("cpus", UInt64(host.cpus))
        if host.isX86 { writer.bool("avx2", host.hasAVX2) }
        writer.bool("udp_gso", host.udpGSO)
        writer.bool("udp_gro", host.udpGRO)
        writer.bool("buffer_force", host.mayForceBuffers)
        writer.number("buffer_wanted", UInt64(host.bufferWanted))
        writer.number("buffer_granted", UInt64(host.bufferGranted))
        if let tun = host.tun {
            writer.beginObject("tun")
            writer.bool("vnet_hdr", tun.virtioHeader)
            writer.bool("tso", tun.tso)
            writer.bool("uso", tun.uso)
            writer.bool("multi_queue", tun.multiQueue)
            writer.endObject()
        }
        writer.beginArray("cards")
        for card in host.cards {
            writer.beginObject()
            writer.string("name", card.name)
            writer.number("receive_queues", UInt64(card.receiveQueues))
            if let hashesPorts = card.hashesPorts { writer.bool("hash_has_ports", hashesPorts) }
            if let receiveOffload = card.receiveOffload { writer.bool("gro", receiveOffload) }
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
    }
}
