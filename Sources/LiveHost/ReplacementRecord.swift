// SPDX-License-Identifier: Apache-2.0
import HostProcess
import Keeper
import TunnelPlan

/// A link that is made beside the tunnel's, to take its place.
struct Replacement: Equatable, Sendable {
    /// Until then.
    let name: InterfaceName
    let kind: BackendKind
    /// When it was begun, in milliseconds of CLOCK_BOOTTIME.
    let beganAt: Int64
}

/// A file that names it, from before it is made until it has taken the place: whoever finds the file
/// finds what a keeper that died left.
struct ReplacementRecord: Sendable {
    private let path: String

    init(directory: String, name: InterfaceName) { path = "\(directory)/\(name).replacing" }

    /// nil: nothing is being replaced.
    func read() -> Replacement? {
        guard HostFile.exists(path), let file = try? HostFile.read(path, limit: 256) else {
            return nil
        }
        let words = String(decoding: file.bytes, as: UTF8.self).split(separator: "\n")
        guard words.count == 3, let name = InterfaceName(String(words[0])),
            let kind = BackendKind(rawValue: String(words[1])), let beganAt = Int64(words[2])
        else { return nil }
        return Replacement(name: name, kind: kind, beganAt: beganAt)
    }

    func begin(_ replacement: Replacement) throws(KeeperFailure) {
        do throws(HostError) {
            let lines = [
                "\(replacement.name)", replacement.kind.rawValue, "\(replacement.beganAt)", "",
            ]
            try HostFile.write(
                Array(lines.joined(separator: "\n").utf8), to: path, replacing: true)
        } catch {
            throw KeeperFailure(.failed, error.description)
        }
    }

    func end() {
        try? HostFile.remove(path)
        HostFile.removeDrafts(of: path)
    }
}
