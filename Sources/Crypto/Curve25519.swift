// SPDX-License-Identifier: Apache-2.0
import CSodium
import WireGuard

extension SecretKey {
    /// A new private key, clamped (RFC 7748 section 5).
    public static func generate() -> SecretKey {
        var key = Random.bytes(keyLength)
        defer { erase(&key) }
        key[0] &= 248
        key[31] = key[31] & 127 | 64
        return SecretKey(copying: key.span)
    }

    /// The public key that belongs to it: X25519 with the base point (RFC 7748 section 6.1).
    public var publicKey: PublicKey {
        prepareSodium()
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
        var key = Random.bytes(keyLength)
        defer { erase(&key) }
        return PresharedKey(copying: key.span)
    }
}
