// SPDX-License-Identifier: Apache-2.0
import Glibc

/// An exclusive flock(2) on a file with the holder's process number in it. The kernel gives it up
/// when this process ends, however it ends; the file stays.
public struct FileLock: ~Copyable {
    private let number: Int32

    deinit { close(number) }

    /// Takes the lock on `path`, which is made (0600) if need be. Throws EBUSY, and names the holder,
    /// when another process has it.
    public static func take(_ path: String) throws(HostError) -> FileLock {
        let number = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard number >= 0 else {
            throw HostError(errno: errno, "cannot open the lock \(path): \(textOfErrno(errno))")
        }
        while flock(number, LOCK_EX | LOCK_NB) != 0 {
            let failure = errno
            if failure == EINTR { continue }
            defer { close(number) }
            guard failure == EWOULDBLOCK else {
                throw HostError(
                    errno: failure, "cannot lock \(path): \(textOfErrno(failure))")
            }
            let holder = holder(number).map { "process \($0)" } ?? "another process"
            throw HostError(errno: EBUSY, "already running: \(holder) holds \(path)")
        }
        let lock = FileLock(number: number)
        lock.write(getpid())
        return lock
    }

    /// As `take`, but waits for the holder to give it up. Throws EBUSY after `milliseconds`. For what is
    /// held for a moment: the wait is a look every 2 ms.
    public static func take(
        _ path: String, waiting milliseconds: Int64
    ) throws(HostError) -> FileLock {
        let deadline = Host.monotonicMilliseconds() + milliseconds
        var pause = Poller()
        while true {
            do throws(HostError) {
                return try take(path)
            } catch {
                guard error.kind == .busy, Host.monotonicMilliseconds() < deadline else {
                    throw error
                }
                pause.wait(milliseconds: 2)
            }
        }
    }

    /// For people and error messages only: who reads it before it is written sees nobody.
    private func write(_ process: pid_t) {
        guard ftruncate(number, 0) == 0 else { return }
        _ = writeWhole(number, Array("\(process)\n".utf8))
    }

    private static func holder(_ number: Int32) -> Int32? {
        var text = [UInt8](repeating: 0, count: 16)
        let count = unsafe text.withUnsafeMutableBytes {
            unsafe pread(number, $0.baseAddress, $0.count, 0)
        }
        guard count > 0 else { return nil }
        return Int32(String(decoding: text.prefix(count).prefix { $0 != 0x0A }, as: UTF8.self))
    }
}
