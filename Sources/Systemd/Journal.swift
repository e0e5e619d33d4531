// SPDX-License-Identifier: Apache-2.0
import CSystemd
import Glibc

/// The host's journal, by its native protocol. Callable from any thread.
public enum Journal {
    /// Where systemd-journald takes entries (systemd-journald.service(8), "Sockets").
    static let socketPath = "/run/systemd/journal/socket"

    /// Whether log lines of this process belong there: standard error is the journal already, as
    /// $JOURNAL_STREAM tells by device and inode (systemd.exec(5)), or leads nowhere.
    public static var isWanted: Bool {
        guard unsafe access(socketPath, W_OK) == 0 else { return false }
        var status = stat()
        guard unsafe fstat(STDERR_FILENO, &status) == 0 else { return true }
        if let stream = unsafe getenv("JOURNAL_STREAM") {
            let numbers = unsafe String(cString: stream).split(separator: ":").map { UInt64($0) }
            if numbers == [UInt64(status.st_dev), UInt64(status.st_ino)] { return true }
        }
        var nowhere = stat()
        return unsafe stat("/dev/null", &nowhere) == 0 && status.st_rdev == nowhere.st_rdev
            && status.st_mode & S_IFMT == S_IFCHR
    }

    /// Sends one entry. A name has capital letters, digits and underscores and begins with a letter
    /// (systemd.journal-fields(7)); values may be any text. Whether the journal took it.
    @discardableResult
    public static func send(_ fields: [(name: String, value: String)]) -> Bool {
        var bytes: [UInt8] = []
        var ranges: [Range<Int>] = []
        for field in fields {
            let start = bytes.count
            bytes += "\(field.name)=\(field.value)".utf8
            ranges.append(start..<bytes.count)
        }
        return unsafe bytes.withUnsafeMutableBytes { buffer in
            let vectors = unsafe ranges.map { range in
                unsafe iovec(
                    iov_base: buffer.baseAddress! + range.lowerBound, iov_len: range.count)
            }
            return unsafe sd_journal_sendv(vectors, Int32(vectors.count)) >= 0
        }
    }
}
