// SPDX-License-Identifier: Apache-2.0
import CCrypto
import WireGuard

/// 32 bytes that seal and open. It prints as "(hidden)" and is erased with its last reference.
public struct AEADKey: Equatable, Sendable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    public static let length = 32
    private let storage: SecretBuffer

    /// `bytes` are 32; the caller erases them.
    public init(copying bytes: [UInt8]) {
        precondition(bytes.count == Self.length, "a key of AES-256 has 32 bytes")
        storage = SecretBuffer(copying: bytes)
    }

    /// A new key: 32 random bytes.
    public static func generate() -> AEADKey {
        var bytes = Random.bytes(length)
        defer { erase(&bytes) }
        return AEADKey(copying: bytes)
    }

    /// `body` must keep no copy that it does not erase.
    public func withBytes<R, Failure: Error>(
        _ body: ([UInt8]) throws(Failure) -> R
    ) throws(Failure) -> R { try storage.withBytes(body) }

    public static func == (left: AEADKey, right: AEADKey) -> Bool {
        left.storage.isEqual(right.storage)
    }

    public var description: String { "(hidden)" }
    public var debugDescription: String { "(hidden)" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// AES-256-GCM (NIST SP 800-38D) in its combined form: nonce, ciphertext, tag. By libcrypto;
/// callable from any thread.
public enum AES256GCM {
    /// Bytes of a nonce.
    public static let nonceLength = 12
    /// Bytes of a tag.
    public static let tagLength = 16
    /// How much longer a sealed text is than its plaintext.
    public static let overhead = nonceLength + tagLength

    /// nonce ‖ ciphertext ‖ tag. `aad` is authenticated with it and must be given to `open` again.
    /// `nonce` is 12 bytes, and never used twice with one key; nil makes a random one, which is
    /// good for 2^32 messages of a key (SP 800-38D section 8.3).
    public static func seal(
        _ plaintext: [UInt8], key: AEADKey, nonce: [UInt8]? = nil, aad: [UInt8] = []
    ) -> [UInt8] {
        let nonce = nonce ?? Random.bytes(nonceLength)
        precondition(nonce.count == nonceLength, "the nonce of AES-GCM has 12 bytes here")
        let context = CipherContext(key: key, nonce: nonce, mode: .seal)
        context.authenticate(aad)
        var sealed = nonce + [UInt8](repeating: 0, count: plaintext.count + tagLength)
        context.transform(plaintext[...], into: &sealed, at: nonceLength)
        let isFinished = context.finish()
        precondition(isFinished, "libcrypto could not finish a seal")
        context.copyTag(into: &sealed, at: nonceLength + plaintext.count)
        return sealed
    }

    /// The plaintext; the caller erases it where it is secret. Throws `.tooShort` and
    /// `.notAuthentic`; what was deciphered is erased before.
    public static func open(
        _ sealed: [UInt8], key: AEADKey, aad: [UInt8] = []
    ) throws(CryptoError) -> [UInt8] {
        guard sealed.count >= overhead else { throw .tooShort(sealed.count) }
        let context = CipherContext(key: key, nonce: Array(sealed[..<nonceLength]), mode: .open)
        context.authenticate(aad)
        let ciphertext = sealed[nonceLength..<(sealed.count - tagLength)]
        var plaintext = [UInt8](repeating: 0, count: ciphertext.count)
        context.transform(ciphertext, into: &plaintext, at: 0)
        context.expect(tag: Array(sealed.suffix(tagLength)))
        guard context.finish() else {
            erase(&plaintext)
            throw .notAuthentic
        }
        return plaintext
    }
}

/// Owner of one EVP_CIPHER_CTX (EVP_EncryptInit(3ssl), section "GCM and OCB Modes"). libcrypto
/// erases the key schedule when it frees it.
@safe private struct CipherContext: ~Copyable {
    enum Mode: CInt {
        case open = 0
        case seal = 1
    }

    private let pointer: OpaquePointer

    init(key: AEADKey, nonce: [UInt8], mode: Mode) {
        guard let pointer = unsafe EVP_CIPHER_CTX_new() else { fatalError("out of memory") }
        unsafe self.pointer = unsafe pointer
        let status = key.withBytes { key in
            unsafe EVP_CipherInit_ex(pointer, EVP_aes_256_gcm(), nil, key, nonce, mode.rawValue)
        }
        precondition(status == 1, "libcrypto has no AES-256-GCM")
    }

    deinit { unsafe EVP_CIPHER_CTX_free(pointer) }

    func authenticate(_ aad: [UInt8]) {
        guard !aad.isEmpty else { return }
        var written: CInt = 0
        let status = unsafe EVP_CipherUpdate(pointer, nil, &written, aad, CInt(aad.count))
        precondition(status == 1, "libcrypto refused associated data")
    }

    /// Writes as many bytes as `input` has to `output` from `offset` on. `input` is below 2 GiB.
    func transform(_ input: ArraySlice<UInt8>, into output: inout [UInt8], at offset: Int) {
        guard !input.isEmpty else { return }
        precondition(output.count - offset >= input.count)
        var written: CInt = 0
        let status = unsafe input.withUnsafeBufferPointer { input in
            unsafe output.withUnsafeMutableBufferPointer { output in
                unsafe EVP_CipherUpdate(
                    pointer, output.baseAddress! + offset, &written, input.baseAddress!,
                    CInt(input.count))
            }
        }
        precondition(status == 1 && Int(written) == input.count, "libcrypto ciphered less")
    }

    func expect(tag: [UInt8]) {
        var tag = tag
        let status = unsafe EVP_CIPHER_CTX_ctrl(
            pointer, EVP_CTRL_AEAD_SET_TAG, CInt(tag.count), &tag)
        precondition(status == 1, "libcrypto refused a tag of 16 bytes")
    }

    /// Whether the tag is the expected one; always true when sealing. GCM leaves nothing to write.
    func finish() -> Bool {
        var rest = [UInt8](repeating: 0, count: 16)
        var written: CInt = 0
        return unsafe EVP_CipherFinal_ex(pointer, &rest, &written) == 1
    }

    func copyTag(into output: inout [UInt8], at offset: Int) {
        precondition(output.count - offset >= AES256GCM.tagLength)
        let status = unsafe output.withUnsafeMutableBytes { output in
            unsafe EVP_CIPHER_CTX_ctrl(
                pointer, EVP_CTRL_AEAD_GET_TAG, CInt(AES256GCM.tagLength),
                output.baseAddress! + offset)
        }
        precondition(status == 1, "libcrypto gave no tag")
    }
}
