// SPDX-License-Identifier: Apache-2.0
import WireGuard

/// The bytes of one secret of any length, erased when the last reference goes. A class, because a
/// struct's bytes are copied with every move and no copy but the last would be erased.
///
/// `@unchecked Sendable`: `bytes` is written by the initialiser and by `deinit` only.
final class SecretBuffer: @unchecked Sendable {
    private var bytes: [UInt8]

    /// Takes a copy; the caller erases `source`.
    init(copying source: some Collection<UInt8>) {
        // Element by element: an array that was only assigned would share its storage with the
        // caller's, and erasing it would erase a copy.
        bytes = []
        bytes.reserveCapacity(source.count)
        for byte in source { bytes.append(byte) }
    }

    deinit { erase(&bytes) }

    func withBytes<R, Failure: Error>(_ body: ([UInt8]) throws(Failure) -> R) throws(Failure) -> R {
        try body(bytes)
    }

    func isEqual(_ other: SecretBuffer) -> Bool { equalInConstantTime(bytes, other.bytes) }
}
