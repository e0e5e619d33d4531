// SPDX-License-Identifier: Apache-2.0
import CSodium
import WireGuard

/// libsodium asks for this call before all others (its manual, "Usage"). It may be repeated.
private func prepare() {
    precondition(sodium_init() >= 0, "libsodium found no source of random numbers")
}

extension SecretKey {
    /// A new private key, clamped (RFC 7748 section 5).
    public static func generate() -> SecretKey {
        var key = randomBytes()
        defer { erase(&key) }
        key[0] &= 248
        key[31] = key[31] & 127 | 64
        return SecretKey(copying: key.span)
    }

    /// The public key that belongs to it: X25519 with the base point (RFC 7748 section 6.1).
    public var publicKey: PublicKey {
        prepare()
        var result = InlineArray<32, UInt8>(repeating: 0)
        withBytes { key in
            var output = result.mutableSpan
            unsafe output.withUnsafeMutableBufferPointer { output in
                unsafe key.withUnsafeBufferPointer { key in
                    // It clamps the key itself, and fails for points of low order only, which the
                    // base point is not.
                    let status = unsafe crypto_scalarmult_curve25519_base(
                        output.baseAddress!, key.baseAddress!)
                    precondition(status == 0, "multiplication with the base point failed")
                }
            }
        }
        return PublicKey(bytes: result)
    }
}

extension PresharedKey {
    /// A new key: 32 random bytes.
    public static func generate() -> PresharedKey {
        var key = randomBytes()
        defer { erase(&key) }
        return PresharedKey(copying: key.span)
    }
}

/// The caller erases them.
private func randomBytes() -> [UInt8] {
    prepare()
    var bytes = [UInt8](repeating: 0, count: keyLength)
    unsafe bytes.withUnsafeMutableBytes { buffer in
        unsafe randombytes_buf(buffer.baseAddress!, buffer.count)
    }
    return bytes
}
