// SPDX-License-Identifier: Apache-2.0
import TunnelEngine

/// How long the measurement takes, about.
private let benchMilliseconds: UInt32 = 4000

/// Measures, and returns the text to print.
func benchmark(aead: String, json: Bool) throws(EngineError) -> String {
    let document = BenchmarkDocument(
        version: programVersion,
        benchmark: try Benchmark.run(milliseconds: benchMilliseconds, aead: aead),
        host: HostOffer.probe())
    guard !json else { return String(decoding: document.json(), as: UTF8.self) + "\n" }
    return [
        trafficText(document.benchmark), aeadText(document.benchmark), hostText(document.host),
        adviceText(document.host.advice),
    ].joined(separator: "\n")
}

// MARK: sections

private func trafficText(_ benchmark: Benchmark) -> String {
    var rows = [["", "AEAD", "split, merge", "rest", "all", "Mpps", "Gbit/s", "batch p99 µs"]]
    for traffic in benchmark.traffic {
        let kind = traffic.isSuperPackets ? "super-packets of" : "single packets,"
        for (name, direction) in [("out", traffic.out), ("in", traffic.in)] {
            rows.append([
                "\(kind) \(traffic.packetLength) B, \(name)",
                decimal(direction.aead, 0), decimal(direction.offload, 0),
                decimal(direction.rest, 0), decimal(direction.path, 0),
                decimal(direction.packetsPerSecond / 1e6, 2),
                decimal(traffic.gigabitsPerSecond(direction), 2),
                "\(decimal(direction.batchP99 / 1000, 0)) (of \(direction.packetsPerBatch))",
            ])
        }
    }
    return "The engine's own work, ns of CPU time per packet, and what one core's time allows\n"
        + "(without the kernel's part, which no tunnel goes without):\n" + table(rows)
}

private func aeadText(_ benchmark: Benchmark) -> String {
    let lengths = benchmark.aeadLengths
    var rows = [["AEAD, ns per packet"] + lengths.flatMap { ["seal \($0) B", "open \($0) B"] }]
    for aead in benchmark.aeads {
        let mark = aead.name == benchmark.aead ? " (in use)" : ""
        rows.append(
            [aead.name + mark]
                + lengths.indices.flatMap {
                    [decimal(aead.seal[$0], 0), decimal(aead.open[$0], 0)]
                })
    }
    return table(rows)
}

private func hostText(_ host: HostOffer) -> String {
    var lines = [
        "Linux \(host.kernel), \(host.cpus) CPUs\(host.hasAVX2 ? ", AVX2" : "")",
        "UDP: \(offers([("GSO", host.udpGSO), ("GRO", host.udpGRO)]))",
    ]
    if let tun = host.tun {
        let list = [
            ("virtio header", tun.virtioHeader), ("TSO", tun.tso), ("USO", tun.uso),
            ("multi-queue", tun.multiQueue),
        ]
        lines.append("TUN: \(offers(list))")
    } else {
        lines.append("TUN: unknown")
    }
    let limit = host.mayForceBuffers ? "" : " of \(host.bufferWanted)"
    lines.append("socket buffer: \(host.bufferGranted)\(limit) bytes")
    for card in host.cards { lines.append("\(card.name): \(card.receiveQueues) receive queues") }
    return "Host:\n" + lines.map { "  \($0)\n" }.joined()
}

private func adviceText(_ advice: [Advice]) -> String {
    guard !advice.isEmpty else { return "Nothing the host lacks was found.\n" }
    return "What limits this host:\n" + advice.map { "  - \($0.text)\n" }.joined()
}

// MARK: layout

private func offers(_ list: [(String, Bool)]) -> String {
    list.map { name, isThere in isThere ? name : "no \(name)" }.joined(separator: ", ")
}

/// The first column to the left, the others to the right.
private func table(_ rows: [[String]]) -> String {
    let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
    return rows.map { row in
        row.indices.map { column in
            let padding = String(repeating: " ", count: widths[column] - row[column].count)
            return column == 0 ? "  " + row[0] + padding : "  " + padding + row[column]
        }.joined() + "\n"
    }.joined()
}

private func decimal(_ value: Double, _ digits: Int) -> String {
    var scale: UInt64 = 1
    for _ in 0..<digits { scale *= 10 }
    let scaled = UInt64((value * Double(scale)).rounded())
    guard digits > 0 else { return "\(scaled)" }
    let fraction = String(scaled % scale)
    return "\(scaled / scale)."
        + String(repeating: "0", count: digits - fraction.utf8.count) + fraction
}
