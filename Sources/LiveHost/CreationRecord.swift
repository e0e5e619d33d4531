// SPDX-License-Identifier: Apache-2.0
import HostProcess
import Keeper
import TunnelPlan

/// A file that is there while this tunnel's link is being made. A link gets its mark a moment after it
/// is made: of one without a mark it tells whether a keeper of ours died in that moment, or whether
/// the link is somebody else's (C81).
struct CreationRecord: Sendable {
    private let path: String

    init(directory: String, name: InterfaceName) { path = "\(directory)/\(name).creating" }

    var exists: Bool { HostFile.exists(path) }

    func begin() throws(KeeperFailure) {
        do throws(HostError) {
            try HostFile.write([], to: path, replacing: true)
        } catch {
            throw KeeperFailure(.failed, error.description)
        }
    }

    /// A file that stays says something about the next link without a mark only.
    func end() {
        try? HostFile.remove(path)
        HostFile.removeDrafts(of: path)
    }
}
