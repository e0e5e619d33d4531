// SPDX-License-Identifier: Apache-2.0
import CHostProcess
import Glibc
import Synchronization

/// What threads leave for one that waits with `Poller`. From any thread.
public final class Mailbox<Message: Sendable>: Sendable {
    private let messages = Mutex<[Message]>([])
    /// Readable while something is there.
    public let descriptor: Int32

    public init() throws(HostError) {
        descriptor = host_wakeup_open()
        guard descriptor >= 0 else {
            throw HostError(
                errno: -descriptor, "cannot make an event: \(textOfErrno(-descriptor))")
        }
    }

    deinit { close(descriptor) }

    public func post(_ message: Message) {
        messages.withLock { $0.append(message) }
        host_wakeup_raise(descriptor)
    }

    /// In the order of their arrival; empties it.
    public func take() -> [Message] {
        host_wakeup_clear(descriptor)
        return messages.withLock { messages in
            defer { messages = [] }
            return messages
        }
    }
}
