// SPDX-License-Identifier: Apache-2.0
// Another key without a lost packet (docs/control-api.md, POST /api/v1/device/rotate): the hub knows
// the new key before the device uses it, is told when it does, and the old one goes after the new one
// has carried data.

/// Which of the device's keys a tunnel is to have.
public enum KeyChoice: String, Equatable, Sendable {
    case current
    /// The one that may become the current one.
    case next
}

public struct Rotation: Equatable, Sendable {
    public enum Step: Equatable, Sendable {
        case none
        /// A key is made and stored, the hub is asked.
        case asking
        /// The hub knows the new key; the keeper is asked to use it.
        case switching
        /// The new key is in use and has to show a handshake.
        case trying(until: Moment)
        /// Its time is over; what the tunnel shows since then decides.
        case looking(since: Moment)
        /// No handshake came: the keeper is asked to use the old key again.
        case returning
    }

    /// How long the new key may take for its first handshake. Milliseconds.
    public static let trialSpan: Int64 = 30_000
    /// The same after a start: the tunnel may have the new key, and a session that is as old as
    /// REKEY_AFTER_TIME of the WireGuard paper (section 6.1) allows, or so quiet that only a probe
    /// brings the next one. The hub goes by its first handshake. Milliseconds.
    public static let resumedTrialSpan: Int64 = 240_000

    public private(set) var step = Step.none
    /// The handshake that was the latest before the keeper was asked for the switch, in seconds since
    /// 1970, and the time of the asking: what is not newer proves nothing. The first handshake may
    /// come before the keeper has answered.
    private var handshakeBefore: Int64?
    private var askedAt: Int64 = 0
    private var isResumed = false

    public init() {}

    /// The key that is to be applied now.
    public var key: KeyChoice {
        switch step {
        case .none, .asking, .returning: .current
        case .switching, .trying, .looking: .next
        }
    }

    public var deadline: Moment? {
        if case .trying(let until) = step { return until }
        return nil
    }

    /// False: one is under way already.
    mutating func begin() -> Bool {
        guard step == .none else { return false }
        step = .asking
        return true
    }

    /// False: nobody asked.
    mutating func accepted() -> Bool {
        guard step == .asking else { return false }
        step = .switching
        isResumed = false
        return true
    }

    mutating func refused() { if step == .asking { step = .none } }

    /// A start with a key that the hub had accepted and that was not proved: it is tried again.
    mutating func resume() {
        step = .switching
        isResumed = true
    }

    /// The keeper is about to be asked for `key`.
    mutating func asked(wallSeconds: Int64, lastHandshake: Int64?) {
        guard step == .switching else { return }
        handshakeBefore = lastHandshake
        askedAt = wallSeconds
    }

    /// A time of before says nothing now; that a handshake is another one still does.
    mutating func clockWasSet() { askedAt = 0 }

    /// The keeper has done what it was asked. True: the tunnel has another key now than the hub may
    /// think.
    mutating func applied(_ key: KeyChoice, at now: Moment) -> Bool {
        switch (step, key) {
        case (.switching, .next):
            step = .trying(until: now + (isResumed ? Self.resumedTrialSpan : Self.trialSpan))
        case (.returning, .current): step = .none
        default: return false
        }
        return true
    }

    /// The keeper could not use the new key: nothing has changed.
    mutating func switchFailed() { if step == .switching { step = .none } }

    public enum Verdict: Equatable, Sendable {
        case undecided, proved
        /// It is time to return to the old key.
        case failed
    }

    /// `takenAt`: when the tunnel was looked at.
    mutating func noted(lastHandshake: Int64?, takenAt: Moment) -> Verdict {
        switch step {
        case .trying, .looking: break
        case .none, .asking, .switching, .returning: return .undecided
        }
        if let lastHandshake, lastHandshake != handshakeBefore, lastHandshake >= askedAt {
            step = .none
            return .proved
        }
        // A look from before the end may have missed a handshake of the last seconds.
        guard case .looking(let since) = step, takenAt >= since else { return .undecided }
        step = .returning
        return .failed
    }

    /// True: the time is over, and the tunnel is to be looked at once more.
    mutating func isOver(at now: Moment) -> Bool {
        guard case .trying(let until) = step, now >= until else { return false }
        step = .looking(since: now)
        return true
    }

    /// True: it is time to return to the old key. The tunnel cannot be looked at.
    mutating func sawNothing() -> Bool {
        guard case .looking = step else { return false }
        step = .returning
        return true
    }

    /// True: it is time to return to the old key. The hub could not be told that the new one is in use,
    /// and goes on sending to the old one. After a start it may have been told long ago.
    mutating func couldNotTell() -> Bool {
        guard case .trying = step, !isResumed else { return false }
        step = .returning
        return true
    }
}
