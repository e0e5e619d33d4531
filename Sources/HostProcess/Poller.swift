// SPDX-License-Identifier: Apache-2.0
import Glibc

/// poll(2) over a list that is built anew for each wait.
public struct Poller {
    private var entries: [pollfd] = []

    public init() {}

    public mutating func removeAll() { entries.removeAll(keepingCapacity: true) }

    /// Returns the entry's index, for the questions below.
    @discardableResult
    public mutating func add(_ descriptor: Int32, read: Bool = true, write: Bool = false) -> Int {
        let events = (read ? POLLIN : 0) | (write ? POLLOUT : 0)
        entries.append(pollfd(fd: descriptor, events: Int16(events), revents: 0))
        return entries.count - 1
    }

    /// Waits for an event or, unless `milliseconds` is nil, that long.
    public mutating func wait(milliseconds: Int64?) {
        let timeout = milliseconds.map { Int32(clamping: max($0, 0)) } ?? -1
        let count = nfds_t(entries.count)
        let ready = unsafe entries.withUnsafeMutableBufferPointer { buffer in
            unsafe poll(buffer.baseAddress, count, timeout)
        }
        if ready < 0 {  // EINTR, or no memory: as if nothing had happened
            for index in entries.indices { entries[index].revents = 0 }
        }
    }

    /// Something to read, or an end or error that reading will tell.
    public func isReadable(_ index: Int) -> Bool {
        entries[index].revents & Int16(POLLIN | POLLHUP | POLLERR) != 0
    }

    public func isWritable(_ index: Int) -> Bool {
        entries[index].revents & Int16(POLLOUT | POLLHUP | POLLERR) != 0
    }

    /// Both directions are over.
    public func isHungUp(_ index: Int) -> Bool {
        entries[index].revents & Int16(POLLHUP | POLLERR) != 0
    }
}
