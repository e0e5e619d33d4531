// SPDX-License-Identifier: Apache-2.0
import Crypto
import FoundationEssentials
import WireGuard

/// Why an envelope does not open.
public enum EnvelopeError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Not standard base64 in its one canonical spelling (RFC 4648 section 3.5).
    case notBase64
    /// Too short, cut, changed, or made for another device or salt.
    case notAuthentic

    public var description: String {
        switch self {
        case .notBase64: "it is not base64"
        case .notAuthentic: "it was made for another device, or is damaged"
        }
    }
}

/// The sealed form of a configuration: AES-256-GCM under SHA-256(hwid ‖ salt), no associated data,
/// base64 of nonce[12] ‖ ciphertext ‖ tag[16].
///
/// Who knows the device's `hwid` and reads the answer can open it: the secrecy of the way is TLS's.
/// What the envelope adds is that an answer for another device, or a damaged one, is never applied.
public enum Envelope {
    /// Hexadecimal digits of a salt.
    public static let saltLength = 32

    /// 16 random bytes as hexadecimal digits in lower case.
    public static func newSalt() -> String { hexadecimal(Random.bytes(saltLength / 2)) }

    /// The envelope. A nonce is given by tests only.
    public static func seal(
        _ plaintext: [UInt8], hwid: String, salt: String, nonce: [UInt8]? = nil
    ) -> String {
        let sealed = AES256GCM.seal(plaintext, key: key(hwid, salt), nonce: nonce)
        return Data(sealed).base64EncodedString()
    }

    /// The plaintext; the caller erases it.
    public static func open(
        _ text: String, hwid: String, salt: String
    ) throws(EnvelopeError) -> [UInt8] {
        guard let data = Data(base64Encoded: text), data.base64EncodedString() == text else {
            throw .notBase64
        }
        do throws(CryptoError) {
            return try AES256GCM.open(Array(data), key: key(hwid, salt))
        } catch {
            throw .notAuthentic
        }
    }

    private static func key(_ hwid: String, _ salt: String) -> AEADKey {
        var digest = SHA256.hash(Array(hwid.utf8) + Array(salt.utf8))
        defer { erase(&digest) }
        return AEADKey(copying: digest)
    }
}
