// SPDX-License-Identifier: Apache-2.0
// What the keeper keeps on disk. A disk that refuses, because it is full or became read-only, costs the
// tunnel nothing: it is said once, and tried again until the disk takes it.
import HostProcess

/// What is in force and not on disk.
struct Unwritten {
    /// Between two tries. Milliseconds.
    var interval: Int64 = 10_000

    /// For the next keeper.
    var stored: Stored?
    /// For the next start of the machine; the inner nil: nothing is to come back.
    var persistent: Intent??
    /// When to try again, on the clock of `BootTimer`; nil: all is written.
    var nextTry: Int64?
    /// What was said last.
    var complaint: String?
}

extension KeeperLoop where Target: ~Copyable {
    mutating func save(_ stored: Stored) {
        unwritten.stored = stored
        write()
    }

    mutating func persist(_ intent: Intent?) {
        unwritten.persistent = .some(intent)
        write()
    }

    mutating func writeAgain() {
        guard let due = unwritten.nextTry, due <= Host.bootMilliseconds() else { return }
        write()
    }

    private mutating func write() {
        var complaint: String?
        do throws(HostError) {
            if let stored = unwritten.stored {
                try files.save(stored, replacing: written)
                written = stored
                unwritten.stored = nil
            }
        } catch {
            complaint =
                "\(error.description); the tunnel works, but a keeper that is started anew would "
                + "not know its configuration"
        }
        do throws(HostError) {
            if case .some(let intent) = unwritten.persistent {
                try files.savePersistent(intent)
                unwritten.persistent = nil
            }
        } catch {
            complaint =
                "\(error.description); the tunnel works, but the machine would begin without this "
                + "change"
        }
        note(complaint)
    }

    private mutating func note(_ complaint: String?) {
        let before = unwritten.complaint
        unwritten.complaint = complaint
        unwritten.nextTry = complaint.map { _ in Host.bootMilliseconds() + unwritten.interval }
        guard complaint != before else { return }
        if let complaint {
            announce(KeeperEvent(.failed, complaint))
        } else {
            Log.write(.info, "what the disk had refused is written now")
            // It is true no more.
            if lastWarning == before { lastWarning = nil }
        }
    }
}
