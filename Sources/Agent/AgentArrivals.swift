// SPDX-License-Identifier: Apache-2.0
// What workers bring back: kept, and told to the state machine.
import ControlAPI
import HostProcess
import Keeper
import WireGuard

extension AgentLoop {
    func receive(_ arrival: Arrival) {
        switch arrival {
        case .event(let event):
            offers.noteEnd(of: event)
            tell(event)
        case .enrolled(let result): enrolled(result)
        case .heartbeat(let result, let epoch): heartbeatEnded(result, epoch)
        case .token(let result, let epoch): tokenRenewed(result, epoch)
        case .rotation(let fault, let epoch): rotationAnswered(fault, epoch)
        case .keyInUse(let fault, let from):
            if from == epoch { tell(.keyInUseNotTold(fault)) }
        case .reading(let result): read(result)
        case .hubEvent:
            listenBackoff.succeeded()
            tell(.hurry)
        case .eventsEnded:
            isListening = false
            listenNotBefore = listenBackoff.failed(at: now.moment, random: &random)
        case .left(let fault): left(fault)
        case .removed(let reason): removed(reason)
        }
    }

    private func enrolled(_ result: Result<Enrolled, ControlFault>) {
        isProvisioning = false
        let enrolled: Enrolled
        switch result {
        case .failure(let fault):
            if fault.kind == .tokenRefused { reprovisionToken = nil }
            return tell(.provisionFailed(fault))
        case .success(let value): enrolled = value
        }
        do throws(StoreFault) {
            let store = try openedStore()
            try store.save(enrolled)
            try countBoot(store)
        } catch {
            return tell(
                .provisionFailed(ControlFault(.transient, code: error.code, error.reason)))
        }
        reprovisionToken = nil
        use(enrolled.identity)
        let revision = enrolled.configuration.stored.revision
        offers[revision] = .usable(enrolled.configuration)
        present = enrolled.configuration
        tell(.provisioned(revision, intervalSeconds: enrolled.identity.heartbeatSeconds))
    }

    private func heartbeatEnded(
        _ result: Result<HeartbeatResult, ControlFault>, _ from: Int
    ) {
        heartbeatBegan = nil
        guard from == epoch else {
            return tell(
                .refused(
                    ControlFault(
                        .transient, code: "identity_changed",
                        "the answer was for the identity before")))
        }
        switch result {
        case .failure(let fault): tell(.refused(fault))
        case .success(let answer):
            if let offer = answer.offer { offers[answer.news.revision] = offer }
            if let token = answer.reprovisionToken { reprovisionToken = token }
            if let pin = answer.nextPin { addPin(pin) }
            if let seconds = answer.news.intervalSeconds, seconds != identity?.heartbeatSeconds {
                changeIdentity(isFact: true) { $0.heartbeatSeconds = seconds }
            }
            tell(.answered(answer.news))
        }
    }

    /// Accepted beside the present ones; only where pins are used at all.
    private func addPin(_ pin: String) {
        guard let pins = identity?.pins, !pins.isEmpty, !pins.contains(pin),
            pin.hasPrefix("sha256//"), pin.utf8.count == 52
        else { return }
        changeIdentity { $0.pins = [$0.pins[$0.pins.count - 1], pin] }
        log(.info, "the hub announces another certificate: \(pin)")
        guard let identity, let url = try? HubURL(identity.url) else { return }
        let target = HubTarget(url: url, pins: identity.pins, caFile: identity.caFile)
        hub = connection(target)
        eventsHub?.cancel()
        eventsHub = connection(target)
    }

    private func tokenRenewed(_ result: Result<SecretText, ControlFault>, _ from: Int) {
        guard from == epoch else { return tell(.tokenRenewed) }
        switch result {
        case .failure(let fault): tell(.tokenRenewalFailed(fault))
        case .success(let token):
            let seconds = now.wallSeconds
            changeIdentity(isFact: true) {
                $0.token = token
                $0.tokenIssued = seconds
            }
            tell(.tokenRenewed)
        }
    }

    private func rotationAnswered(_ fault: ControlFault?, _ from: Int) {
        guard from == epoch else { return tell(.keyRefused(fault ?? otherIdentity)) }
        if let fault { return tell(.keyRefused(fault)) }
        changeIdentity(isFact: true) { $0.isNextKeyAccepted = true }
        tell(.keyAccepted)
    }

    private var otherIdentity: ControlFault {
        ControlFault(.transient, code: "identity_changed", "this device was enrolled anew")
    }

    private func read(_ result: Result<TunnelFacts?, KeeperFailure>) {
        isReading = false
        switch result {
        case .success(let found?) where found.isUp:
            facts = found
            tell(.read(found.reading))
        case .success:
            facts = nil
            tell(.readingFailed(reason: "\(options.interface) is not there"))
        case .failure(let failure):
            facts = nil
            tell(.readingFailed(reason: failure.message))
        }
    }
}
