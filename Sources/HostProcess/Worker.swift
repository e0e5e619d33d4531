// SPDX-License-Identifier: Apache-2.0
import Glibc

/// A thread that does what may block, one job after the other. It ends with the process, or when
/// the last reference goes and its jobs are done.
public final class Worker: Sendable {
    public typealias Job = @Sendable () -> Void
    private let mailbox: Mailbox<Job?>

    public init(stackSize: Int = 1 << 20) throws(HostError) {
        mailbox = try Mailbox()
        var attributes = pthread_attr_t()
        unsafe pthread_attr_init(&attributes)
        defer { unsafe pthread_attr_destroy(&attributes) }
        unsafe pthread_attr_setstacksize(&attributes, stackSize)
        unsafe pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        var thread = pthread_t()
        let box = unsafe Unmanaged.passRetained(mailbox)
        let failure = unsafe pthread_create(&thread, &attributes, run, box.toOpaque())
        guard failure == 0 else {
            unsafe box.release()
            throw HostError(errno: failure, "cannot start a thread: \(textOfErrno(failure))")
        }
    }

    deinit { mailbox.post(nil) }

    /// From any thread. Never waits.
    public func submit(_ job: @escaping Job) { mailbox.post(job) }
}

private func run(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    let mailbox = unsafe Unmanaged<Mailbox<Worker.Job?>>.fromOpaque(argument!)
        .takeRetainedValue()
    var poller = Poller()
    while true {
        poller.removeAll()
        poller.add(mailbox.descriptor)
        poller.wait(milliseconds: nil)
        for job in mailbox.take() {
            guard let job else { return nil }
            job()
        }
    }
}
