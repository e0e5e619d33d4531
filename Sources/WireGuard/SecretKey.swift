// SPDX-License-Identifier: Apache-2.0
// Keys that must not leak: they print as "(hidden)", show no children to Mirror, compare in
// constant time, and their one copy is erased when the last reference goes (C14, C93).

/// Makes the compiler believe that `bytes` is read, so that the stores before it stay: a function
/// that is not optimised is neither inlined nor looked into.
@inline(never) @_optimize(none)
private func observe(_ bytes: inout KeyBytes) {}

@inline(never) @_optimize(none)
private func observe(_ bytes: inout [UInt8]) {}

private func erase(_ bytes: inout KeyBytes) {
    for index in bytes.indices { bytes[index] = 0 }
    observe(&bytes)
}

/// Overwrites a buffer that held secrets with zeros. Its length stays.
public func erase(_ bytes: inout [UInt8]) {
    for index in bytes.indices { bytes[index] = 0 }
    observe(&bytes)
}

/// The bytes of one secret. A class, because a struct's bytes are copied with every move and no
/// copy but the last would be erased.
///
/// `@unchecked Sendable`: `bytes` is written by the initialisers and by `deinit` only.
private final class SecretBytes: @unchecked Sendable {
    private var bytes = KeyBytes(repeating: 0)

    init(copying source: Span<UInt8>) {
        precondition(source.count == keyLength, "a key has 32 bytes")
        for index in 0..<keyLength { bytes[index] = source[index] }
    }

    init(hex text: Span<UInt8>) throws(KeyError) { try Hex.decode(text, into: &bytes) }

    init(base64 text: Span<UInt8>) throws(KeyError) { try Base64.decode(text, into: &bytes) }

    deinit { erase(&bytes) }

    var isZero: Bool {
        var sum: UInt8 = 0
        for index in 0..<keyLength { sum |= bytes[index] }
        return sum == 0
    }

    func isEqual(_ other: SecretBytes) -> Bool {
        var difference: UInt8 = 0
        for index in 0..<keyLength { difference |= bytes[index] ^ other.bytes[index] }
        return difference == 0
    }

    func appendHex(to text: inout [UInt8]) { Hex.append(bytes, to: &text) }
    func appendBase64(to text: inout [UInt8]) { Base64.append(bytes, to: &text) }
    func withBytes<R>(_ body: (Span<UInt8>) -> R) -> R { body(bytes.span) }
}

/// What the two kinds of secret have in common.
public protocol Secret: Equatable, Sendable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    /// `source` has 32 bytes; the caller erases it.
    init(copying source: Span<UInt8>)
    init(hex text: Span<UInt8>) throws(KeyError)
    init(base64 text: Span<UInt8>) throws(KeyError)
    var isZero: Bool { get }
    /// The caller erases `text`.
    func appendHex(to text: inout [UInt8])
    /// The caller erases `text`.
    func appendBase64(to text: inout [UInt8])
    func withBytes<R>(_ body: (Span<UInt8>) -> R) -> R
}

extension Secret {
    public var description: String { "(hidden)" }
    public var debugDescription: String { "(hidden)" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// A Curve25519 private key. All zero means "none" (`isZero`).
public struct SecretKey: Secret {
    private let storage: SecretBytes

    public init(copying source: Span<UInt8>) { storage = SecretBytes(copying: source) }
    public init(hex text: Span<UInt8>) throws(KeyError) { storage = try SecretBytes(hex: text) }
    public init(base64 text: Span<UInt8>) throws(KeyError) {
        storage = try SecretBytes(base64: text)
    }
    public var isZero: Bool { storage.isZero }
    public func appendHex(to text: inout [UInt8]) { storage.appendHex(to: &text) }
    public func appendBase64(to text: inout [UInt8]) { storage.appendBase64(to: &text) }
    public func withBytes<R>(_ body: (Span<UInt8>) -> R) -> R { storage.withBytes(body) }
    public static func == (left: SecretKey, right: SecretKey) -> Bool {
        left.storage.isEqual(right.storage)
    }
}

extension SecretKey {
    /// The same key as every device keeps and reports it (RFC 7748 section 5, `decodeScalar25519`);
    /// zeros stay zeros. Keys that `wg genkey` made are like this already.
    public var clamped: SecretKey {
        guard !isZero else { return self }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(keyLength)
        withBytes { key in for index in 0..<keyLength { bytes.append(key[index]) } }
        defer { erase(&bytes) }
        bytes[0] = bytes[0] & 248
        bytes[31] = bytes[31] & 127 | 64
        return SecretKey(copying: bytes.span)
    }
}

/// A symmetric key mixed into the handshake of one peer. All zero means "none" (`isZero`).
public struct PresharedKey: Secret {
    private let storage: SecretBytes

    public init(copying source: Span<UInt8>) { storage = SecretBytes(copying: source) }
    public init(hex text: Span<UInt8>) throws(KeyError) { storage = try SecretBytes(hex: text) }
    public init(base64 text: Span<UInt8>) throws(KeyError) {
        storage = try SecretBytes(base64: text)
    }
    public var isZero: Bool { storage.isZero }
    public func appendHex(to text: inout [UInt8]) { storage.appendHex(to: &text) }
    public func appendBase64(to text: inout [UInt8]) { storage.appendBase64(to: &text) }
    public func withBytes<R>(_ body: (Span<UInt8>) -> R) -> R { storage.withBytes(body) }
    public static func == (left: PresharedKey, right: PresharedKey) -> Bool {
        left.storage.isEqual(right.storage)
    }
}
