// SPDX-License-Identifier: Apache-2.0

extension ConfigurationFile {
    /// The file. Holds the keys; the caller erases it.
    public func write() -> [UInt8] {
        var text = ConfigurationWriter(room: room)
        text.header("Interface")
        text.writeTool(interface)
        text.writeQuick(interface)
        for peer in peers {
            text.header("Peer")
            if let name = peer.friendlyName { text.line("# friendly_name", name.description) }
            if let json = peer.friendlyJSON { text.line("# friendly_json", json.description) }
            text.write(peer)
            text.write(peer.unknown)
        }
        return text.bytes
    }

    /// What `wg setconf` accepts (C10): no settings of wg-quick, none that are unknown, no hooks.
    /// Holds the keys; the caller erases it.
    public func strip() -> [UInt8] {
        var text = ConfigurationWriter(room: room)
        text.header("Interface")
        text.writeTool(interface)
        for peer in peers {
            text.header("Peer")
            text.write(peer)
        }
        return text.bytes
    }

    /// At least the size of the file: growing would leave copies of keys in freed memory.
    private var room: Int {
        var room = 1024 + 64 * interface.addresses.count + 128 * interface.dnsServers.count
        for domain in interface.searchDomains { room += 4 + domain.description.utf8.count }
        for hook in interface.hooks { room += 16 + hook.command.description.utf8.count }
        room += size(interface.unknown)
        for peer in peers {
            room += 1024 + 64 * peer.allowedIPs.count + size(peer.unknown)
            room += peer.friendlyName?.description.utf8.count ?? 0
            room += peer.friendlyJSON?.description.utf8.count ?? 0
        }
        return room
    }

    private func size(_ settings: [UnknownSetting]) -> Int {
        settings.reduce(0) { $0 + 80 + ($1.value?.description.utf8.count ?? 0) }
    }
}

private struct ConfigurationWriter {
    private(set) var bytes: [UInt8] = []

    init(room: Int) { bytes.reserveCapacity(room) }

    mutating func header(_ name: String) {
        if !bytes.isEmpty { bytes.append("\n") }
        bytes.append("[" + name + "]\n")
    }

    mutating func line(_ name: String, _ value: String) {
        begin(name)
        bytes.append(value)
        bytes.append("\n")
    }

    mutating func writeTool(_ interface: ConfigurationFile.Interface) {
        if let key = interface.privateKey {
            begin(.privateKey)
            key.appendBase64(to: &bytes)
            bytes.append("\n")
        }
        if let port = interface.listenPort { line(.listenPort, UInt64(port)) }
        if let mark = interface.fwmark {
            begin(.fwmark)
            bytes.append(mark == 0 ? "off" : "0x" + String(mark, radix: 16))
            bytes.append("\n")
        }
    }

    mutating func writeQuick(_ interface: ConfigurationFile.Interface) {
        list(.address, interface.addresses) { $0.append(to: &$1) }
        list(.dns, interface.dnsServers) { $0.append(to: &$1) }
        list(.dns, interface.searchDomains) { $1.append($0.description) }
        if let mtu = interface.mtu { line(.mtu, UInt64(mtu)) }
        if let table = interface.table {
            begin(.table)
            table.append(to: &bytes)
            bytes.append("\n")
        }
        if let save = interface.saveConfig {
            line(ConfigurationKey.saveConfig.name, save ? "true" : "false")
        }
        for hook in interface.hooks { line(hook.event.key.name, hook.command.description) }
        write(interface.unknown)
    }

    mutating func write(_ peer: ConfigurationFile.Peer) {
        line(ConfigurationKey.publicKey.name, peer.publicKey.base64)
        if let key = peer.presharedKey {
            begin(.presharedKey)
            key.appendBase64(to: &bytes)
            bytes.append("\n")
        }
        // An empty list is no line: `wg` refuses the name alone (C04).
        list(.allowedIPs, peer.allowedIPs) { $0.append(to: &$1) }
        if let endpoint = peer.endpoint {
            begin(.endpoint)
            endpoint.append(to: &bytes)
            bytes.append("\n")
        }
        if let keepalive = peer.keepalive { line(.keepalive, UInt64(keepalive)) }
    }

    mutating func write(_ settings: [UnknownSetting]) {
        for setting in settings {
            if let value = setting.value {
                line(setting.name.description, value.description)
            } else {
                bytes.append(setting.name.description + " =\n")
            }
        }
    }

    private mutating func begin(_ name: String) { bytes.append(name + " = ") }
    private mutating func begin(_ key: ConfigurationKey) { begin(key.name) }

    private mutating func line(_ key: ConfigurationKey, _ number: UInt64) {
        begin(key)
        bytes.append(decimal: number)
        bytes.append("\n")
    }

    private mutating func list<Value>(
        _ key: ConfigurationKey, _ values: [Value], _ append: (Value, inout [UInt8]) -> Void
    ) {
        guard !values.isEmpty else { return }
        begin(key)
        for (index, value) in values.enumerated() {
            if index > 0 { bytes.append(", ") }
            append(value, &bytes)
        }
        bytes.append("\n")
    }
}

extension ConfigurationFile.Hook.Event {
    fileprivate var key: ConfigurationKey {
        switch self {
        case .preUp: .preUp
        case .postUp: .postUp
        case .preDown: .preDown
        case .postDown: .postDown
        }
    }
}
