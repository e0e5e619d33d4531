// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Owner of an open, non-blocking descriptor; closes it at the end of its life.
public struct Descriptor: ~Copyable {
    /// For `Poller`; not to be closed.
    public let number: Int32

    init(owning number: Int32) { self.number = number }

    deinit { close(number) }

    public enum ReadResult {
        case bytes(Int)
        /// Nothing there now.
        case empty
        /// The other side has closed, or the connection broke.
        case ended
    }

    /// Reads into the beginning of `buffer`.
    public borrowing func read(into buffer: inout [UInt8]) -> ReadResult {
        while true {
            let length = unsafe buffer.withUnsafeMutableBytes { bytes in
                unsafe Glibc.read(number, bytes.baseAddress, bytes.count)
            }
            if length > 0 { return .bytes(length) }
            if length == 0 { return .ended }
            if errno == EAGAIN { return .empty }
            if errno != EINTR { return .ended }
        }
    }

    /// Writes `bytes` from `start`; how many were taken (0: would block), nil when the connection
    /// is broken.
    public borrowing func write(_ bytes: [UInt8], from start: Int) -> Int? {
        while true {
            let length = unsafe bytes.withUnsafeBytes { bytes in
                let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[start...])
                return unsafe send(number, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
            }
            if length >= 0 { return length }
            if errno == EAGAIN { return 0 }
            if errno != EINTR { return nil }
        }
    }
}
