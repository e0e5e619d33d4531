// SPDX-License-Identifier: Apache-2.0
// Nothing here asks how fast anything is: only that what is printed is whole and agrees with itself.
import FoundationEssentials
import Glibc
import Testing
import WireGuard

@testable import TunnelEngine

/// The document as its readers see it.
// swift-format-ignore: AlwaysUseLowerCamelCase
private struct BenchmarkJSON: Decodable {
    struct Direction: Decodable {
        var path_ns, aead_ns, offload_ns, rest_ns, gbit_per_second: Double
        var batch_p50_ns, batch_p99_ns: Double
        var packets_per_second, packets_per_batch, batches: UInt64
    }
    struct Traffic: Decodable {
        var packet_bytes: UInt64
        var super_packets: Bool
        var out, `in`: Direction
    }
    struct AEAD: Decodable {
        struct Size: Decodable {
            var bytes: UInt64
            var seal_ns, open_ns: Double
        }
        var name: String
        var sizes: [Size]
    }
    struct Host: Decodable {
        struct TUN: Decodable { var vnet_hdr, tso, uso, multi_queue: Bool }
        struct Card: Decodable {
            var name: String
            var receive_queues: UInt64
            var hash_has_ports, gro: Bool?
        }
        var kernel: String
        var cpus, buffer_wanted, buffer_granted: UInt64
        var avx2: Bool?
        var udp_gso, udp_gro, buffer_force: Bool
        var tun: TUN?
        var cards: [Card]
    }
    struct Advice: Decodable { var name, text: String }
    var schemaVersion: Int
    var version, aead: String
    var traffic: [Traffic]
    var aeads: [AEAD]
    var host: Host
    var advice: [Advice]
}

/// A host that lacks nothing.
private let complete = HostOffer(
    kernel: "6.18.0", cpus: 4, isX86: true, hasAVX2: true, udpGSO: true, udpGRO: true,
    mayForceBuffers: true, bufferWanted: 7 << 20, bufferGranted: 7 << 20,
    tun: HostOffer.TUN(virtioHeader: true, tso: true, uso: true, multiQueue: true), tunErrno: 0,
    cards: [
        HostOffer.Card(name: "eth0", receiveQueues: 8, hashesPorts: true, receiveOffload: true)
    ])

@Suite struct BenchmarkTests {
    @Test func the_document_parses_and_its_figures_agree() throws {
        let benchmark = try Benchmark.run(milliseconds: 0)
        let json = BenchmarkDocument(
            version: "1.2.3", benchmark: benchmark, host: HostOffer.probe()
        ).json()
        let document = try JSONDecoder().decode(BenchmarkJSON.self, from: Data(json))
        #expect(document.schemaVersion == 1 && document.version == "1.2.3")
        #expect(document.traffic.map(\.packet_bytes) == [1420, 84])
        #expect(document.traffic.map(\.super_packets) == [true, false])
        for traffic in document.traffic {
            try check(traffic.out, of: traffic)
            try check(traffic.in, of: traffic)
        }
        #expect(document.aeads.map(\.name).filter { $0 == document.aead }.count == 1)
        for aead in document.aeads {
            #expect(EngineOptions.aeadNames.contains(aead.name))
            #expect(aead.sizes.map(\.bytes) == [64, 1424])
            #expect(aead.sizes.allSatisfy { $0.seal_ns > 0 && $0.open_ns > 0 })
        }
        #expect(!document.host.kernel.isEmpty && document.host.cpus > 0)
        #expect(document.host.buffer_granted <= document.host.buffer_wanted)
    }

    private func check(
        _ direction: BenchmarkJSON.Direction, of traffic: BenchmarkJSON.Traffic
    ) throws {
        try #require(direction.path_ns > 0)
        #expect(direction.aead_ns > 0 && direction.offload_ns > 0)
        let parts: Double = direction.aead_ns + direction.offload_ns
        let rest: Double = max(0, direction.path_ns - parts)
        #expect(abs(direction.rest_ns - rest) < 0.01)
        let perSecond: Double = 1e9 / direction.path_ns
        #expect(abs(Double(direction.packets_per_second) / perSecond - 1) < 0.001)
        let gigabits: Double = perSecond * Double(traffic.packet_bytes) * 8 / 1e9
        #expect(abs(direction.gbit_per_second - gigabits) < 0.001 + gigabits / 1000)
        #expect(direction.batch_p50_ns > 0)
        #expect(direction.batch_p99_ns >= direction.batch_p50_ns)
        #expect(direction.batches > 0)
        #expect(direction.packets_per_batch >= 64)
    }

    @Test func a_named_back_end_is_the_one_in_use() throws {
        #expect(try Benchmark.run(milliseconds: 0, aead: "libsodium").aead == "libsodium")
    }

    @Test func an_unknown_back_end_is_refused_by_name() {
        let error = #expect(throws: EngineError.self) {
            try Benchmark.run(milliseconds: 0, aead: "rot13")
        }
        #expect(error?.message.contains("rot13") == true)
    }

    @Test func decimals_keep_their_zeros() {
        var writer = JSONWriter()
        writer.beginArray()
        for value in [0, 0.0004, 0.0005, 1.05, 12.9996] { writer.number(thousandths: value) }
        writer.endArray()
        #expect(String(decoding: writer.text, as: UTF8.self) == "[0.000,0.000,0.001,1.050,13.000]")
    }
}

@Suite struct AdviceTests {
    private func names(_ change: (inout HostOffer) -> Void) -> [String] {
        var host = complete
        change(&host)
        return host.advice.map(\.name)
    }

    @Test func a_complete_host_gets_none() { #expect(names { _ in } == []) }

    @Test func each_lack_is_named_once() {
        #expect(names { $0.hasAVX2 = false } == ["cpu_without_avx2"])
        #expect(names { ($0.isX86, $0.hasAVX2) = (false, false) } == [])  // there is none to have
        #expect(names { $0.cpus = 1 } == ["one_cpu"])
        #expect(names { $0.udpGSO = false } == ["kernel_without_udp_gso"])
        #expect(names { $0.udpGRO = false } == ["kernel_without_udp_gro"])
        #expect(names { $0.tun?.uso = false } == ["tun_without_uso"])
        #expect(
            names {
                $0.tun?.tso = false
                $0.tun?.uso = false
            } == ["tun_without_tso"])
        #expect(names { $0.tun?.multiQueue = false } == ["tun_single_queue"])
        #expect(
            names {
                $0.cpus = 2  // one pair anyway
                $0.tun?.multiQueue = false
            } == [])
        #expect(names { ($0.tun, $0.tunErrno) = (nil, EPERM) } == ["tun_unknown"])
        #expect(names { $0.cards[0].receiveOffload = false } == ["card_without_gro"])
    }

    @Test func a_card_that_hashes_addresses_only_gets_the_command() {
        var host = complete
        host.cards[0].hashesPorts = false
        #expect(host.advice.map(\.name) == ["card_hash_without_ports"])
        #expect(host.advice[0].text.contains("ethtool -N eth0 rx-flow-hash udp4 sdfn"))
        host.cards[0].receiveQueues = 1  // nothing to choose between
        #expect(host.advice == [])
        (host.cards[0].receiveQueues, host.cards[0].hashesPorts) = (8, nil)  // it does not say
        #expect(host.advice == [])
    }

    @Test func buffers_matter_only_where_they_cannot_be_forced() {
        #expect(names { $0.bufferGranted = 212_992 } == [])
        let limited = names { ($0.mayForceBuffers, $0.bufferGranted) = (false, 212_992) }
        #expect(limited == ["small_socket_buffers"])
    }
}
