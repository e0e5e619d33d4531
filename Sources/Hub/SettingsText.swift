// SPDX-License-Identifier: Apache-2.0
// Settings by name, as the table, the operator API and `nexusguard hub settings` have them.
import WireGuard

extension HubSettings {
    /// In the order in which people read them.
    static let names = [
        "endpoint", "listenPort", "pools", "dns", "routes", "mtu", "keepalive", "heartbeatSeconds",
        "allowsHubKeys", "presharedKeys", "masquerades", "nextPin", "reservedPorts",
    ]

    /// All of them; "" stands for what is not set.
    var rows: [(name: String, value: String)] { Self.names.map { ($0, text($0)) } }

    /// nil when one cannot be read. Names that are not known are left out: an older program reads
    /// what a newer one wrote.
    init?(rows: [String: String]) {
        self.init()
        for name in Self.names {
            guard let value = rows[name] else { continue }
            guard set(name, value) == nil else { return nil }
        }
    }

    func text(_ name: String) -> String {
        switch name {
        case "endpoint": endpoint
        case "listenPort": "\(listenPort)"
        case "pools": joined(pools)
        case "dns": joined(dns)
        case "routes": routes.map { joined($0) } ?? ""
        case "mtu": mtu.map { "\($0)" } ?? ""
        case "keepalive": keepalive.map { "\($0)" } ?? ""
        case "heartbeatSeconds": "\(heartbeatSeconds)"
        case "allowsHubKeys": "\(allowsHubKeys)"
        case "presharedKeys": "\(presharedKeys)"
        case "masquerades": "\(masquerades)"
        case "nextPin": nextPin ?? ""
        case "reservedPorts": joined(reservedPorts)
        default: ""
        }
    }

    /// nil: it is set; else what a value of that name is.
    mutating func set(_ name: String, _ value: String) -> String? {
        switch name {
        case "endpoint": setEndpoint(value)
        case "listenPort": Self.number(value, 1...65535) { listenPort = UInt16($0) }
        case "pools": setPools(value)
        case "dns": Self.list(value, IPAddress.init, "addresses") { dns = $0 }
        case "routes":
            Self.list(value, Prefix.init, "prefixes") { routes = $0.isEmpty ? nil : $0 }
        case "mtu": Self.optional(value, 576...65535) { mtu = $0.map { UInt16($0) } }
        case "keepalive": Self.optional(value, 1...65535) { keepalive = $0.map { UInt16($0) } }
        case "heartbeatSeconds": Self.number(value, 5...3600) { heartbeatSeconds = $0 }
        case "allowsHubKeys": Self.flag(value) { allowsHubKeys = $0 }
        case "presharedKeys": Self.flag(value) { presharedKeys = $0 }
        case "masquerades": Self.flag(value) { masquerades = $0 }
        case "nextPin": setPin(value)
        case "reservedPorts":
            Self.list(value, Self.port, "ports") { reservedPorts = $0 }
        default: "there is no setting of that name; there are \(Self.names.joined(separator: ", "))"
        }
    }

    private mutating func setEndpoint(_ value: String) -> String? {
        if value.isEmpty || PeerEndpoint(text: value) != nil {
            endpoint = value
            return nil
        }
        return "it is HOST:PORT, as devices reach the hub"
    }

    private mutating func setPools(_ value: String) -> String? {
        guard let new = split(value, Prefix.init) else {
            return "it is a list of prefixes with commas between"
        }
        for (index, pool) in new.enumerated() {
            guard AddressPool(pool).hubAddress != nil else {
                return "\(pool) has no room for the hub and a device"
            }
            if let other = new[..<index].first(where: { $0.overlaps(pool) }) {
                return "\(pool) and \(other) overlap"
            }
        }
        pools = new
        return nil
    }

    /// As curl takes them: `sha256//` and the base64 of 32 bytes.
    private mutating func setPin(_ value: String) -> String? {
        let digest = value.dropFirst("sha256//".count)
        guard value.isEmpty || value.hasPrefix("sha256//") && isKeyText(String(digest)) else {
            return "it is sha256// and the base64 of 32 bytes"
        }
        nextPin = value.isEmpty ? nil : value
        return nil
    }

    // MARK: kinds of values

    private static func port(_ text: String) -> UInt16? { UInt16(text) }

    private static func number(
        _ value: String, _ range: ClosedRange<Int>, _ assign: (Int) -> Void
    ) -> String? {
        guard value.utf8.allSatisfy({ 0x30...0x39 ~= $0 }), let number = Int(value),
            range.contains(number)
        else { return "it is a number from \(range.lowerBound) to \(range.upperBound)" }
        assign(number)
        return nil
    }

    private static func optional(
        _ value: String, _ range: ClosedRange<Int>, _ assign: (Int?) -> Void
    ) -> String? {
        guard !value.isEmpty else {
            assign(nil)
            return nil
        }
        return number(value, range) { assign($0) }.map { $0 + ", or empty" }
    }

    private static func flag(_ value: String, _ assign: (Bool) -> Void) -> String? {
        guard let flag = Bool(value) else { return "it is true or false" }
        assign(flag)
        return nil
    }

    private static func list<Element>(
        _ value: String, _ read: (String) -> Element?, _ kind: String,
        _ assign: ([Element]) -> Void
    ) -> String? {
        guard let values = split(value, read) else {
            return "it is a list of \(kind) with commas between"
        }
        assign(values)
        return nil
    }
}

private func isKeyText(_ text: String) -> Bool { (try? PublicKey(base64: text)) != nil }

extension PeerEndpoint {
    /// `host:port`, `address:port`, `[address]:port`; the port is not 0.
    init?(text: String) {
        if let endpoint = Endpoint(text) {
            guard endpoint.port > 0 else { return nil }
            self = .address(endpoint)
            return
        }
        guard let colon = text.lastIndex(of: ":"),
            text[text.index(after: colon)...].utf8.allSatisfy({ 0x30...0x39 ~= $0 }),
            let port = UInt16(text[text.index(after: colon)...]), port > 0,
            let host = HostName(String(text[..<colon]))
        else { return nil }
        self = .host(host, port: port)
    }
}
