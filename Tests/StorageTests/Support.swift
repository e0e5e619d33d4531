// SPDX-License-Identifier: Apache-2.0
import Glibc
import HostProcess
import Storage
import Synchronization
import TestSupport
import Testing

extension TemporaryDirectory {
    func read(_ name: String) throws -> [UInt8] {
        try HostFile.read(file(name), limit: 1 << 24).bytes
    }

    /// In place, as damage is.
    func overwrite(_ name: String, _ bytes: [UInt8]) throws {
        try HostFile.write(bytes, to: file(name), replacing: true)
    }

    func state() throws(StorageError) -> StateDirectory { try StateDirectory(path) }
}

func permissions(_ path: String) -> UInt32 {
    var status = stat()
    return unsafe stat(path, &status) == 0 ? status.st_mode & 0o7777 : 0
}

/// The error that `body` throws.
func failure(_ body: () throws(StorageError) -> Void) -> StorageError? {
    do throws(StorageError) {
        try body()
        return nil
    } catch {
        return error
    }
}

/// Clocks that a test moves.
final class TestClock: Sendable {
    private let times = Mutex((wall: Int64(1_000_000), monotonic: Int64(0)))

    func advance(_ milliseconds: Int64) {
        times.withLock {
            $0.wall += milliseconds
            $0.monotonic += milliseconds
        }
    }

    func jump(_ milliseconds: Int64) { times.withLock { $0.wall += milliseconds } }

    var clock: Logger.Clock {
        var clock = Logger.Clock()
        clock.wall = { self.times.withLock { $0.wall } }
        clock.monotonic = { self.times.withLock { $0.monotonic } }
        return clock
    }
}
