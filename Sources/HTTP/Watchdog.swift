// SPDX-License-Identifier: Apache-2.0
import Glibc
import HostProcess

/// A thread that does something again and again, until it is told to stop.
final class Watchdog: Sendable {
    /// `work` is done every so many milliseconds.
    private final class Task: Sendable {
        /// Hung up when the thread shall end.
        let stopSocket: Int32
        let interval: Int64
        let work: @Sendable () -> Void

        init(_ stopSocket: Int32, _ interval: Int64, _ work: @escaping @Sendable () -> Void) {
            self.stopSocket = stopSocket
            self.interval = interval
            self.work = work
        }

        deinit { close(stopSocket) }

        func run() {
            var poller = Poller()
            while true {
                poller.removeAll()
                let stop = poller.add(stopSocket)
                poller.wait(milliseconds: interval)
                if poller.isReadable(stop) { return }
                work()
            }
        }
    }

    private let thread: pthread_t
    private let stopSocket: Int32

    private init(thread: pthread_t, stopSocket: Int32) {
        self.thread = thread
        self.stopSocket = stopSocket
    }

    /// `cleanUp` runs before an error is thrown.
    static func start(
        everyMilliseconds interval: Int64, _ work: @escaping @Sendable () -> Void,
        orElse cleanUp: () -> Void
    ) throws(HTTPError) -> Watchdog {
        var ends: [Int32] = [-1, -1]
        let type = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue
        guard unsafe socketpair(AF_UNIX, Int32(type), 0, &ends) == 0 else {
            let text = textOfErrno(errno)
            cleanUp()
            throw HTTPError("cannot serve HTTP: no pair of sockets: \(text)")
        }
        let task = unsafe Unmanaged.passRetained(Task(ends[0], interval, work))
        var thread = pthread_t()
        let status = withSignalsBlocked {
            unsafe pthread_create(
                &thread, nil,
                { argument in
                    unsafe Unmanaged<Task>.fromOpaque(argument!).takeRetainedValue().run()
                    return nil
                }, task.toOpaque())
        }
        guard status == 0 else {
            unsafe task.release()
            close(ends[1])
            cleanUp()
            throw HTTPError("cannot serve HTTP: no thread: \(textOfErrno(status)); try again")
        }
        return Watchdog(thread: thread, stopSocket: ends[1])
    }

    /// Returns when the thread has ended. Once only.
    func stop() {
        close(stopSocket)
        pthread_join(thread, nil)
    }
}
