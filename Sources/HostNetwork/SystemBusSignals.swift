// SPDX-License-Identifier: Apache-2.0
import CSystemd
import Glibc

extension SystemBus {
    /// To wait on; not to be closed. Readable while `nextSignal` has something.
    var descriptor: Int32 { unsafe sd_bus_get_fd(bus) }

    /// From now on signals that `rule` describes come by (D-Bus specification, "Match Rules").
    func listen(_ rule: String) throws(Failure) {
        try call(
            "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "AddMatch"
        ) { (message) throws(Failure) in try message.append(rule) }
    }

    /// The next signal of that name; others are passed over. nil: none is there. Never waits; throws
    /// when the bus has ended.
    func nextSignal(_ interface: String, _ member: String) throws(Failure) -> BusMessage? {
        while true {
            var received: OpaquePointer?
            let status = unsafe sd_bus_process(bus, &received)
            try Self.check(status)
            if let received = unsafe received {
                let message = unsafe BusMessage(owning: received)
                if message.isSignal(interface, member) { return message }
            } else if status == 0 {
                return nil
            }
        }
    }

    /// Until something comes, at most so many microseconds.
    func wait(microseconds: UInt64) { _ = unsafe sd_bus_wait(bus, microseconds) }
}
