// SPDX-License-Identifier: Apache-2.0
import HostProcess
import Keeper
import TunnelPlan
import WireGuard

/// A file that names this tunnel's barriers, from before the first is added until the last has gone:
/// whoever finds the file knows which of those that a keeper left are this tunnel's. The kernel remembers
/// only that they are ours.
struct BarrierRecord: Sendable {
    private static let suffix = ".barriers"
    /// Of one file: as many as a tunnel of 100,000 prefixes has.
    private static let limit = 8 << 20

    private let directory: String
    private let file: String

    init(directory: String, name: InterfaceName) {
        self.directory = directory
        file = "\(name)\(Self.suffix)"
    }

    /// A line that is none is skipped.
    func read() -> Set<Barrier> { barriers(in: file) }

    /// Those of all other tunnels.
    func readOthers() -> Set<Barrier> {
        Host.names(in: directory).filter { $0.hasSuffix(Self.suffix) && $0 != file }
            .reduce(into: []) { $0.formUnion(barriers(in: $1)) }
    }

    private func barriers(in file: String) -> Set<Barrier> {
        let path = "\(directory)/\(file)"
        guard HostFile.exists(path), let content = try? HostFile.read(path, limit: Self.limit)
        else {
            return []
        }
        let lines = String(decoding: content.bytes, as: UTF8.self).split(separator: "\n")
        return Set(lines.compactMap { Barrier(line: $0) })
    }

    func write(_ barriers: Set<Barrier>) throws(KeeperFailure) {
        let text = barriers.map(\.line).sorted().joined()
        do throws(HostError) {
            try HostFile.write(Array(text.utf8), to: "\(directory)/\(file)", replacing: true)
        } catch {
            throw KeeperFailure(.failed, error.description)
        }
    }

    /// A file that stays names what is not there.
    func end() {
        try? HostFile.remove("\(directory)/\(file)")
        HostFile.removeDrafts(of: "\(directory)/\(file)")
    }
}

extension Barrier {
    fileprivate var line: String { "\(destination) \(table) \(metric)\n" }

    fileprivate init?(line: Substring) {
        let words = line.split(separator: " ")
        guard words.count == 3, let destination = Prefix(String(words[0])),
            let table = UInt32(words[1]), let metric = UInt32(words[2])
        else { return nil }
        self.init(destination, table: table, metric: metric)
    }
}
