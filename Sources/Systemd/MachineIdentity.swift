// SPDX-License-Identifier: Apache-2.0
import CSystemd
import Glibc

/// Which machine this is.
public enum MachineIdentity {
    /// Why there is none, and what to do.
    public struct Missing: Error, Equatable, Sendable, CustomStringConvertible {
        public let description: String
    }

    /// This program's own, made up once. machine-id(5) asks not to show the machine's id itself.
    private static let application = sd_id128(
        bytes: (
            0xd9, 0xff, 0x17, 0x99, 0xf7, 0x1a, 0x40, 0x4e, 0x87, 0x5b, 0x25, 0x7d, 0x36, 0x52,
            0xf3, 0x4a
        ))

    /// 32 hexadecimal digits in lower case, stable for this program on this machine, from which
    /// nobody finds the id in /etc/machine-id (sd_id128_get_machine_app_specific(3)).
    public static func current() throws(Missing) -> String {
        var identity = sd_id128()
        let status = unsafe sd_id128_get_machine_app_specific(application, &identity)
        guard status >= 0 else {
            let reason = unsafe String(cString: strerror(-status))
            throw Missing(
                description: "cannot read this machine's id from /etc/machine-id: \(reason); "
                    + "run systemd-machine-id-setup")
        }
        var text = [CChar](repeating: 0, count: 33)
        unsafe text.withUnsafeMutableBufferPointer { buffer in
            _ = unsafe sd_id128_to_string(identity, buffer.baseAddress!)
        }
        return String(decoding: text.prefix(32).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
