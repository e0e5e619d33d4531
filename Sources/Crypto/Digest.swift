// SPDX-License-Identifier: Apache-2.0
import CCrypto
import CSodium
import WireGuard

/// SHA-256 (FIPS 180-4), by libcrypto. Callable from any thread.
public enum SHA256 {
    /// Bytes of a digest.
    public static let length = 32

    /// The 32 bytes of the digest of `bytes`.
    public static func hash(_ bytes: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: length)
        let status = unsafe bytes.withUnsafeBytes { input in
            unsafe digest.withUnsafeMutableBufferPointer { output in
                unsafe EVP_Digest(
                    input.baseAddress, input.count, output.baseAddress, nil, EVP_sha256(), nil)
            }
        }
        precondition(status == 1, "libcrypto has no SHA-256")
        return digest
    }
}

extension [UInt8] {
    /// Two hexadecimal digits in lower case. Not for secrets: it indexes by its argument.
    mutating func append(hexadecimal byte: UInt8) {
        for digit in [byte >> 4, byte & 15] { append(digit < 10 ? 0x30 + digit : 0x57 + digit) }
    }
}

/// The bytes as hexadecimal digits in lower case. Not for secrets.
public func hexadecimal(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    text.reserveCapacity(2 * bytes.count)
    for byte in bytes { text.append(hexadecimal: byte) }
    return String(decoding: text, as: UTF8.self)
}

/// Whether both are the same bytes. How long it takes tells their lengths, and nothing else.
public func equalInConstantTime(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    guard !left.isEmpty else { return true }
    return unsafe left.withUnsafeBytes { left in
        unsafe right.withUnsafeBytes { right in
            unsafe sodium_memcmp(left.baseAddress!, right.baseAddress!, left.count) == 0
        }
    }
}
