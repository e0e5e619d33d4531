// SPDX-License-Identifier: Apache-2.0
import CSodium
import WireGuard

// Argon2id (RFC 9106) by libsodium. The parameters are written out, because what was hashed or
// derived today must be verified and derived by a later library as well.

/// How an operator's password is kept: as a string that tells everything but the password. Each call
/// takes 64 MiB and some tenths of a second on purpose: run one at a time. Callable from any thread.
public enum PasswordHash {
    /// RFC 9106 section 4, second recommended option: three passes over 64 MiB. libsodium has one
    /// lane where that option has four.
    private static let passes: UInt64 = 3
    private static let memory = 64 << 20

    /// `$argon2id$v=19$m=65536,t=3,p=1$SALT$HASH`, with a random salt. The caller erases `password`.
    public static func hash(_ password: [UInt8]) throws(CryptoError) -> String {
        prepareSodium()
        var text = [CChar](repeating: 0, count: Int(crypto_pwhash_argon2id_STRBYTES))
        let status = unsafe withCharacters(password) { characters in
            unsafe crypto_pwhash_argon2id_str(
                &text, characters, UInt64(password.count), passes, memory)
        }
        guard status == 0 else { throw .outOfMemory(memory >> 20) }
        return String(
            decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Whether `hash` was made of `password`, in a time that does not tell how nearly. False for
    /// what is no hash, and where memory is lacking. The caller erases `password`.
    public static func verify(_ password: [UInt8], _ hash: String) -> Bool {
        prepareSodium()
        let length = Int(crypto_pwhash_argon2id_STRBYTES)
        let bytes = hash.utf8.map { CChar(bitPattern: $0) }
        // libsodium reads a string of at most 128 bytes with its NUL.
        guard bytes.count < length, !bytes.contains(0) else { return false }
        let text = bytes + [CChar](repeating: 0, count: length - bytes.count)
        return unsafe withCharacters(password) { characters in
            unsafe crypto_pwhash_argon2id_str_verify(text, characters, UInt64(password.count)) == 0
        }
    }
}

/// The key of a backup, from what its owner remembers. Callable from any thread.
public enum PassphraseKey {
    /// Bytes of a salt.
    public static let saltLength = 16
    /// Part of the backup's format.
    private static let passes: UInt64 = 3
    private static let memory = 64 << 20

    /// A new salt, kept beside the backup in clear.
    public static func newSalt() -> [UInt8] { Random.bytes(saltLength) }

    /// The same for the same arguments. `salt` is 16 bytes; the caller erases `passphrase`.
    public static func derive(
        passphrase: [UInt8], salt: [UInt8]
    ) throws(CryptoError) -> AEADKey {
        precondition(salt.count == saltLength, "the salt of a passphrase has 16 bytes")
        prepareSodium()
        var key = [UInt8](repeating: 0, count: AEADKey.length)
        defer { erase(&key) }
        let status = unsafe withCharacters(passphrase) { characters in
            unsafe crypto_pwhash_argon2id(
                &key, UInt64(key.count), characters, UInt64(passphrase.count), salt, passes,
                memory, crypto_pwhash_argon2id_alg_argon2id13())
        }
        guard status == 0 else { throw .outOfMemory(memory >> 20) }
        return AEADKey(copying: key)
    }
}

/// `bytes` as C's plain characters, without a copy of them.
private func withCharacters<R>(_ bytes: [UInt8], _ body: (UnsafePointer<CChar>) -> R) -> R {
    // An empty array may have no address.
    let bytes = bytes.isEmpty ? [0] : bytes
    return unsafe bytes.withUnsafeBytes { bytes in
        unsafe body(bytes.baseAddress!.assumingMemoryBound(to: CChar.self))
    }
}
