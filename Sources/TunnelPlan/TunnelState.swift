// SPDX-License-Identifier: Apache-2.0
// A tunnel as it is and as it should be.
import WireGuard

/// Who moves the packets.
public enum BackendKind: String, Hashable, Sendable, CaseIterable {
    case kernel
    /// `nexusguard-engine`.
    case userspace
}

/// A tunnel that exists.
public struct TunnelState: Equatable, Sendable {
    public var backend: BackendKind
    public var device: DeviceSnapshot
    public var host: HostState

    public init(backend: BackendKind, device: DeviceSnapshot, host: HostState) {
        self.backend = backend
        self.device = device
        self.host = host
    }
}

/// A tunnel that is wanted, decided to the last number: names resolved, tables and marks chosen.
public struct DesiredTunnel: Equatable, Sendable {
    /// nil: whoever it is now, or the best there is.
    public var backend: BackendKind?
    /// A nil field leaves the device's as it is (C58).
    public var device = DeviceChange()
    public var peers: [DesiredPeer] = []
    public var host = HostState()

    public init() {}
}

public struct DesiredPeer: Equatable, Sendable {
    public var publicKey: PublicKey
    /// nil: none, and one that is there goes.
    public var presharedKey: PresharedKey?
    /// Where to begin; nil leaves what was learned. It never replaces the endpoint of a live
    /// session (pitfall 56): see `EndpointPolicy`.
    public var endpoint: Endpoint?
    /// What the file says about the endpoint; nil: unknown. A name that resolves anew is no change
    /// of the configuration.
    public var endpointSource: PeerEndpoint?
    /// Seconds; 0: off.
    public var keepalive: UInt16 = 0
    /// Of two peers with one prefix the later has it.
    public var prefixes: Set<Prefix> = []

    public init(publicKey: PublicKey) { self.publicKey = publicKey }
}
