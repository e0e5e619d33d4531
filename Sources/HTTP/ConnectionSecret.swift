// SPDX-License-Identifier: Apache-2.0
import WireGuard

/// A secret that goes over, or belongs to, a connection: the private key of a certificate in PEM, a
/// bearer token. Prints as "(hidden)", shows no children to Mirror; its one copy is erased when the
/// last reference goes (C93).
public struct ConnectionSecret: Sendable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    /// `@unchecked Sendable`: `bytes` is written by the initialiser and by `deinit` only.
    private final class Storage: @unchecked Sendable {
        private var bytes: [UInt8]

        init(_ bytes: consuming [UInt8]) { self.bytes = bytes }
        deinit { erase(&bytes) }

        func withBytes<R>(_ body: (Span<UInt8>) -> R) -> R {
            let same = bytes  // shares the buffer
            return body(same.span)
        }
    }

    private let storage: Storage

    /// The caller erases `bytes`.
    public init(copying bytes: [UInt8]) {
        // An array shares its buffer with copies of it: this one must have its own.
        var own = [UInt8](repeating: 0, count: bytes.count)
        for index in bytes.indices { own[index] = bytes[index] }
        storage = Storage(own)
    }

    public func withBytes<R>(_ body: (Span<UInt8>) -> R) -> R { storage.withBytes(body) }

    public var description: String { "(hidden)" }
    public var debugDescription: String { "(hidden)" }
    public var customMirror: Mirror { Mirror(self, children: []) }

    /// As C text, for the length of `body`; the copy is erased.
    func withCString<R>(_ body: (UnsafePointer<CChar>) -> R) -> R {
        var text: [UInt8] = []
        withBytes { bytes in
            text.reserveCapacity(bytes.count + 1)
            for index in bytes.indices { text.append(bytes[index]) }
        }
        text.append(0)
        defer { erase(&text) }
        return unsafe text.withUnsafeBufferPointer { buffer in
            unsafe buffer.withMemoryRebound(to: CChar.self) { unsafe body($0.baseAddress!) }
        }
    }
}
