// SPDX-License-Identifier: Apache-2.0
import CTPM
import Glibc
import Synchronization

/// Why the TPM did not do it: a part of a sentence, without what was tried.
public struct TPMError: Error, Equatable, Sendable, CustomStringConvertible {
    public enum Kind: Equatable, Sendable {
        /// No TPM, no right to use it, or no tpm2-tss.
        case absent
        /// It answers, and refuses.
        case refused
        /// What was sealed is damaged, or another TPM's.
        case notOurs
    }

    public let kind: Kind
    public let description: String

    init(_ status: Int32, _ text: [CChar]) {
        kind =
            switch -status {
            case ENOSYS, ENODEV: .absent
            case EBADMSG: .notOurs
            default: .refused
            }
        description = String(
            decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

/// The machine's TPM 2.0, for a key of a few bytes. Callable from any thread; a call takes up to
/// some seconds.
public struct TPM: Sendable {
    /// Bytes.
    public static let capacity = Int(TPM_DATA_CAPACITY)
    /// The kernel's device, with its own resource manager.
    private static let device = "/dev/tpmrm0"
    /// tpm2-tss keeps state of its own.
    private static let isBusy = Mutex(())

    private let address: String

    /// `address` as Tss2_TctiLdr_Initialize(3) has it.
    public init(address: String) { self.address = address }

    /// The kernel's, where there is one that this process may use.
    public static var ofMachine: TPM? {
        guard unsafe access(device, R_OK | W_OK) == 0 else { return nil }
        return TPM(address: "device:\(device)")
    }

    /// Something that only this TPM makes `bytes` (at most `capacity`) of again.
    public func seal(_ bytes: [UInt8]) throws(TPMError) -> [UInt8] {
        precondition(bytes.count <= Self.capacity)
        return try unsafe call(capacity: TPM_BLOB_CAPACITY) { output, size, text in
            unsafe bytes.withUnsafeBufferPointer { bytes in
                unsafe tpm_seal(address, bytes.baseAddress, bytes.count, output, size, text)
            }
        }
    }

    /// What was sealed; the caller erases it.
    public func unseal(_ blob: [UInt8]) throws(TPMError) -> [UInt8] {
        try unsafe call(capacity: TPM_DATA_CAPACITY) { output, size, text in
            unsafe blob.withUnsafeBufferPointer { blob in
                unsafe tpm_unseal(address, blob.baseAddress, blob.count, output, size, text)
            }
        }
    }

    private func call(
        capacity: Int32,
        _ body: (
            UnsafeMutablePointer<UInt8>, UnsafeMutablePointer<Int>, UnsafeMutablePointer<CChar>
        )
            -> Int32
    ) throws(TPMError) -> [UInt8] {
        var output = [UInt8](repeating: 0, count: Int(capacity))
        defer { erase(&output) }
        var size = 0
        var text = [CChar](repeating: 0, count: Int(TPM_ERROR_CAPACITY))
        let status = Self.isBusy.withLock { _ in
            unsafe output.withUnsafeMutableBufferPointer { output in
                unsafe text.withUnsafeMutableBufferPointer { text in
                    unsafe body(output.baseAddress!, &size, text.baseAddress!)
                }
            }
        }
        guard status == 0 else { throw TPMError(status, text) }
        return Array(output.prefix(size))
    }

    private func erase(_ bytes: inout [UInt8]) {
        unsafe bytes.withUnsafeMutableBytes { bytes in
            unsafe explicit_bzero(bytes.baseAddress!, bytes.count)
        }
    }
}
