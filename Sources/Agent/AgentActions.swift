// SPDX-License-Identifier: Apache-2.0
// Performing what the state machine asks for. Each returns the event that answers it at once, or nil
// when a worker brings it later.
import ControlAPI
import Crypto
import HostProcess
import Keeper
import WireGuard

extension AgentLoop {
    func perform(_ action: AgentAction) -> AgentEvent? {
        switch action {
        case .load: return load()
        case .provision: return provision()
        case .apply(let revision, let key): return apply(revision, key)
        case .commit(let revision): commit(revision)
        case .heartbeat: return heartbeat()
        case .renewToken: return renewToken()
        case .askRotation: return askRotation()
        case .tellKeyInUse(let choice): return tellKeyInUse(choice)
        case .readTunnel: nextReadingAt = .min
        case .keepNextKey: keepNextKey()
        case .dropNextKey: dropNextKey()
        case .resetHandshake: return resetHandshake()
        case .probe:
            if let address = present?.config.hubAddress {
                _ = Host.sendDiscard(to: address.description)
            }
        case .listen: listen()
        case .takeDown: takeDown()
        case .markRevoked: changeIdentity { $0.isRevoked = true }
        case .say(let importance, let text): log(importance, text)
        case .end(let code): exitCode = code
        }
        return nil
    }

    // MARK: the disk

    private func load() -> AgentEvent {
        do throws(StoreFault) {
            let store = try openedStore()
            guard let found = try store.identity() else {
                forgetIdentity()
                return order() == nil ? .notEnrolled : .tokenAtHand
            }
            if !store.recognise(found) || identity == nil {
                try adopt(found, store.configuration())
            }
            try countBoot(store)
            // What a full disk has kept from it is known here.
            return .loaded(loaded(identity ?? found))
        } catch {
            return .loadFailed(code: error.code, reason: error.reason)
        }
    }

    func openedStore() throws(StoreFault) -> AgentStore {
        if let store { return store }
        let store = try AgentStore(options.stateDirectory, machine: options.machine)
        for line in store.remarks { log(.warning, line) }
        self.store = store
        return store
    }

    private func loaded(_ identity: Identity) -> Loaded {
        var loaded = Loaded()
        loaded.revision = present?.stored.revision
        loaded.isRevoked = identity.isRevoked
        loaded.hasNextKey = identity.isNextKeyAccepted && identity.key(.next) != nil
        loaded.tokenAge = max(0, now.wallSeconds - identity.tokenIssued) * 1000
        return loaded
    }

    private func adopt(
        _ found: Identity, _ configuration: StoredConfiguration?
    ) throws(StoreFault) {
        guard found.key(.current) != nil, found.bearer != nil else {
            throw StoreFault(
                code: "cannot_unseal",
                reason: "the identity in \(options.stateDirectory) holds no usable key; keep the "
                    + "file, and enrol again with a new token: nexusguard enroll --replace")
        }
        use(found)
        guard let configuration, configuration.config.deviceId == found.deviceId else { return }
        present = try? UsableConfiguration(configuration)
    }

    /// Another identity: what was known of the one before means nothing.
    func use(_ found: Identity) {
        forgetIdentity()
        identity = found
        connect(found)
    }

    func forgetIdentity() {
        epoch += 1
        identity = nil
        present = nil
        facts = nil
        debt = DiskDebt()
        offers = Offers()
        eventsHub?.cancel()
        hub = nil
        eventsHub = nil
        listenNotBefore = .min
    }

    private func connect(_ identity: Identity) {
        guard let url = try? HubURL(identity.url) else { return }
        let target = HubTarget(url: url, pins: identity.pins, caFile: identity.caFile)
        hub = connection(target)
        eventsHub = connection(target)
    }

    func connection(_ target: HubTarget) -> HubConnection? {
        do throws(ControlFault) {
            return try HubConnection(target, agentVersion: options.version)
        } catch {
            log(.error, error.reason)
            return nil
        }
    }

    /// On disk first: what is in memory was written. `isFact`: it is so already, at the hub or in the
    /// tunnel, and a disk that is full must not make this program act as if it were not. Whether it
    /// is on disk.
    @discardableResult
    func changeIdentity(isFact: Bool = false, _ change: (inout Identity) -> Void) -> Bool {
        guard var changed = identity, let store else { return false }
        change(&changed)
        do throws(StoreFault) {
            try store.change(to: changed)
            identity = changed
            debt.written(.identity)
            return true
        } catch {
            if isReplaced(error) { return false }
            guard isFact else {
                log(.error, error.reason)
                return false
            }
            identity = changed
            noteRefused(.identity, error, "a restart would not know what has changed")
            return false
        }
    }

    /// `enroll` has stored another identity and is about to say so: what is known of this one is over.
    func isReplaced(_ fault: StoreFault) -> Bool {
        guard fault.code == StoreFault.identityChanged else { return false }
        mailbox.post(.event(.reload))
        return true
    }

    private func commit(_ revision: Revision) {
        guard case .usable(let usable)? = offers[revision], let store else { return }
        present = usable
        do throws(StoreFault) {
            try store.save(usable.stored)
            debt.written(.configuration)
        } catch {
            if isReplaced(error) { return }
            noteRefused(.configuration, error, "the tunnel has the configuration all the same")
        }
    }

    // MARK: the keeper

    func usable(_ revision: Revision) -> Result<UsableConfiguration, ApplyFault> {
        switch offers[revision] {
        case .usable(let usable)?: return .success(usable)
        case .refused(let refusal)?:
            return .failure(
                .rejected(
                    code: refusal.code.rawValue,
                    reason: "the hub's configuration cannot be used: \(refusal)"))
        case nil:
            if let present, present.stored.revision == revision { return .success(present) }
            return .failure(.postponed(reason: "the hub has to send its configuration again"))
        }
    }

    private func apply(_ revision: Revision, _ choice: KeyChoice) -> AgentEvent? {
        let usable: UsableConfiguration
        switch self.usable(revision) {
        case .success(let found): usable = found
        case .failure(let fault): return .applyFailed(revision, choice, fault)
        }
        guard let key = identity?.key(choice) else {
            return .applyFailed(
                revision, choice, .postponed(reason: "there is no \(choice.rawValue) key"))
        }
        // After a start nothing is known to work, not even the current key.
        let isChange =
            state.sync.applied != nil && (state.sync.applied != revision || choice == .next)
        offers.isApplying(revision)
        let (tunnel, mailbox, settings) = (tunnel, mailbox, options.settings)
        keeperWorker.submit {
            do throws(KeeperFailure) {
                try tunnel.apply(
                    usable.config.configurationText(privateKey: key, settings: settings))
                mailbox.post(.event(.applied(revision, choice)))
            } catch {
                let fault = ApplyFault(error, isChange: isChange)
                mailbox.post(.event(.applyFailed(revision, choice, fault)))
            }
        }
        return nil
    }

    /// The one thing that is not done in place, because it is asked for: the session of the hub's
    /// peer goes with the peer.
    private func resetHandshake() -> AgentEvent? {
        guard let present, let key = identity?.key(state.rotation.key) else {
            return .handshakeNotReset(reason: "there is no configuration to reset")
        }
        let (tunnel, mailbox, settings) = (tunnel, mailbox, options.settings)
        keeperWorker.submit {
            var without = present.config.configurationFile(privateKey: key, settings: settings)
            without.peers.removeFirst()
            do throws(KeeperFailure) {
                try tunnel.apply(without.write())
                try tunnel.apply(
                    present.config.configurationText(privateKey: key, settings: settings))
                mailbox.post(.event(.handshakeReset))
            } catch {
                mailbox.post(.event(.handshakeNotReset(reason: error.message)))
            }
        }
        return nil
    }

    private func takeDown() {
        let (tunnel, mailbox) = (tunnel, mailbox)
        keeperWorker.submit {
            do throws(KeeperFailure) {
                try tunnel.takeDown()
                mailbox.post(.event(.takenDown))
            } catch {
                mailbox.post(.event(.takeDownFailed(reason: error.message)))
            }
        }
    }
}
