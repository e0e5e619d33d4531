// SPDX-License-Identifier: Apache-2.0
// The clients of the agent's socket.
import ControlAPI
import HostProcess
import Keeper
import WireGuard

extension AgentLoop {
    func accept() {
        while true {
            guard case .client(let descriptor) = listener.accept() else { return }
            admit(descriptor)
        }
    }

    /// The socket's permissions are the first gate, this is the second (C96).
    private func admit(_ descriptor: consuming Descriptor) {
        guard let peer = descriptor.localPeer else { return }
        let isMember = options.group.map { peer.groups.contains($0) } ?? false
        let session = AgentSession(descriptor, now: Host.monotonicMilliseconds())
        guard peer.isRoot || peer.isSelf || isMember else {
            session.answer(
                .failed(
                    4,
                    "user \(peer.user) may not speak to the agent; run as root or as a member of "
                        + "the group nexusguard"))
            return
        }
        guard sessions.count < Self.sessionLimit else { return }
        sessions.append(session)
    }

    func serve(_ session: AgentSession, isReadable: Bool, isWritable: Bool) {
        if session.wantsWrite {
            if isWritable { session.flush() }
        } else if session.wantsRead, isReadable,
            let request = session.read(using: &buffer, now: Host.monotonicMilliseconds())
        {
            obey(request, session)
        }
    }

    private func obey(_ request: AgentRequest, _ session: AgentSession) {
        switch request.verb {
        case .status:
            var answer = AgentAnswer.done
            answer.status = status()
            session.answer(answer)
        case .reload:
            session.answer(.done)
            tell(.reload)
        case .heartbeat:
            session.answer(.done)
            tell(.asked)
        case .unenroll: unenroll(session, isForced: request.isForced ?? false)
        }
    }

    func status() -> AgentStatus {
        let calendar = Calendar(now: now)
        return AgentStatus(
            version: options.version, process: Host.processNumber,
            interface: options.interface.description, phase: state.phase.rawValue,
            phaseSince: calendar.time(state.phaseSince), code: state.reason?.code,
            reason: state.reason?.reason, isEnrolled: state.isEnrolled,
            device: AgentStatus.Device(identity, present, facts),
            tunnel: AgentStatus.Tunnel(state, facts, calendar),
            control: AgentStatus.Control(state, hasEvents: isListening, calendar),
            sync: AgentStatus.Sync(state.sync), forwards: present?.stored.forwards ?? [],
            storage: store?.protection, storageProblem: debt.fault?.reason,
            storageProblemSince: debt.since.map { calendar.time($0) }, problems: problems)
    }

    // MARK: leaving

    private func unenroll(_ session: AgentSession, isForced: Bool) {
        guard leaving == nil else {
            return session.answer(.failed(8, "the agent is leaving already"))
        }
        guard let identity, let token = identity.bearer, let hub else {
            return session.answer(.failed(3, "this host is not enrolled"))
        }
        leaving = session
        isLeaveForced = isForced
        let (mailbox, id) = (mailbox, identity.deviceId)
        controlWorker.submit {
            do throws(ControlFault) {
                _ = try hub.call(.unenroll, [], token: token, deviceId: id)
                mailbox.post(.left(nil))
            } catch {
                mailbox.post(.left(error))
            }
        }
    }

    /// Whom the hub does not have any more has left.
    func left(_ fault: ControlFault?) {
        let isGone = fault.map { $0.kind == .revoked || $0.kind == .unknownDevice } ?? true
        guard isGone || isLeaveForced else {
            return answerLeaving(
                .failed(
                    69,
                    "cannot leave: \(fault?.reason ?? ""); with --force only this host forgets"))
        }
        let (tunnel, mailbox) = (tunnel, mailbox)
        keeperWorker.submit {
            do throws(KeeperFailure) {
                try tunnel.takeDown()
                mailbox.post(.removed(nil))
            } catch {
                mailbox.post(.removed(error.message))
            }
        }
    }

    func removed(_ reason: String?) {
        if let reason, !isLeaveForced {
            return answerLeaving(
                .failed(
                    1,
                    "left the hub, but the tunnel is still up: \(reason); try again, or take it "
                        + "down with nexusguard down \(options.interface)"))
        }
        do throws(StoreFault) {
            try store?.forget()
        } catch {
            return answerLeaving(.failed(1, error.reason))
        }
        forgetIdentity()
        tell(.unenrolled)
        answerLeaving(.done)
    }

    private func answerLeaving(_ answer: AgentAnswer) {
        leaving?.answer(answer)
        leaving = nil
    }
}
