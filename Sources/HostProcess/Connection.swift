// SPDX-License-Identifier: Apache-2.0
import CHostProcess
import Glibc

extension Descriptor {
    /// Connects to the unix stream socket at `path`, an absolute one. Throws ENOENT or ECONNREFUSED
    /// when nobody listens, EAGAIN when somebody does whose queue is full.
    public static func connect(_ path: String) throws(HostError) -> Descriptor {
        let number = try unsafe withErrorText { text, result in
            result = unsafe host_connect(path, text)
            return result
        }
        return Descriptor(owning: number)
    }
}

extension HostError {
    /// There is no socket of that name, or one that nobody listens on.
    public var isNobodyListening: Bool { errno == ENOENT || errno == ECONNREFUSED }
    /// Somebody listens and has no room for another client now: it may be tried again.
    public var isQueueFull: Bool { errno == EAGAIN }
}

extension HostFile {
    /// Takes the name of a file or socket away. One that is gone already is no error.
    public static func remove(_ path: String) throws(HostError) {
        guard unsafe unlink(path) != 0, errno != ENOENT else { return }
        throw HostError(errno: errno, "cannot remove \(path): \(textOfErrno(errno))")
    }
}
