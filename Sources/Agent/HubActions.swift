// SPDX-License-Identifier: Apache-2.0
// What the agent asks of the hub, and what comes back.
import ControlAPI
import Crypto
import HostProcess
import WireGuard

private let notReady = ControlFault(
    .transient, code: "not_ready", "the hub cannot be asked yet; see the log")

extension AgentLoop {
    /// What there is to provision with: what the hub just sent, or what this program was started
    /// with.
    func order() -> EnrolmentOrder? {
        guard let token = reprovisionToken, let identity, let url = try? HubURL(identity.url)
        else { return identity == nil ? options.enrolment : nil }
        var order = EnrolmentOrder(url: url, token: token)
        order.pins = identity.pins
        order.caFile = identity.caFile
        order.name = identity.name
        return order
    }

    func provision() -> AgentEvent? {
        guard !isProvisioning else { return nil }
        guard let order = order(), let store, let hub = connection(order.target) else {
            return .provisionFailed(notReady)
        }
        do throws(StoreFault) {
            var key = identity?.key(.current)
            if key == nil { key = try store.enrolmentKey() }
            let enrolment = Enrolment(
                order: order, key: key!, hwid: options.machine, agentVersion: options.version)
            isProvisioning = true
            let mailbox = mailbox
            controlWorker.submit {
                mailbox.post(
                    .enrolled(
                        Result { () throws(ControlFault) in try enrolment.perform(hub) }))
            }
            return nil
        } catch {
            return .provisionFailed(
                ControlFault(.transient, code: error.code, error.reason))
        }
    }

    func heartbeat() -> AgentEvent? {
        guard let identity, let token = identity.bearer, let hub else {
            return .refused(notReady)
        }
        sequence += 1
        let heartbeat = Heartbeat(
            request: report(identity), token: token, hwid: options.machine, present: present)
        let (mailbox, epoch) = (mailbox, epoch)
        heartbeatBegan = now.moment
        controlWorker.submit {
            mailbox.post(
                .heartbeat(
                    Result { () throws(ControlFault) in try heartbeat.perform(hub) },
                    epoch: epoch))
        }
        return nil
    }

    private func report(_ identity: Identity) -> HeartbeatRequest {
        var request = HeartbeatRequest(
            deviceId: identity.deviceId, boot: boot, sessionId: sessionId, sequence: sequence,
            agentVersion: options.version)
        request.uptimeSeconds = UInt64(max(0, now.moment - startedAt) / 1000)
        request.state = DeviceState(rawValue: state.connection.rawValue) ?? .failed
        request.tunnelUp = state.tunnel.standing == .up
        request.backend = facts.flatMap { DeviceBackend(rawValue: $0.backend.rawValue) }
        request.lastHandshake = facts?.reading.lastHandshake.map { Timestamp(unixSeconds: $0) }
        request.rxBytes = facts?.reading.receivedBytes ?? 0
        request.txBytes = facts?.reading.sentBytes ?? 0
        request.configHash = state.sync.applied?.configHash
        request.forwardsHash = state.sync.applied?.forwardsHash
        request.rejectedHash = state.sync.rejectedHash
        request.rejectedCode = state.sync.rejection?.code
        request.commandId = state.doneCommand
        request.problems = problems
        return request
    }

    func renewToken() -> AgentEvent? {
        guard let identity, let token = identity.bearer, let hub else {
            return .tokenRenewalFailed(notReady)
        }
        let (mailbox, epoch, id) = (mailbox, epoch, identity.deviceId)
        controlWorker.submit {
            mailbox.post(
                .token(
                    Result { () throws(ControlFault) in
                        let body = try hub.call(.token, [], token: token, deviceId: id)
                        return try decoded(TokenAnswer.self, body, "the new token").deviceToken
                    }, epoch: epoch))
        }
        return nil
    }

    /// The new key is on disk before the hub hears of it, and the old one stays (C72).
    func askRotation() -> AgentEvent? {
        guard let identity, let token = identity.bearer, let hub else {
            return .keyRefused(notReady)
        }
        let key = SecretKey.generate()
        let isStored = changeIdentity {
            $0.nextPrivateKey = SecretText(key)
            $0.isNextKeyAccepted = false
        }
        guard isStored else { return .keyRefused(notReady) }
        let body = Wire.encode(RotateRequest(publicKey: key.publicKey.base64, isInUse: false))
        let (mailbox, epoch, id) = (mailbox, epoch, identity.deviceId)
        controlWorker.submit {
            do throws(ControlFault) {
                _ = try hub.call(.rotate, body, token: token, deviceId: id)
                mailbox.post(.rotation(nil, epoch: epoch))
            } catch {
                mailbox.post(.rotation(error, epoch: epoch))
            }
        }
        return nil
    }

    /// A key that was used before is told as well: the hub may have gone by the new one.
    func tellKeyInUse(_ choice: KeyChoice) -> AgentEvent? {
        guard let identity, let token = identity.bearer, let hub, let key = identity.key(choice)
        else { return .keyInUseNotTold(notReady) }
        let body = Wire.encode(RotateRequest(publicKey: key.publicKey.base64, isInUse: true))
        let (mailbox, epoch, id) = (mailbox, epoch, identity.deviceId)
        controlWorker.submit {
            do throws(ControlFault) {
                _ = try hub.call(.rotate, body, token: token, deviceId: id)
            } catch {
                mailbox.post(.keyInUse(error, epoch: epoch))
            }
        }
        return nil
    }

    func keepNextKey() {
        changeIdentity(isFact: true) {
            guard let next = $0.nextPrivateKey else { return }
            $0.privateKey = next
            $0.nextPrivateKey = nil
            $0.isNextKeyAccepted = false
        }
    }

    func dropNextKey() {
        guard identity?.nextPrivateKey != nil else { return }
        changeIdentity(isFact: true) {
            $0.nextPrivateKey = nil
            $0.isNextKeyAccepted = false
        }
    }

    /// Again after an answer of the hub only, and with a pause that grows: a hub that comes back is
    /// not met by all streams at once.
    func listen() {
        guard !isListening, let eventsHub, let token = identity?.bearer,
            now.moment >= listenNotBefore, state.control.standing == .connected
        else { return }
        isListening = true
        let (mailbox, epoch) = (mailbox, epoch)
        eventsWorker.submit {
            do throws(ControlFault) {
                try eventsHub.listen(token: token) { _ in
                    mailbox.post(.hubEvent)
                    return true
                }
            } catch {
                // Heartbeats show what is wrong with the hub.
            }
            mailbox.post(.eventsEnded(epoch: epoch))
        }
    }
}
