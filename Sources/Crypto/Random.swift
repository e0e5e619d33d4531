// SPDX-License-Identifier: Apache-2.0
import CSodium
import WireGuard

/// libsodium asks for this call before all others (its manual, "Usage"). It may be repeated, and
/// from any thread.
func prepareSodium() {
    precondition(sodium_init() >= 0, "libsodium found no source of random numbers")
}

/// Numbers nobody can foresee, from the kernel's generator. Callable from any thread.
public enum Random {
    /// `count` random bytes. Where they are to be a secret, the caller erases them.
    public static func bytes(_ count: Int) -> [UInt8] {
        prepareSodium()
        var bytes = [UInt8](repeating: 0, count: count)
        unsafe bytes.withUnsafeMutableBytes { buffer in
            // An empty array may have no address.
            guard let start = buffer.baseAddress else { return }
            unsafe randombytes_buf(start, buffer.count)
        }
        return bytes
    }

    /// A random UUID (RFC 9562 section 5.4, version 4), in lower case.
    public static func uuid() -> String {
        var bytes = bytes(16)
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        var text: [UInt8] = []
        for (index, byte) in bytes.enumerated() {
            if [4, 6, 8, 10].contains(index) { text.append(UInt8(ascii: "-")) }
            text.append(hexadecimal: byte)
        }
        return String(decoding: text, as: UTF8.self)
    }
}
