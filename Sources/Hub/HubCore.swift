// SPDX-License-Identifier: Apache-2.0
// The hub behind its lock: requests in, answers and effects out. No clock, no socket: whoever calls
// says what time it is and performs the effects.
import ControlAPI
import Crypto
import SQLite
import WireGuard

/// What only this machine's hub knows. Kept in the secret store, not in the tables.
struct HubKeys: Sendable {
    /// Of the hub's own interface.
    var tunnel: SecretKey
    /// Seals private and preshared keys that the hub made for devices.
    var sealing: AEADKey

    static func generate() -> HubKeys {
        HubKeys(tunnel: .generate(), sealing: .generate())
    }
}

/// What is to be done after the lock is released.
struct Effects: Equatable {
    /// Peers or forwards are others now.
    var isTunnelChanged = false
    var deviceEvents: [DeviceNote] = []
    /// Revoked or gone.
    var endedDevices: [String] = []
    var operatorEvents: [OperatorNote] = []

    struct DeviceNote: Hashable {
        var deviceId: String
        var event: DeviceEvent
    }

    /// Something an operator looks at has changed.
    struct OperatorNote: Hashable {
        /// `device`, `forward`, `token`, `alarm` or `settings`.
        var kind: String
        var id: String
    }
}

/// What is known of the keeper of the hub's interface.
struct KeeperReport: Equatable, Sendable {
    /// nil: the last apply was good.
    var problem: String?
    var lastApplied: Milliseconds?
    var lastTried: Milliseconds?
}

struct HubCore: ~Copyable {
    private(set) var model: Model
    let store: Store
    let keys: HubKeys
    let publicKey: PublicKey
    /// When this process began: before it has listened for a while it does not say who is silent.
    private(set) var started: Milliseconds
    var live: [String: LiveDevice] = [:]
    var tokenFailures = TokenBuckets()
    var bearerFailures = TokenBuckets()
    /// Calls of devices that have shown their token, by their ids. An agent makes one in some seconds;
    /// one that runs wild shall not keep the others waiting.
    var deviceCalls = TokenBuckets(burst: 300, rate: 5, limit: 1 << 16)
    /// What devices have written to disk and log as often as they ask, by their ids.
    var deviceWrites = TokenBuckets(burst: 32, rate: 1.0 / 30)
    var effects = Effects()
    var keeper = KeeperReport()
    /// Devices that speak less are told to upgrade.
    var oldestProtocol = ProtocolVersion.oldest
    var ownPorts = OwnPorts()
    /// One up with every change that concerns the configuration of all devices.
    private(set) var generation: UInt64 = 1
    /// Behind which device which network is, by text; nil: to be made.
    private var networks: [(deviceId: String, prefix: Prefix)]?
    /// The devices by name. Made at the start: of thousands it takes a tenth of a second.
    private(set) var order: DeviceOrder
    /// Whose live state has changed since it was written.
    var unwritten: Set<String> = []
    /// What is left of this round of upkeep.
    var unvisited: [String] = []

    init(store: Store, keys: HubKeys, now: Milliseconds) throws(StoreError) {
        let model = try store.load()
        var live = try store.loadLive()
        // From before the clock was put back.
        for id in live.keys { live[id]!.seen = live[id]!.seen.map { min($0, now) } }
        self.store = store
        self.keys = keys
        publicKey = keys.tunnel.publicKey
        started = now
        self.model = model
        self.live = live
        order = DeviceOrder(model.devices.values)
        effects.isTunnelChanged = true
    }

    /// What was collected since the last call.
    mutating func takeEffects() -> Effects {
        defer { effects = Effects() }
        return effects
    }

    /// Writes `changes`, then follows them. When the store refuses, nothing has changed.
    mutating func commit(_ changes: [Change]) throws(Refusal) {
        guard !changes.isEmpty else { return }
        do throws(SQLiteError) {
            try store.write(changes)
        } catch {
            throw Refusal(
                .unavailable, "the hub cannot keep this: \(error)", retryAfter: 30)
        }
        let before = changes.map { previous($0) }
        model.apply(changes)
        for (change, before) in zip(changes, before) { note(change, before: before) }
    }

    /// Before a change that `device` may ask for again and again: it shall not fill the log, nor hold
    /// up the others by what it has written.
    mutating func limitWrites(of device: String, at now: Milliseconds) throws(Refusal) {
        guard let seconds = deviceWrites.fail(device, at: now) else { return }
        throw Refusal(
            .tooManyRequests, "the device asks for too many changes", deviceId: device,
            retryAfter: seconds)
    }

    mutating func limitCalls(of device: String, at now: Milliseconds) throws(Refusal) {
        guard let seconds = deviceCalls.fail(device, at: now) else { return }
        throw Refusal(
            .tooManyRequests, "the device calls too often", deviceId: device, retryAfter: seconds)
    }

    /// A device that speaks less than this hub does would misunderstand it. Its tunnel goes on.
    func requireProtocol(
        _ version: Int?, of agent: String?, device: String? = nil
    ) throws(Refusal) {
        let version = version ?? 1
        guard version < oldestProtocol else { return }
        throw Refusal(
            .upgradeRequired,
            "the agent \(visible(agent ?? "", limit: 64)) speaks version \(version) of the interface, "
                + "this hub \(oldestProtocol) and later", deviceId: device)
    }

    /// The clock was set by `step` milliseconds, or the machine slept for so long: nobody has been
    /// silent meanwhile, and nobody has been heard in the future.
    mutating func clockWasSet(by step: Int64) {
        started += step
        for id in live.keys {
            live[id]!.seen? += step
            live[id]!.judge.moveTimes(by: step)
        }
    }

    private func previous(_ change: Change) -> Device? {
        switch change {
        case .device(let device): model.devices[device.id]
        case .removeDevice(let id): model.devices[id]
        default: nil
        }
    }
}

extension HubCore {
    /// Networks behind devices, in an order that depends on nothing else: a list of all devices is
    /// not gone through for each of them.
    mutating func allNetworks() -> [(deviceId: String, prefix: Prefix)] {
        if let networks { return networks }
        var found: [(deviceId: String, prefix: Prefix)] = []
        for device in model.devices.values where device.revoked == nil {
            for prefix in device.networks { found.append((device.id, prefix)) }
        }
        found.sort { "\($0.prefix)" < "\($1.prefix)" }
        networks = found
        return found
    }
}

// MARK: effects of changes

extension HubCore {
    private mutating func note(_ change: Change, before: Device?) {
        switch change {
        case .settings:
            everyConfigurationChanged()
            effects.isTunnelChanged = true
            tellOperators("settings", "")
        case .device(let device): noteDevice(device.id, before, device)
        case .removeDevice(let id):
            noteDevice(id, before, nil)
            live[id] = nil
        case .forward(let rule): noteForward(rule.deviceId, rule.id)
        case .removeForward(let id):
            // Who had it is gone from the model; its device has a new hash in any case.
            noteForward(nil, id)
        case .token(let token): tellOperators("token", token.id)
        case .alarm(let alarm): tellOperators("alarm", "\(alarm.id)")
        case .credential, .removeCredential, .quarantine, .endQuarantine, .account, .removeAccount,
            .removeToken, .removeAlarm, .log:
            break
        }
    }

    private mutating func noteDevice(_ id: String, _ old: Device?, _ new: Device?) {
        tellOperators("device", id)
        live[id]?.wanted = nil
        if old?.name != new?.name {
            if let old { order.remove(old) }
            if let new { order.insert(new) }
        }
        let oldPeer = old.flatMap { $0.revoked == nil ? $0 : nil }
        let newPeer = new.flatMap { $0.revoked == nil ? $0 : nil }
        if oldPeer?.keys != newPeer?.keys || oldPeer?.prefixes != newPeer?.prefixes
            || oldPeer?.rotation?.phase != newPeer?.rotation?.phase
            || oldPeer?.sealedPresharedKey != newPeer?.sealedPresharedKey
        {
            effects.isTunnelChanged = true
        }
        let isRouted = oldPeer?.networks ?? [] != newPeer?.networks ?? []
        if isRouted { networks = nil }
        if isRouted, model.settings.routes == nil {
            everyConfigurationChanged()
        } else if let old, let new, old.routes != new.routes || old.addresses != new.addresses {
            tell(id, .config)
        }
        if new?.command != nil, new?.command != old?.command { tell(id, .command) }
        if let new, new.revoked != nil, old?.revoked == nil { tell(id, .command) }
        if oldPeer != nil, newPeer == nil { effects.endedDevices.append(id) }
    }

    private mutating func noteForward(_ device: String?, _ id: String) {
        effects.isTunnelChanged = true
        tellOperators("forward", id)
        if let device { forwardsChanged(device) }
    }

    /// The list of forwards of `device` is another one.
    mutating func forwardsChanged(_ device: String) {
        live[device]?.wanted = nil
        tell(device, .forwards)
    }

    private mutating func everyConfigurationChanged() {
        generation += 1
        for id in model.devices.keys { tell(id, .config) }
    }

    private mutating func tell(_ device: String, _ event: DeviceEvent) {
        effects.deviceEvents.append(Effects.DeviceNote(deviceId: device, event: event))
    }

    private mutating func tellOperators(_ kind: String, _ id: String) {
        effects.operatorEvents.append(Effects.OperatorNote(kind: kind, id: id))
    }
}
