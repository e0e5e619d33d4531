// SPDX-License-Identifier: Apache-2.0
import HostProcess

/// Reads a history as it grows. While one is at work its mark, a file of the state directory, is
/// young: the writer then does not wait before it writes.
public struct LogFollower: ~Copyable {
    static let fileName = "log.follow"
    /// Seconds. The mark of a follower that was killed grows old by itself.
    private static let lifetime: Int64 = 20
    /// Call `next` again after so long, also when nothing was written: the mark is kept young by it.
    /// Milliseconds.
    public static let longestPause: Int64 = lifetime * 1000 / 4
    /// The same where the directory cannot be watched.
    public static let shortestPause: Int64 = 500

    private let mark: String
    private let directory: StateDirectory
    private var lastMark: Int64?
    private var last: Int64
    private let watch: DirectoryWatch?

    /// Begins behind the record `sequence`.
    public init(_ directory: StateDirectory, after sequence: Int64) {
        self.directory = directory
        mark = directory.file(Self.fileName)
        last = sequence
        watch = DirectoryWatch(
            directory.path, names: [LogHistory.fileName, LogHistory.fileName + "-wal"])
    }

    /// Readable when something was written; nil: call `next` each `shortestPause`.
    public var descriptor: Int32? { watch?.descriptor }

    deinit { try? HostFile.remove(mark) }

    /// What came since the last call, of at least this level.
    public mutating func next(minimum: LogLevel) throws(StorageError) -> [LogRecord] {
        let now = Host.monotonicMilliseconds()
        // Before the look: what is written after it wakes again.
        _ = watch?.hasNews()
        if now - (lastMark ?? .min / 2) >= Self.longestPause {
            // Without the right to it: what is new comes when the writer writes it anyway.
            try? HostFile.touch(mark)
            lastMark = now
        }
        var query = LogHistory.Query()
        query.after = last
        // All levels, so that none is read twice.
        guard try LogHistory.exists(directory) else { return [] }
        let records = try LogHistory(reading: directory).records(query)
        last = records.last?.sequence ?? last
        return records.filter { $0.level >= minimum }
    }

    static func isPresent(_ mark: String, now: Int64) -> Bool {
        guard let status = try? FileStatus.of(mark) else { return false }
        return abs(now / 1000 - status.modified) <= lifetime
    }
}
