// SPDX-License-Identifier: Apache-2.0
import CSodium
import WireGuard

/// What a device or an operator shows in `Authorization: Bearer …` (RFC 6750 section 2.1): 256
/// random bits, as text 43 characters of base64url (RFC 4648 section 5) without padding. It prints
/// as "(hidden)" and is erased with its last reference.
public struct BearerToken: Equatable, Sendable, CustomStringConvertible,
    CustomDebugStringConvertible, CustomReflectable
{
    /// Characters of the text form.
    public static let textLength = 43
    private static let byteLength = 32
    /// The text form in ASCII.
    private let storage: SecretBuffer

    public static func generate() -> BearerToken {
        var bytes = Random.bytes(byteLength)
        defer { erase(&bytes) }
        return BearerToken(encoding: bytes)
    }

    /// nil for what is not the one text form of 32 bytes. The caller erases `text`.
    public init?(text: [UInt8]) {
        prepareSodium()
        guard text.count == Self.textLength else { return nil }
        var bytes = [UInt8](repeating: 0, count: Self.byteLength)
        defer { erase(&bytes) }
        var count = 0
        let status = unsafe text.withUnsafeBytes { text in
            let characters = unsafe text.baseAddress!.assumingMemoryBound(to: CChar.self)
            return unsafe sodium_base642bin(
                &bytes, bytes.count, characters, text.count, nil, &count, nil, base64url)
        }
        guard status == 0, count == Self.byteLength else { return nil }
        // libsodium 1.0.18 takes some bytes above 0x7F for characters of the alphabet, where char has
        // a sign. What it reads is written again and compared.
        self.init(encoding: bytes)
        guard withText({ equalInConstantTime($0, text) }) else { return nil }
    }

    /// `bytes` are 32.
    private init(encoding bytes: [UInt8]) {
        // One byte more, for the NUL that libsodium puts at the end.
        var text = [UInt8](repeating: 0, count: Self.textLength + 1)
        defer { erase(&text) }
        unsafe text.withUnsafeMutableBytes { text in
            let characters = unsafe text.baseAddress!.assumingMemoryBound(to: CChar.self)
            _ = unsafe sodium_bin2base64(
                characters, text.count, bytes, bytes.count, base64url)
        }
        storage = SecretBuffer(copying: text[..<Self.textLength])
    }

    /// SHA-256 of the text form, in lower-case hexadecimal digits: all that a server keeps. A token
    /// has 256 random bits, so its plain digest is as hard to invert as a slow one.
    public var digest: String { storage.withBytes { hexadecimal(SHA256.hash($0)) } }

    /// The text form in ASCII. `body` must keep no copy that it does not erase.
    public func withText<R, Failure: Error>(
        _ body: ([UInt8]) throws(Failure) -> R
    ) throws(Failure) -> R { try storage.withBytes(body) }

    public static func == (left: BearerToken, right: BearerToken) -> Bool {
        left.storage.isEqual(right.storage)
    }

    public var description: String { "(hidden)" }
    public var debugDescription: String { "(hidden)" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// `sodium_base64_VARIANT_URLSAFE_NO_PADDING` of sodium/utils.h.
private let base64url: CInt = 7
