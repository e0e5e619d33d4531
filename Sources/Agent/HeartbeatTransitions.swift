// SPDX-License-Identifier: Apache-2.0
// HEARTBEAT: what is due, what the hub answers, what the tunnel shows.

extension AgentState {
    mutating func due(_ now: Now) -> [AgentAction] {
        var actions: [AgentAction] = []
        let isDue = { (time: Moment?) in time.map { $0 <= now.moment } ?? false }
        if isDue(retryAt) { actions += retry(now) }
        if isDue(applyAt) {
            applyAt = nil
            if let revision = sync.wanted ?? sync.applied { actions += apply(revision, now) }
        }
        if rotation.isOver(at: now.moment) { actions.append(.readTunnel) }
        if isDue(renewTokenAt), isEnrolled { actions += renewToken() }
        if isDue(schedule.nextAt), isEnrolled {
            schedule.began()
            isHeartbeatUnderWay = true
            actions.append(.heartbeat)
        }
        return actions
    }

    /// APP_RETRY leads to APP_INIT: somebody may have enrolled this host meanwhile. With an identity
    /// and a token in hand there is nothing to load.
    private mutating func retry(_ now: Now) -> [AgentAction] {
        if isEnrolled, hasToken { return provision(now) }
        enter(.appInit, now)
        retryAt = nil
        return [.load]
    }

    mutating func answered(_ news: HeartbeatNews, _ now: Now) -> [AgentAction] {
        isHeartbeatUnderWay = false
        schedule.succeeded(at: now.moment, intervalSeconds: news.intervalSeconds)
        var actions: [AgentAction] = []
        if control.fault != nil {
            actions.append(.say(.info, "the hub answers again"))
        }
        control.answered(at: now.moment)
        if phase != .provision, phase != .appRetry { reason = nil }
        actions.append(.listen)
        actions += news.isOffer ? offered(news, now) : []
        if let command = news.command { actions += obey(command, news.commandId, now) }
        return actions
    }

    private mutating func offered(_ news: HeartbeatNews, _ now: Now) -> [AgentAction] {
        switch sync.offered(news.revision, isSameMeaning: news.isSameMeaning) {
        case .nothing: return []
        case .rename: return [.commit(news.revision)]
        case .apply:
            if phase == .heartbeat { enter(.tunnelRebuild, now) }
            return apply(news.revision, now)
        }
    }

    /// Each may come again and again until the hub sees that it was done.
    private mutating func obey(
        _ command: HeartbeatNews.Command, _ id: String?, _ now: Now
    ) -> [AgentAction] {
        switch command {
        case .reset: return reset(id)
        case .reprovision:
            hasToken = true
            return phase == .provision ? [] : provision(now)
        case .rotateKey: return rotation.begin() ? [.askRotation] : []
        }
    }

    mutating func refused(_ fault: ControlFault, _ now: Now) -> [AgentAction] {
        isHeartbeatUnderWay = false
        let before = control.standing
        switch fault.kind {
        case .transient, .unknownDevice:
            schedule.failed(at: now.moment, retryAfter: fault.retryAfter)
        case .authExpired, .duplicateIdentity, .upgradeRequired, .badRequest, .tokenRefused:
            schedule.slowDown(at: now.moment)
        case .revoked: break
        }
        let isSameFault = control.fault?.code == fault.code
        control.failed(fault, failures: schedule.failures, at: now.moment)
        if fault.kind == .revoked {
            reason = fault
            return [.say(.error, fault.reason), .markRevoked] + revoke(now)
        }
        var actions: [AgentAction] = []
        // One line for a new reason and one for a new standing, however often it repeats (C109).
        if !isSameFault || (control.standing != before && before != .connected) {
            actions.append(.say(.warning, "\(control.standing.text)\(fault.reason)"))
        }
        if fault.kind == .authExpired { actions += renewToken() }
        return actions
    }

    mutating func renewToken() -> [AgentAction] {
        renewTokenAt = nil
        guard !isRenewalUnderWay else { return [] }
        isRenewalUnderWay = true
        return [.renewToken]
    }

    mutating func renewalEnded(_ event: AgentEvent, _ now: Now) -> [AgentAction] {
        isRenewalUnderWay = false
        guard case .tokenRenewalFailed(let fault) = event else {
            renewTokenAt = now.moment + Self.tokenLife
            // Whoever was refused for its old token asks again with the new one.
            if control.standing == .authExpired { schedule.retrySoon(at: now.moment) }
            return [.say(.info, "the device token was renewed")]
        }
        // The old one may serve for long yet; an hour is soon enough.
        renewTokenAt = now.moment + 3_600_000
        let isKnown = control.fault?.kind == .authExpired
        return isKnown ? [] : [.say(.warning, fault.reason)]
    }

    mutating func awoke(_ reason: String, _ now: Now) -> [AgentAction] {
        liveness.reset()
        schedule.hurry(at: now.moment)
        schedule.retrySoon(at: now.moment)
        if retryAt != nil, isEnrolled || hasToken { retryAt = now.moment }
        if applyAt != nil { applyAt = now.moment }
        return [.say(.info, reason)] + judge(now)
    }
}

extension ControlPlane.Standing {
    /// Before the reason, in a line of the log.
    fileprivate var text: String {
        switch self {
        case .unknown, .connected, .retrying: ""
        case .failed: "the hub is not reachable, the tunnel goes on: "
        case .authExpired, .duplicateIdentity, .upgradeRequired: "the tunnel goes on: "
        case .unknownDevice: "unknown to the hub, the tunnel goes on: "
        case .revoked: ""
        }
    }
}

// MARK: rotation

extension AgentState {
    /// Failing that, the hub's traffic would go to the old key until the tunnel's own signs tell it.
    mutating func couldNotTell(_ fault: ControlFault, _ now: Now) -> [AgentAction] {
        guard rotation.couldNotTell() else { return [] }
        return [.say(.warning, fault.reason)] + returnToOldKey(now)
    }

    mutating func rotationAnswered(_ event: AgentEvent, _ now: Now) -> [AgentAction] {
        if case .keyRefused(let fault) = event {
            rotation.refused()
            return [.dropNextKey, .say(.warning, fault.reason)]
        }
        guard rotation.accepted(), let revision = sync.wanted ?? sync.applied else {
            return [.dropNextKey]
        }
        return apply(revision, now)
    }

    private mutating func returnToOldKey(_ now: Now) -> [AgentAction] {
        let said = AgentAction.say(
            .warning, "the new key could not be brought into use; the old one is used on")
        guard let revision = sync.wanted ?? sync.applied else { return [said] }
        return [said, .dropNextKey] + apply(revision, now)
    }
}

// MARK: the tunnel

extension AgentState {
    mutating func read(_ reading: TunnelReading, _ now: Now) -> [AgentAction] {
        lastReading = reading
        liveness.note(reading)
        var actions: [AgentAction] = []
        switch rotation.noted(lastHandshake: reading.lastHandshake, takenAt: reading.at) {
        case .proved: actions += [.keepNextKey, .say(.info, "the new key is in use")]
        case .failed: actions += returnToOldKey(now)
        case .undecided: break
        }
        if tunnel.standing == .up, liveness.takeProbe(at: now.moment, wallSeconds: now.wallSeconds)
        {
            actions.append(.probe)
        }
        return actions + judge(now)
    }

    /// A keeper that went away is asked to take up what should be there.
    mutating func readingFailed(_ reason: String, _ now: Now) -> [AgentAction] {
        liveness.reset()
        lastReading = nil
        let actions = judge(now) + (rotation.sawNothing() ? returnToOldKey(now) : [])
        guard sync.applied != nil, applyAt == nil, !isApplyUnderWay else { return actions }
        applyAt = applyBackoff.failed(at: now.moment, random: &random)
        tunnel.reason = reason
        return actions
    }

    mutating func judge(_ now: Now) -> [AgentAction] {
        let verdict = liveness.verdict(at: now.moment, wallSeconds: now.wallSeconds)
        guard verdict != tunnel.verdict else { return [] }
        let before = tunnel.verdict
        tunnel.verdict = verdict
        tunnel.verdictSince = now.moment
        switch verdict {
        case .dead:
            schedule.hurry(at: now.moment)
            return [.say(.warning, "nothing comes back through the tunnel")]
        case .alive where before == .dead:
            schedule.hurry(at: now.moment)
            return [.say(.info, "the tunnel carries data again")]
        default: return []
        }
    }
}

// MARK: the end

extension AgentState {
    /// On purpose, by the operator: the tunnel goes, the logs stay.
    mutating func revoke(_ now: Now) -> [AgentAction] {
        enter(.ended, now)
        exitCode = ExitStatus.revoked
        schedule.stop()
        (retryAt, applyAt, renewTokenAt) = (nil, nil, nil)
        return [.takeDown]
    }

    mutating func handleAtEnd(_ event: AgentEvent, _ now: Now) -> [AgentAction] {
        switch event {
        case .takenDown:
            takeDownAt = nil
            stand(.down, nil, now)
            return [.end(code: exitCode)]
        case .takeDownFailed(let text):
            let isNew = tunnel.reason != text
            tunnel.reason = text
            takeDownAt = applyBackoff.failed(at: now.moment, random: &random)
            return isNew ? [.say(.error, text)] : []
        case .due where takeDownAt.map { $0 <= now.moment } ?? false:
            takeDownAt = nil
            return [.takeDown]
        case .stop: return [.end(code: exitCode)]
        default: return []
        }
    }
}
