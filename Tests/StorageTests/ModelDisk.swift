// SPDX-License-Identifier: Apache-2.0
import HostProcess

/// A directory as a disk may hold it after a failure of power: what was synchronised is there; of
/// the rest any part may be, in any order. Names that were given or taken since the directory was
/// synchronised may each be there or not; the bytes of a file that was not synchronised may be none,
/// some, all, or zeros.
struct ModelDisk {
    private enum NameChange {
        case set(String, Int)
        case move(String, to: String, Int)
        case remove(String)

        func apply(to names: inout [String: Int]) {
            switch self {
            case .set(let name, let file): names[name] = file
            case .move(let name, let target, let file):
                names[name] = nil
                names[target] = file
            case .remove(let name): names[name] = nil
            }
        }
    }

    private var files: [(bytes: [UInt8], isSynchronised: Bool)] = []
    /// As programs see them.
    private var names: [String: Int] = [:]
    private var durable: [String: Int] = [:]
    private var pending: [NameChange] = []

    init(_ content: [String: [UInt8]] = [:]) {
        for (name, bytes) in content {
            names[name] = files.count
            files.append((bytes, true))
        }
        durable = names
    }

    var content: [String: [UInt8]] { names.mapValues { files[$0].bytes } }

    /// The system would refuse it.
    struct Refused: Error {}

    mutating func perform(_ operation: FileOperation) throws {
        switch operation {
        case .create(let name, let bytes):
            guard names[name] == nil else { throw Refused() }
            files.append((bytes, false))
            change(.set(name, files.count - 1))
        case .synchronise(let name):
            guard let file = names[name] else { throw Refused() }
            files[file].isSynchronised = true
        case .rename(let name, let target):
            guard let file = names[name] else { throw Refused() }
            change(.move(name, to: target, file))
        case .link(let name, let target):
            guard let file = names[name], names[target] == nil else { throw Refused() }
            change(.set(target, file))
        case .remove(let name): change(.remove(name))
        case .synchroniseDirectory:
            durable = names
            pending = []
        }
    }

    private mutating func change(_ change: NameChange) {
        change.apply(to: &names)
        pending.append(change)
    }

    /// Every directory that may be found after a failure now.
    func afterFailure() -> [[String: [UInt8]]] {
        var results: [[String: [UInt8]]] = []
        for chosen in 0..<(1 << pending.count) {
            var names = durable
            for (index, change) in pending.enumerated() where chosen >> index & 1 == 1 {
                change.apply(to: &names)
            }
            var partial: [[String: [UInt8]]] = [[:]]
            for (name, file) in names {
                partial = partial.flatMap { content in
                    remains(file).map { bytes in content.merging([name: bytes]) { $1 } }
                }
            }
            results += partial
        }
        return results
    }

    private func remains(_ file: Int) -> [[UInt8]] {
        let (bytes, isSynchronised) = files[file]
        guard !isSynchronised, !bytes.isEmpty else { return [bytes] }
        return [
            [], Array(bytes.prefix(bytes.count / 2)), bytes,
            [UInt8](repeating: 0, count: bytes.count),
        ]
    }
}
