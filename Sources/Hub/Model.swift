// SPDX-License-Identifier: Apache-2.0
import WireGuard

/// One step of what the hub remembers. A request is decided first, as a list of changes; the store
/// writes them in one transaction; then the model follows. So what was answered is on disk.
enum Change: Equatable, Sendable {
    case settings(HubSettings)
    case device(Device)
    /// With its credentials and forwards.
    case removeDevice(String)
    case token(EnrolToken)
    case removeToken(String)
    case credential(Credential)
    case removeCredential(digest: String)
    case forward(ForwardRule)
    case removeForward(String)
    /// Nobody gets the address before that time: a peer that has left may still send from it.
    case quarantine(IPAddress, until: Milliseconds)
    case endQuarantine(IPAddress)
    case alarm(Alarm)
    case removeAlarm(Int64)
    case account(OperatorAccount)
    case removeAccount(String)
    case log(LogRecord)
}

/// Everything that requests are decided by, in memory: the same as the tables of the store.
struct Model: Equatable, Sendable {
    private(set) var settings = HubSettings()
    private(set) var devices: [String: Device] = [:]
    private(set) var tokens: [String: EnrolToken] = [:]
    /// By digest.
    private(set) var credentials: [String: Credential] = [:]
    private(set) var forwards: [String: ForwardRule] = [:]
    private(set) var quarantine: [IPAddress: Milliseconds] = [:]
    private(set) var alarms: [Int64: Alarm] = [:]
    private(set) var accounts: [String: OperatorAccount] = [:]

    // Indexes, each derived from the above.
    private(set) var tokensByDigest: [String: String] = [:]
    private(set) var devicesByHardware: [String: Set<String>] = [:]
    private(set) var devicesByKey: [PublicKey: String] = [:]
    private(set) var digestsByDevice: [String: Set<String>] = [:]
    private(set) var forwardsByDevice: [String: Set<String>] = [:]
    private(set) var openAlarms: [AlarmSubject: Int64] = [:]
    private(set) var pools: [AddressPool] = []
    private(set) var lastAlarm: Int64 = 0
    /// What a search of devices looks in, in lower case.
    private(set) var searchTexts: [String: [UInt8]] = [:]

    struct AlarmSubject: Hashable, Sendable {
        var deviceId: String?
        var kind: Alarm.Kind
    }

    init() {}

    mutating func apply(_ changes: [Change]) { for change in changes { apply(change) } }

    mutating func apply(_ change: Change) {
        switch change {
        case .settings(let new): replaceSettings(new)
        case .device(let device): put(device)
        case .removeDevice(let id): removeDevice(id)
        case .token(let token):
            tokens[token.id] = token
            tokensByDigest[token.digest] = token.id
        case .removeToken(let id):
            if let old = tokens.removeValue(forKey: id) { tokensByDigest[old.digest] = nil }
        case .credential(let credential):
            credentials[credential.digest] = credential
            digestsByDevice[credential.deviceId, default: []].insert(credential.digest)
        case .removeCredential(let digest): removeCredential(digest)
        case .forward(let rule):
            removeForward(rule.id)
            forwards[rule.id] = rule
            forwardsByDevice[rule.deviceId, default: []].insert(rule.id)
        case .removeForward(let id): removeForward(id)
        case .quarantine(let address, let until):
            quarantine[address] = until
            take(address)
        case .endQuarantine(let address):
            quarantine[address] = nil
            release(address)
        case .alarm(let alarm): put(alarm)
        case .removeAlarm(let id): alarms[id] = nil
        case .account(let account): accounts[account.name] = account
        case .removeAccount(let name): accounts[name] = nil
        case .log: break
        }
    }

    // MARK: devices

    private mutating func put(_ device: Device) {
        if let old = devices[device.id] { unlink(old) }
        devices[device.id] = device
        devicesByHardware[device.hwid, default: []].insert(device.id)
        searchTexts[device.id] = device.searchText
        guard device.revoked == nil else { return }
        for key in device.keys { devicesByKey[key] = device.id }
        for address in device.addresses { take(address) }
    }

    private mutating func unlink(_ device: Device) {
        devicesByHardware[device.hwid]?.remove(device.id)
        if devicesByHardware[device.hwid]?.isEmpty == true { devicesByHardware[device.hwid] = nil }
        // What a revoked one had may be another's by now.
        guard device.revoked == nil else { return }
        for key in device.keys where devicesByKey[key] == device.id { devicesByKey[key] = nil }
        for address in device.addresses { release(address) }
    }

    private mutating func removeDevice(_ id: String) {
        guard let device = devices.removeValue(forKey: id) else { return }
        unlink(device)
        searchTexts[id] = nil
        for digest in digestsByDevice.removeValue(forKey: id) ?? [] { credentials[digest] = nil }
        for forward in forwardsByDevice.removeValue(forKey: id) ?? [] { forwards[forward] = nil }
    }

    private mutating func removeCredential(_ digest: String) {
        guard let old = credentials.removeValue(forKey: digest) else { return }
        digestsByDevice[old.deviceId]?.remove(digest)
        if digestsByDevice[old.deviceId]?.isEmpty == true { digestsByDevice[old.deviceId] = nil }
    }

    private mutating func removeForward(_ id: String) {
        guard let old = forwards.removeValue(forKey: id) else { return }
        forwardsByDevice[old.deviceId]?.remove(id)
        if forwardsByDevice[old.deviceId]?.isEmpty == true { forwardsByDevice[old.deviceId] = nil }
    }

    private mutating func put(_ alarm: Alarm) {
        alarms[alarm.id] = alarm
        lastAlarm = max(lastAlarm, alarm.id)
        let subject = AlarmSubject(deviceId: alarm.deviceId, kind: alarm.kind)
        if alarm.cleared == nil {
            openAlarms[subject] = alarm.id
        } else if openAlarms[subject] == alarm.id {
            openAlarms[subject] = nil
        }
    }

    // MARK: addresses

    private mutating func replaceSettings(_ new: HubSettings) {
        settings = new
        guard pools.map(\.prefix) != new.pools else { return }
        pools = new.pools.map { AddressPool($0) }
        for device in devices.values where device.revoked == nil {
            for address in device.addresses { take(address) }
        }
        for address in quarantine.keys { take(address) }
    }

    private mutating func take(_ address: IPAddress) {
        for index in pools.indices where pools[index].contains(address) {
            pools[index].take(address)
        }
    }

    private mutating func release(_ address: IPAddress) {
        guard quarantine[address] == nil else { return }
        for index in pools.indices where pools[index].contains(address) {
            pools[index].release(address)
        }
    }

    /// One address for each family of the pools, the lowest free ones; nil: a family has none left.
    /// They stay free until a device with them is put.
    func freeAddresses() -> [IPAddress]? {
        var found: [IPAddress] = []
        for width in [UInt8(32), 128] {
            let candidates = pools.filter { $0.prefix.address.bitWidth == width }
            guard !candidates.isEmpty else { continue }
            guard let address = candidates.lazy.compactMap(\.free).first else { return nil }
            found.append(address)
        }
        return found
    }

    /// The hub's own, one for each family.
    var hubAddresses: [IPAddress] {
        [UInt8(32), 128].compactMap { width in
            pools.first { $0.prefix.address.bitWidth == width }?.hubAddress
        }
    }
}

extension Device {
    /// All that are peers because of it.
    var keys: [PublicKey] { [publicKey] + (rotation.map { [$0.otherKey] } ?? []) }

    /// What people may know of it, in lower case; a newline between two fields belongs to none.
    fileprivate var searchText: [UInt8] {
        let fields = [
            id, name, hwid, platform, publicKey.base64, joined(addresses), joined(networks),
        ]
        return Array(fields.joined(separator: "\n").lowercased().utf8)
    }

    /// Routed to it.
    var prefixes: [Prefix] { addresses.map { Prefix(alone: $0) } + networks }
}

extension Model {
    func forwards(of device: String) -> [ForwardRule] {
        (forwardsByDevice[device] ?? []).compactMap { forwards[$0] }.sorted { $0.id < $1.id }
    }

    func openAlarm(_ kind: Alarm.Kind, of device: String?) -> Alarm? {
        openAlarms[AlarmSubject(deviceId: device, kind: kind)].flatMap { alarms[$0] }
    }
}
