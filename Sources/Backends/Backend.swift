// SPDX-License-Identifier: Apache-2.0
import TunnelPlan
import WireGuard

/// Whether a back-end can be used on this host by this process.
public enum BackendAvailability: Equatable, Sendable {
    case available
    /// What is missing, told apart by its kind: `.permission` (C83) or `.unavailable` (C84).
    case unavailable(BackendError)

    public var isAvailable: Bool { self == .available }
}

/// Who moves the packets of tunnels: makes WireGuard devices and configures them. Addresses, routes
/// and all else that a link has are not its business. Each call waits for the answer, within a
/// bound.
public protocol Backend {
    var kind: BackendKind { get }

    /// Changes nothing.
    func availability() -> BackendAvailability

    /// The devices that there are, sorted by name.
    func names() throws(BackendError) -> [InterfaceName]

    /// Makes a device that is down and has nothing. Throws `.taken` when the name is.
    func create(_ name: InterfaceName) throws(BackendError)

    /// Throws `.notRunning` when there is no such device. Its `mtu` and `isUp` are empty where only
    /// the link knows them.
    func snapshot(_ name: InterfaceName) throws(BackendError) -> DeviceSnapshot

    /// Makes the changes in their order. With `replacePeers` the peers not named go. When it throws,
    /// some of them may have been made.
    func apply(
        _ name: InterfaceName, device: DeviceChange, peers: [PeerChange], replacePeers: Bool
    ) throws(BackendError)

    /// The link of the device `name` has been set up: returns when the device knows it and takes what peers
    /// send.
    func awaitUp(_ name: InterfaceName) throws(BackendError)

    /// Whether a device could be made under this name now, as far as the back-end can tell.
    func isFree(_ name: InterfaceName) -> Bool

    /// The link of the device `name` is about to be called `other`, which nobody is: what leads to the
    /// device by its name leads there. One that does already is no failure.
    func rename(_ name: InterfaceName, to other: InterfaceName) throws(BackendError)

    /// The device, and with it the link, is gone when this returns. One that is gone already is no
    /// failure.
    func remove(_ name: InterfaceName) throws(BackendError)
}

extension Backend {
    public func awaitUp(_ name: InterfaceName) throws(BackendError) {}

    public func isFree(_ name: InterfaceName) -> Bool { true }

    public func rename(_ name: InterfaceName, to other: InterfaceName) throws(BackendError) {}
}

/// Which back-end a new tunnel gets.
public struct BackendSelection: Equatable, Sendable {
    public var kind: BackendKind
    /// Why it is not the first choice; one line.
    public var note: String?

    public init(_ kind: BackendKind, note: String? = nil) {
        self.kind = kind
        self.note = note
    }

    /// The one asked for; for nil the kernel, and where it cannot the engine, with one line that
    /// says why (C84). Throws what is missing.
    public static func choose(
        _ preference: BackendKind?, kernel: BackendAvailability, userspace: BackendAvailability
    ) throws(BackendError) -> BackendSelection {
        switch (preference, kernel, userspace) {
        case (.kernel, .available, _), (nil, .available, _):
            return BackendSelection(.kernel)
        case (.kernel, .unavailable(let why), _):
            throw why
        case (.userspace, _, .available):
            return BackendSelection(.userspace)
        case (.userspace, _, .unavailable(let why)):
            throw why
        case (nil, .unavailable(let why), .available):
            return BackendSelection(
                .userspace, note: "using nexusguard-engine: \(why.message)")
        case (nil, .unavailable(let kernel), .unavailable(let engine)):
            // A missing right is what both lack, and all there is to mend (C83).
            if kernel.kind == .permission { throw kernel }
            if engine.kind == .permission { throw engine }
            throw BackendError(.unavailable, "\(engine.message); and \(kernel.message)")
        }
    }
}
