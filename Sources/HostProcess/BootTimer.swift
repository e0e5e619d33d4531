// SPDX-License-Identifier: Apache-2.0
import CHostProcess

/// An alarm on CLOCK_BOOTTIME as a descriptor: one that became due while the machine slept is heard
/// when it wakes, which no timeout of poll(2) is (timerfd_create(2)).
public struct BootTimer: ~Copyable {
    private let source: Descriptor

    public init() throws(HostError) {
        let number = host_boot_timer_open()
        guard number >= 0 else {
            throw HostError(errno: -number, "cannot make a timer: \(textOfErrno(-number))")
        }
        source = Descriptor(owning: number)
    }

    /// Readable from then on, until it is set again.
    public var descriptor: Int32 { source.number }

    /// `time` as in `Host.bootMilliseconds`; the past is now. nil: never.
    public func set(_ time: Int64?) {
        host_boot_timer_set(source.number, time.map { max(0, $0) } ?? -1)
    }
}
