// SPDX-License-Identifier: Apache-2.0
// What stands behind the routes of a tunnel while its link is exchanged. None is added before it is
// written down, so that a keeper that dies leaves none that nobody knows.
import HostNetwork
import HostProcess
import Keeper
import TunnelPlan

extension LiveHost {
    mutating func add(_ barrier: Barrier) throws(KeeperFailure) {
        try note([barrier])
        do throws(NetworkError) {
            try netlink.addBarrier(barrier)
        } catch {
            forget([barrier])
            guard error.kind == .exists else { throw KeeperFailure(error) }
            // Whoever has this very place had the tunnel's packets whenever the tunnel was down.
            Log.write(
                .warning,
                "\(error.message); packets to \(barrier.destination) take that one "
                    + "until the new link is up")
        }
    }

    mutating func addBarriers(_ changes: ArraySlice<Change>) -> Bool {
        var list: [Barrier] = []
        for change in changes {
            guard case .addBarrier(let barrier) = change else { return false }
            list.append(barrier)
        }
        guard (try? note(list)) != nil else { return false }
        // One by one, which is next, those that were added are found.
        return (try? netlink.addBarriers(list)) != nil
    }

    private mutating func note(_ more: [Barrier]) throws(KeeperFailure) {
        let all = barriers.union(more)
        guard all != barriers else { return }
        try barrierRecord.write(all)
        barriers = all
    }

    /// Those that are not there any more. While some are, the file may name too many.
    mutating func forget(_ gone: Set<Barrier>) {
        guard !gone.isEmpty else { return }
        barriers.subtract(gone)
        if barriers.isEmpty { barrierRecord.end() }
    }

    /// While there is no link: this tunnel's, and those that no tunnel has written down.
    mutating func removeOrphanedBarriers() throws(KeeperFailure) {
        try askingNetwork { () throws(NetworkError) in
            let found = try netlink.barriers()
            guard !found.isEmpty else { return }
            for barrier in found.subtracting(barrierRecord.readOthers()) {
                try netlink.removeBarrier(barrier)
            }
        }
        forget(barriers)
    }
}
