// SPDX-License-Identifier: Apache-2.0

/// Why a cryptographic operation has no result. Carries nothing of keys or texts.
public enum CryptoError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Shorter than nonce and tag together; the length that was found, in bytes.
    case tooShort(Int)
    /// The tag does not fit: another key, another context, or damage. Which one cannot be told.
    case notAuthentic
    /// The password function needs more memory than the system gives, in MiB.
    case outOfMemory(Int)

    public var description: String {
        switch self {
        case .tooShort(let length): "\(length) bytes are too short for a sealed text"
        case .notAuthentic: "it was sealed with another key, or is damaged"
        case .outOfMemory(let mebibytes): "\(mebibytes) MiB of memory were not to be had"
        }
    }
}
