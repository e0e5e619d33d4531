// SPDX-License-Identifier: Apache-2.0

/// An operation that was refused. The numbers are those of Linux (asm-generic/errno.h): they go
/// over the socket, and the client reads them with its own errno.h.
public struct UAPIError: Error, Equatable, Sendable {
    /// Positive.
    public let errno: Int32

    public init(errno: Int32) { self.errno = errno }

    /// EIO: a line longer than `LineAssembler.limit`.
    public static let lineTooLong = UAPIError(errno: 5)
    /// E2BIG: more prefixes for one peer than `UAPIConnection.prefixLimit`.
    public static let tooMany = UAPIError(errno: 7)
    /// EBUSY: another client is replacing all peers.
    public static let busy = UAPIError(errno: 16)
    /// EINVAL: an unknown key, or a value that does not parse.
    public static let invalid = UAPIError(errno: 22)
    /// EPROTO: a line without `=`, or an unknown operation.
    public static let protocolViolation = UAPIError(errno: 71)
}

/// A device that the configuration protocol controls. Not called concurrently by one connection.
public protocol UAPIDevice: AnyObject {
    func snapshot() throws(UAPIError) -> DeviceSnapshot
    func set(device change: DeviceChange) throws(UAPIError)
    func set(peer change: PeerChange) throws(UAPIError)

    /// Peers not set between begin and commit are removed at commit; abort removes nobody.
    /// EBUSY while a replacement is open.
    func beginReplacePeers() throws(UAPIError)
    func commitReplacePeers() throws(UAPIError)
    func abortReplacePeers()
    /// Whether a replacement is open.
    var isReplacingPeers: Bool { get }
}
