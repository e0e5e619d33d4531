// SPDX-License-Identifier: Apache-2.0
// The loop's clients: who is let in, what is read of them, what becomes of their requests.
import HostProcess
import TunnelPlan
import WireGuard

extension KeeperLoop where Target: ~Copyable {
    mutating func accept() {
        while true {
            switch listener.accept() {
            case .client(let descriptor): admit(descriptor)
            case .none: return
            case .exhausted:
                guard closeLongestIdle() else {
                    acceptAgainAt = Host.monotonicMilliseconds() + Self.exhaustionPause
                    return
                }
            }
        }
    }

    /// The socket's permissions are the first gate, this is the second (C96).
    private mutating func admit(_ descriptor: consuming Descriptor) {
        guard let peer = descriptor.localPeer else { return }
        let now = Host.monotonicMilliseconds()
        let isMember = group.map { peer.groups.contains($0) } ?? false
        let session = Session(descriptor, peer: peer, now: now)
        guard peer.isRoot || peer.isSelf || isMember else {
            let failure = KeeperFailure(
                .permission,
                "user \(peer.user) may not speak to the keeper of \(name); run as root or as a "
                    + "member of the group nexusguard")
            session.send(Reply.line(.failure(failure), name: name), now: now)
            return
        }
        if sessions.count >= Self.sessionLimit, !closeLongestIdle() { return }
        sessions.append(session)
    }

    /// False: every client is in the middle of something.
    private mutating func closeLongestIdle() -> Bool {
        let idle = sessions.indices.filter { sessions[$0].isIdle }
        guard
            let victim = idle.min(by: { sessions[$0].lastActivity < sessions[$1].lastActivity })
        else { return false }
        sessions.remove(at: victim)
        return true
    }

    mutating func serve(firstEntry: Int) {
        let now = Host.monotonicMilliseconds()
        for (offset, session) in sessions.enumerated() where !session.isOver {
            let entry = firstEntry + offset
            if session.wantsWrite {
                if poller.isWritable(entry) { session.flush(now: now) }
            } else if session.wantsRead, poller.isReadable(entry) {
                read(session, now: now)
            }
        }
        sessions.removeAll {
            $0.isOver || (!$0.isIdle && now - $0.lastActivity >= Self.stallLimit)
        }
    }

    private mutating func read(_ session: Session, now: Int64) {
        switch session.read(using: &buffer, now: now) {
        case .none: return
        case .tooLong:
            let failure = KeeperFailure(
                .configurationInvalid,
                "a request is one line of less than \(requestLimit) bytes, and the next follows its "
                    + "answer")
            session.send(Reply.line(.failure(failure), name: name), now: now)
            session.close()
        case .line(let line):
            do throws(KeeperFailure) {
                try obey(try Request.parse(line), session)
            } catch {
                session.send(Reply.line(.failure(error), name: name), now: now)
            }
        }
    }

    private mutating func obey(_ request: Request, _ session: Session) throws(KeeperFailure) {
        let id = nextRequest
        nextRequest += 1
        switch request {
        case .status:
            session.send(Reply.line(status(), name: name), now: Host.monotonicMilliseconds())
        case .device:
            let device = try target.device()
            session.send(Reply.line(device), now: Host.monotonicMilliseconds())
        case .events:
            session.hearsEvents = true
            session.send(
                Reply.line(.confirmed, name: name), now: Host.monotonicMilliseconds())
        case .confirm:
            session.request = id
            handle(.confirm(id))
        case .down(let options):
            session.request = id
            staysForAsker = waits && !session.peer.isRoot && !session.peer.isSelf
            handle(.down(id, options))
        case .apply(var apply):
            let options = apply.options
            let (intent, warnings) = try apply.intent(
                name: name, isRoot: session.peer.isRoot || session.peer.isSelf)
            for warning in warnings { Log.write(.warning, warning) }
            session.request = id
            handle(.apply(id, intent, options))
        }
    }

    private func status() -> KeeperStatus {
        var status = KeeperStatus(phase: reconciler.phase, process: Host.processNumber)
        if let deadline = reconciler.deadline {
            status.confirmSeconds = UInt64(max(0, deadline - Host.bootMilliseconds()) / 1000)
        }
        status.unresolved = reconciler.unresolved.map(\.description)
        status.clockBehind = reconciler.clock.behind(now).map { UInt64($0) }
        if let hold = reconciler.clock.hold {
            status.endpointsHeld = UInt64(max(0, hold.until - Host.bootMilliseconds()) / 1000)
        }
        status.mended = mended
        status.lastWarning = lastWarning
        return status
    }
}
