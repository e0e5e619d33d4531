// SPDX-License-Identifier: Apache-2.0

/// What the agent found on disk.
public struct Loaded: Equatable, Sendable {
    /// The last good configuration.
    public var revision: Revision?
    /// The operator of the hub removed this device, and it was told.
    public var isRevoked = false
    /// A new key was accepted by the hub and is not proved yet.
    public var hasNextKey = false
    /// Milliseconds since the device token was given out.
    public var tokenAge: Int64 = 0

    public init() {}
}

/// A good answer to a heartbeat.
public struct HeartbeatNews: Equatable, Sendable {
    /// What the hub wants this device to have.
    public var revision: Revision
    /// The answer has the configuration or the forwards with it.
    public var isOffer = false
    /// It would change nothing of what is applied.
    public var isSameMeaning = false
    public var intervalSeconds: Int?
    public var command: Command?
    /// Tells one command from the next; nil: a hub that gives each of them once.
    public var commandId: String?

    public enum Command: Equatable, Sendable {
        /// A new handshake with the hub.
        case reset
        /// Provision anew, with the token that came with it.
        case reprovision
        case rotateKey
    }

    public init(revision: Revision) { self.revision = revision }
}

/// Why a revision is not in the tunnel.
public enum ApplyFault: Error, Equatable, Sendable {
    /// This host cannot have it; trying again changes nothing.
    case rejected(code: String, reason: String)
    /// The keeper does not run, is busy or failed: it may pass.
    case postponed(reason: String)
}

public enum AgentEvent: Equatable, Sendable {
    case started
    case loaded(Loaded)
    /// Nothing to load, but a token to provision with is at hand.
    case tokenAtHand
    /// Nothing to load and nothing to provision with.
    case notEnrolled
    /// The state is there and cannot be used; it stays as it is.
    case loadFailed(code: String, reason: String)
    /// Stored already.
    case provisioned(Revision, intervalSeconds: Int?)
    case provisionFailed(ControlFault)
    case applied(Revision, KeyChoice)
    case applyFailed(Revision, KeyChoice, ApplyFault)
    /// The alarm of `AgentState.nextTime`.
    case due
    case answered(HeartbeatNews)
    /// A heartbeat failed.
    case refused(ControlFault)
    case tokenRenewed
    case tokenRenewalFailed(ControlFault)
    case keyAccepted
    case keyRefused(ControlFault)
    /// The answer to `tellKeyInUse` was none, or no.
    case keyInUseNotTold(ControlFault)
    case read(TunnelReading)
    /// The keeper does not tell: it does not run, or there is no tunnel.
    case readingFailed(reason: String)
    /// The hub has news.
    case hurry
    /// An operator asks for a heartbeat.
    case asked
    /// The machine woke, or its network changed.
    case awoke(reason: String)
    /// The wall clock was set.
    case clockSet
    /// `enroll` or an operator changed what is on disk.
    case reload
    case unenrolled
    /// The answers to `resetHandshake`.
    case handshakeReset
    case handshakeNotReset(reason: String)
    case takenDown
    case takeDownFailed(reason: String)
    case stop
}

public enum AgentAction: Equatable, Sendable {
    case load
    case provision
    /// Ask the keeper for it. At once, and again, this may be the same revision.
    case apply(Revision, KeyChoice)
    /// It is in the tunnel: keep it as the last good one.
    case commit(Revision)
    case heartbeat
    case renewToken
    /// Make a key, store it as the next one, tell the hub.
    case askRotation
    /// The tunnel has this key now: tell the hub, before anything else.
    case tellKeyInUse(KeyChoice)
    /// Look at the tunnel now.
    case readTunnel
    /// The next key becomes the current one.
    case keepNextKey
    case dropNextKey
    /// Remove the hub's peer and add it again.
    case resetHandshake
    /// One datagram through the tunnel.
    case probe
    /// What the hub's events connection needs is there.
    case listen
    case takeDown
    /// So that the next start knows it.
    case markRevoked
    case say(Importance, String)
    case end(code: UInt8)

    public enum Importance: Equatable, Sendable { case info, warning, error }
}
