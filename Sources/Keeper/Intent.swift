// SPDX-License-Identifier: Apache-2.0
import TunnelPlan
import WireGuard

/// What becomes of the shell commands in a configuration (C26).
public enum HookPolicy: String, Sendable, CaseIterable {
    /// A configuration with hooks is refused.
    case refuse
    /// They run as root. Only root may ask for it.
    case allow
    /// The configuration is applied without them.
    case ignore
}

/// A tunnel that somebody wants, and how.
public struct Intent: Equatable, Sendable {
    public var configuration: ConfigurationFile
    /// nil: whoever moves the packets now, or the best there is.
    public var backend: BackendKind?
    public var hooks: HookPolicy
    public var gateway = Gateway()
    /// It comes back with the machine. Once said, it holds until `down`.
    public var isPersistent = false

    public init(
        _ configuration: ConfigurationFile, backend: BackendKind? = nil, hooks: HookPolicy = .refuse
    ) {
        self.configuration = configuration
        self.backend = backend
        self.hooks = hooks
    }

    func commands(_ event: ConfigurationFile.Hook.Event) -> [ConfigurationText] {
        guard hooks == .allow else { return [] }
        return configuration.interface.hooks.filter { $0.event == event }.map(\.command)
    }
}

/// What comes back with the machine.
public struct Boot: Equatable, Sendable {
    /// As it was kept; nil: nothing was.
    public var intent: Intent?
    /// This keeper began with the machine: where nothing is left, it brings that up.
    public var isDue = false
    /// nil: none was kept.
    public var clock: ClockRecord?
    public init() {}
}

/// Something the keeper did or met without being asked at that moment: a log line, and a line of
/// the event stream.
public struct KeeperEvent: Equatable, Sendable {
    public enum Kind: String, Sendable, CaseIterable {
        case applied, rolledBack, confirmed, reverted
        /// Somebody removed what belongs to the tunnel, and it is back.
        case healed
        /// The host changed, and the tunnel with it.
        case followed
        /// Somebody keeps removing it.
        case contested
        case endpoint, unresolved
        /// It is behind what this tunnel has sent, or is not any more.
        case clock
        case failed, ended
    }

    public var kind: Kind
    /// One line, never with a secret.
    public var message: String

    public init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    /// Whether it goes to the log as a warning.
    public var isWarning: Bool {
        switch kind {
        case .healed, .contested, .unresolved, .failed, .rolledBack, .reverted: true
        case .applied, .confirmed, .followed, .endpoint, .clock, .ended: false
        }
    }
}

/// Full jitter (a number from 0 to the limit, each as likely) for waits that many hosts share.
struct Jitter: Equatable, Sendable {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    /// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
    private mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }

    /// `limit` is not negative.
    mutating func upTo(_ limit: Int64) -> Int64 { Int64(next() % (UInt64(limit) + 1)) }
}
