// SPDX-License-Identifier: Apache-2.0
// Every transition of the agent. Pure: no clock, no network, no disk.

/// Times of one event.
public struct Now: Equatable, Sendable {
    /// Since boot.
    public var moment: Moment
    /// Seconds since 1970.
    public var wallSeconds: Int64

    public init(moment: Moment, wallSeconds: Int64) {
        self.moment = moment
        self.wallSeconds = wallSeconds
    }
}

/// The state after `event`, and what is to be done, in this order.
public func step(
    _ state: AgentState, _ event: AgentEvent, now: Now
) -> (AgentState, [AgentAction]) {
    var next = state
    let actions = next.handle(event, now)
    return (next, actions)
}

extension AgentState {
    mutating func handle(_ event: AgentEvent, _ now: Now) -> [AgentAction] {
        guard phase != .ended else { return handleAtEnd(event, now) }
        switch event {
        case .started, .reload: return load(now)
        case .loaded(let loaded): return begin(loaded, now)
        case .tokenAtHand:
            hasToken = true
            return provision(now)
        case .notEnrolled: return waitForEnrolment(now)
        case .loadFailed(let code, let reason): return loadFailed(code, reason, now)
        case .provisioned(let revision, let seconds): return provisioned(revision, seconds, now)
        case .provisionFailed(let fault): return provisionFailed(fault, now)
        case .applied(let revision, let key): return applied(revision, key, now)
        case .applyFailed(let revision, let key, let fault):
            return applyFailed(revision, key, fault, now)
        case .due: return due(now)
        case .answered(let news): return answered(news, now)
        case .refused(let fault): return refused(fault, now)
        case .tokenRenewed, .tokenRenewalFailed: return renewalEnded(event, now)
        case .keyAccepted, .keyRefused: return rotationAnswered(event, now)
        case .keyInUseNotTold(let fault): return couldNotTell(fault, now)
        case .read(let reading): return read(reading, now)
        case .readingFailed(let reason): return readingFailed(reason, now)
        case .hurry:
            schedule.hurry(at: now.moment)
            return []
        case .asked:
            schedule.askNow(at: now.moment)
            return []
        case .awoke(let reason): return awoke(reason, now)
        case .clockSet:
            liveness.reset()
            rotation.clockWasSet()
            return judge(now)
        case .handshakeReset: return resetEnded(nil, now)
        case .handshakeNotReset(let reason): return resetEnded(reason, now)
        case .unenrolled: return unenrolled(now)
        case .takenDown, .takeDownFailed: return []
        case .stop: return end(code: 0, now)
        }
    }

    mutating func enter(_ new: Phase, _ now: Now) {
        guard new != phase else { return }
        phase = new
        phaseSince = now.moment
    }

    mutating func stand(_ standing: TunnelPlane.Standing, _ reason: String? = nil, _ now: Now) {
        tunnel.reason = reason
        guard standing != tunnel.standing else { return }
        tunnel.standing = standing
        tunnel.since = now.moment
    }

    /// What may not wait for anything else ends with it: the tunnel stays as it is.
    mutating func end(code: UInt8, _ now: Now) -> [AgentAction] {
        enter(.ended, now)
        exitCode = code
        schedule.stop()
        (retryAt, applyAt, renewTokenAt, takeDownAt) = (nil, nil, nil, nil)
        return [.end(code: code)]
    }
}

// MARK: APP_INIT, PROVISION, APP_RETRY

extension AgentState {
    private mutating func load(_ now: Now) -> [AgentAction] {
        enter(.appInit, now)
        retryAt = nil
        return [.load]
    }

    /// What the tunnel needs comes before what the hub needs: with the hub away the last good
    /// configuration is in place all the same (C64, C65).
    private mutating func begin(_ loaded: Loaded, _ now: Now) -> [AgentAction] {
        guard !loaded.isRevoked else { return beginRevoked(now) }
        isEnrolled = true
        reason = nil
        loadBackoff.succeeded()
        renewTokenAt = now.moment + max(0, Self.tokenLife - loaded.tokenAge)
        if schedule.nextAt == nil, !isHeartbeatUnderWay { schedule.start(at: now.moment) }
        if loaded.hasNextKey, rotation.step == .none { rotation.resume() }
        guard let revision = loaded.revision else {
            enter(.heartbeat, now)
            return [.listen]
        }
        sync.restored(revision)
        enter(.tunnelUp, now)
        return [.listen] + apply(revision, now)
    }

    private mutating func beginRevoked(_ now: Now) -> [AgentAction] {
        reason = ControlFault(
            .revoked, code: "revoked",
            "the hub has removed this device; enrol it again with a new token")
        let said = AgentAction.say(.error, reason!.reason)
        return [said] + revoke(now)
    }

    private mutating func waitForEnrolment(_ now: Now) -> [AgentAction] {
        let isNew = reason?.code != "not_enrolled"
        reason = ControlFault(
            .transient, code: "not_enrolled",
            "this host is not enrolled; run nexusguard enroll")
        isEnrolled = false
        schedule.stop()
        renewTokenAt = nil
        enter(.appRetry, now)
        // `enroll` says `reload`; this is for those who bring the files themselves.
        retryAt = now.moment + 60_000
        return isNew ? [.say(.info, reason!.reason)] : []
    }

    /// The keeper has the tunnel; nothing is removed, and nothing is enrolled anew (C91).
    private mutating func loadFailed(
        _ code: String, _ text: String, _ now: Now
    ) -> [AgentAction] {
        let isNew = reason?.code != code
        reason = ControlFault(.transient, code: code, text)
        enter(.appRetry, now)
        retryAt = loadBackoff.failed(at: now.moment, random: &random)
        return isNew ? [.say(.error, text)] : []
    }

    mutating func provision(_ now: Now) -> [AgentAction] {
        enter(.provision, now)
        retryAt = nil
        return [.provision]
    }

    private mutating func provisioned(
        _ revision: Revision, _ seconds: Int?, _ now: Now
    ) -> [AgentAction] {
        isEnrolled = true
        hasToken = false
        // It has one key, and was told nothing.
        rotation = Rotation()
        (resetCommand, isResetWanted, doneCommand) = (nil, false, "")
        reason = nil
        provisionBackoff.succeeded()
        control.answered(at: now.moment)
        renewTokenAt = now.moment + Self.tokenLife
        schedule.succeeded(at: now.moment, intervalSeconds: seconds)
        schedule.start(at: now.moment)
        sync.restored(revision)
        enter(.tunnelUp, now)
        return [.say(.info, "enrolled"), .listen] + apply(revision, now)
    }

    private mutating func provisionFailed(_ fault: ControlFault, _ now: Now) -> [AgentAction] {
        let isNew = reason?.code != fault.code
        reason = fault
        let said: [AgentAction] = isNew ? [.say(.warning, fault.reason)] : []
        guard fault.kind == .transient || fault.kind == .badRequest else {
            hasToken = false
            // An identity that works is not given up for a token that does not.
            guard isEnrolled else { return said + end(code: ExitStatus.tokenRefused, now) }
            enter(.heartbeat, now)
            return said
        }
        enter(.appRetry, now)
        retryAt = provisionBackoff.failed(
            at: now.moment, retryAfter: fault.retryAfter, random: &random)
        return said
    }

    private mutating func unenrolled(_ now: Now) -> [AgentAction] {
        let seed = random.next()
        self = AgentState(at: now.moment, seed: seed)
        return [.say(.info, "left the hub")] + waitForEnrolment(now)
    }
}

// MARK: TUNNEL_UP, TUNNEL_REBUILD

extension AgentState {
    /// One request to the keeper at a time; what comes meanwhile waits in `sync.wanted`.
    mutating func apply(_ revision: Revision, _ now: Now) -> [AgentAction] {
        guard !isApplyUnderWay else { return [] }
        isApplyUnderWay = true
        applyAt = nil
        // One that failed is called so until it is up.
        if tunnel.standing == .none || tunnel.standing == .down { stand(.applying, nil, now) }
        rotation.asked(wallSeconds: now.wallSeconds, lastHandshake: lastReading?.lastHandshake)
        return [.apply(revision, rotation.key)]
    }

    private mutating func applied(
        _ revision: Revision, _ key: KeyChoice, _ now: Now
    ) -> [AgentAction] {
        isApplyUnderWay = false
        applyBackoff.succeeded()
        let wasOther = sync.applied != revision
        sync.succeeded(revision)
        let isSwitch = rotation.applied(key, at: now.moment)
        stand(.up, nil, now)
        let commits: [AgentAction] =
            (isSwitch ? [.tellKeyInUse(key)] : []) + (wasOther ? [.commit(revision)] : [])
        if let next = pendingRevision { return commits + apply(next, now) }
        if phase == .tunnelUp || phase == .tunnelRebuild { enter(.heartbeat, now) }
        if wasOther { schedule.hurry(at: now.moment) }
        return commits + takeReset()
    }

    /// Behind what is being applied, or it would bring back what was before that.
    mutating func reset(_ id: String?) -> [AgentAction] {
        guard id == nil || id != doneCommand && id != resetCommand else { return [] }
        liveness.reset()
        guard sync.applied != nil else {
            // What has no session yet will make a new one.
            if let id { doneCommand = id }
            return []
        }
        resetCommand = id
        isResetWanted = true
        return isApplyUnderWay ? [] : takeReset()
    }

    /// A reset that failed is done when the hub asks for it the next time.
    private mutating func resetEnded(_ failure: String?, _ now: Now) -> [AgentAction] {
        defer { resetCommand = nil }
        if let failure { return readingFailed(failure, now) }
        if let resetCommand { doneCommand = resetCommand }
        schedule.hurry(at: now.moment)
        return []
    }

    private mutating func takeReset() -> [AgentAction] {
        defer { isResetWanted = false }
        return isResetWanted ? [.resetHandshake] : []
    }

    /// What has to be applied although no new revision came, or one that came while another was
    /// applied.
    private var pendingRevision: Revision? {
        if let wanted = sync.wanted { return wanted }
        return rotation.step == .switching || rotation.step == .returning ? sync.applied : nil
    }

    private mutating func applyFailed(
        _ revision: Revision, _ key: KeyChoice, _ fault: ApplyFault, _ now: Now
    ) -> [AgentAction] {
        isApplyUnderWay = false
        switch fault {
        case .rejected(let code, let text):
            return rejected(Rejection(revision: revision, code: code, reason: text), key, now)
        case .postponed(let text):
            let isNew = tunnel.reason != text
            // The keeper went back to what was, or it is away and the tunnel goes on.
            if tunnel.standing != .up { stand(.failed, text, now) } else { tunnel.reason = text }
            applyAt = applyBackoff.failed(at: now.moment, random: &random)
            return isNew ? [.say(.warning, text)] : []
        }
    }

    private mutating func rejected(
        _ rejection: Rejection, _ key: KeyChoice, _ now: Now
    ) -> [AgentAction] {
        let said = AgentAction.say(.error, rejection.reason)
        if key == .next, rotation.step == .switching {
            rotation.switchFailed()
            // It may have been the key alone.
            let next = sync.wanted.map { apply($0, now) } ?? takeReset()
            return [said, .dropNextKey] + next
        }
        sync.rejected(rejection)
        if tunnel.standing != .up { stand(.failed, rejection.reason, now) }
        if phase == .tunnelUp || phase == .tunnelRebuild { enter(.heartbeat, now) }
        schedule.hurry(at: now.moment)
        // The way back to the old key waited for this answer.
        if rotation.step == .returning, let applied = sync.applied {
            return [said] + apply(applied, now)
        }
        return [said] + takeReset()
    }
}

/// Exit codes of the agent beyond 0; nexusguard(8) lists them.
public enum ExitStatus {
    public static let tokenRefused: UInt8 = 6
    public static let revoked: UInt8 = 7
}
