// SPDX-License-Identifier: Apache-2.0
// The agent's state, all of it. docs/agent.md has the table of its transitions; `step` is the only
// function that makes them.

public enum Phase: String, Equatable, Sendable, CaseIterable {
    case boot
    /// Reading what is on disk.
    case appInit
    /// Asking the hub for an identity.
    case provision
    /// Waiting for the next try, or for somebody to enrol this host.
    case appRetry
    /// Bringing the last good configuration, or the first one, into the tunnel.
    case tunnelUp
    /// All is as the hub wants it, as far as is known.
    case heartbeat
    /// Bringing a changed configuration into the tunnel; what does not change is not touched.
    case tunnelRebuild
    /// Taking the tunnel down, or over.
    case ended
}

/// How it stands with the tunnel, apart from how it stands with the hub (C112).
public struct TunnelPlane: Equatable, Sendable {
    public enum Standing: String, Equatable, Sendable {
        /// There is none, or it is not ours to say.
        case none
        case applying
        case up
        /// The keeper cannot or will not.
        case failed
        case down
    }

    public internal(set) var standing = Standing.none
    public internal(set) var since: Moment
    /// Why it is not up, or not as it should be.
    public internal(set) var reason: String?
    public internal(set) var verdict = Liveness.Verdict.unknown
    public internal(set) var verdictSince: Moment
}

public struct AgentState: Equatable, Sendable {
    public internal(set) var phase = Phase.boot
    public internal(set) var phaseSince: Moment
    /// Why the phase is `appRetry`, or why the program ended.
    public internal(set) var reason: ControlFault?
    public internal(set) var isEnrolled = false
    /// Wants to be told of a new identity: the reply to `reprovision`.
    public internal(set) var hasToken = false
    public internal(set) var tunnel: TunnelPlane
    public internal(set) var control: ControlPlane
    public internal(set) var sync = Sync()
    public internal(set) var rotation = Rotation()
    public internal(set) var schedule: HeartbeatSchedule
    public internal(set) var lastReading: TunnelReading?

    var liveness = Liveness()
    var isHeartbeatUnderWay = false
    var isApplyUnderWay = false
    var isRenewalUnderWay = false
    /// A new handshake is to be made once the keeper has answered.
    var isResetWanted = false
    /// Of the reset that is wanted or under way.
    var resetCommand: String?
    /// What the hub is told: it repeats a command until it hears that it was done.
    public internal(set) var doneCommand = ""
    var exitCode: UInt8 = 0
    var random: SplitMix
    var loadBackoff = Backoff(base: 5_000)
    var provisionBackoff = Backoff()
    var applyBackoff = Backoff()
    /// Of load or provision.
    var retryAt: Moment?
    var applyAt: Moment?
    var renewTokenAt: Moment?
    var takeDownAt: Moment?

    /// A device token is renewed when it is so old. Milliseconds: 30 days.
    public static let tokenLife: Int64 = 30 * 86_400_000

    public init(at now: Moment, seed: UInt64) {
        phaseSince = now
        tunnel = TunnelPlane(since: now, verdictSince: now)
        control = ControlPlane(at: now)
        random = SplitMix(seed: seed)
        schedule = HeartbeatSchedule(seed: random.next())
    }

    /// When the performer has to say `due`.
    public var nextTime: Moment? {
        let ofIdentity = isEnrolled ? [schedule.nextAt, renewTokenAt] : []
        return (ofIdentity + [retryAt, applyAt, rotation.deadline, takeDownAt])
            .compactMap { $0 }.min()
    }

    /// As `state` of a heartbeat and the source's status card say it.
    public var connection: ConnectionState {
        switch (phase, tunnel.standing) {
        case (.ended, _), (_, .down), (_, .none): .disconnected
        case (_, .failed): .failed
        case (_, .applying): .connecting
        case (_, .up):
            switch tunnel.verdict {
            case .alive, .quiet: .connected
            case .connecting, .unknown: .connecting
            case .dead: .failed
            }
        }
    }

    public enum ConnectionState: String, Sendable {
        case disconnected, connecting, connected, failed
    }

    /// One line for systemctl(1): both planes apart (C112).
    public var summary: String {
        guard isEnrolled else { return reason?.reason ?? "not enrolled" }
        let hub = control.standing.rawValue + (control.fault.map { " (\($0.code))" } ?? "")
        return "tunnel: \(connection.rawValue), hub: \(hub)"
    }

    /// Stable words for what is not as it should be.
    public var problems: [String] {
        var found: [String] = []
        if tunnel.standing == .failed { found.append("tunnel_failed") }
        if tunnel.standing == .up, tunnel.verdict == .dead { found.append("no_answer_from_peer") }
        if sync.rejection != nil { found.append("configuration_rejected") }
        if let reason { found.append(reason.code) }
        return found
    }
}
