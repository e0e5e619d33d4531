// SPDX-License-Identifier: Apache-2.0
// A plan for programs. Members are only added within one schema version.
import WireGuard

extension PlanDocument {
    /// `{"schemaVersion":1,"interface":…,"issues":[…],"changes":[{"action":…,"object":…,…}]}` on
    /// one line, without a newline. `action` is "add", "change" or "remove".
    public func json() -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.number("schemaVersion", Self.schemaVersion)
        writer.string("interface", name.description)
        writer.beginArray("issues")
        for issue in issues { issue.write(to: &writer) }
        writer.endArray()
        writer.beginArray("changes")
        for change in changes { write(change, to: &writer) }
        writer.endArray()
        writer.endObject()
        return writer.text
    }

    private func write(_ change: Change, to writer: inout JSONWriter) {
        writer.beginObject()
        switch change {
        case .createLink, .createReplacement, .exchangeLink, .greetPeers, .removeLink, .setMTU,
            .setUp:
            writeLink(change, to: &writer)
        case .setDevice, .addPeer, .changePeer, .removePeer: writeDevice(change, to: &writer)
        case .addAddress(let address): writer.head("add", "address", "address", "\(address)")
        case .removeAddress(let address):
            writer.head("remove", "address", "address", "\(address)")
        case .addRoute(let route): writer.write(route, "add")
        case .removeRoute(let route): writer.write(route, "remove")
        case .addRule(let rule): writer.write(rule, "add")
        case .removeRule(let rule): writer.write(rule, "remove")
        case .addBarrier(let barrier): writer.write(barrier, "add")
        case .removeBarrier(let barrier): writer.write(barrier, "remove")
        case .setDNS(let settings): writer.write(settings)
        case .setFirewall(let settings): writer.write(settings)
        case .setSetting(let setting, let value):
            writer.head(value == nil ? "remove" : "change", "setting", "setting", setting.path)
            if let value { writer.number("value", UInt64(value)) }
        }
        writer.endObject()
    }

    private func writeLink(_ change: Change, to writer: inout JSONWriter) {
        switch change {
        case .createLink(let kind): writer.head("add", "link", "backend", kind.rawValue)
        case .createReplacement(let kind):
            writer.head("add", "replacement", "backend", kind.rawValue)
        case .exchangeLink:
            writer.head("change", "link")
            writer.bool("replaced", true)
        case .greetPeers(let keys):
            writer.head("change", "sessions")
            writer.number("handshakes", UInt64(keys.count))
        case .removeLink: writer.head("remove", "link")
        case .setMTU(let mtu):
            writer.head("change", "mtu")
            writer.number("mtu", UInt64(mtu))
        case .setUp(let isUp):
            writer.head("change", "link")
            writer.bool("up", isUp)
        default: break
        }
    }

    private func writeDevice(_ change: Change, to writer: inout JSONWriter) {
        switch change {
        case .setDevice(let change):
            writer.head("change", "device")
            if let key = change.privateKey { writer.state(of: key, "privateKey") }
            if let port = change.listenPort { writer.number("listenPort", UInt64(port)) }
            if let mark = change.fwmark { writer.number("fwmark", UInt64(mark)) }
        case .addPeer(let change): write(change, "add", to: &writer)
        case .changePeer(let change): write(change, "change", to: &writer)
        case .removePeer(let key): writePeer(key, "remove", to: &writer)
        default: break
        }
    }

    private func writePeer(_ key: PublicKey, _ action: String, to writer: inout JSONWriter) {
        writer.head(action, "peer", "publicKey", key.base64)
        if let friendly = friendlyNames[key] {
            writer.string("friendlyName", friendly.description)
        }
    }

    private func write(_ change: PeerChange, _ action: String, to writer: inout JSONWriter) {
        writePeer(change.publicKey, action, to: &writer)
        if let key = change.presharedKey { writer.state(of: key, "presharedKey") }
        if let endpoint = change.endpoint { writer.string("endpoint", endpoint.description) }
        if let seconds = change.keepalive { writer.number("persistentKeepalive", UInt64(seconds)) }
        let added = change.prefixes.filter { !$0.remove }.map(\.prefix.description)
        let removed = change.prefixes.filter(\.remove).map(\.prefix.description)
        writer.list("allowedIpsAdded", added)
        writer.list("allowedIpsRemoved", removed)
    }
}

extension Issue {
    fileprivate func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.string("severity", severity.rawValue)
        writer.string("kind", kind.rawValue)
        writer.string("what", what)
        if let whoLoses { writer.string("whoLoses", whoLoses) }
        writer.string("advice", advice)
        writer.endObject()
    }
}

extension JSONWriter {
    fileprivate mutating func head(_ action: String, _ object: String) {
        string("action", action)
        string("object", object)
    }

    fileprivate mutating func head(
        _ action: String, _ object: String, _ key: String, _ value: String
    ) {
        head(action, object)
        string(key, value)
    }

    /// Only whether there is one.
    fileprivate mutating func state(of secret: some Secret, _ key: String) {
        string(key, secret.isZero ? "none" : "hidden")
    }

    /// Nothing for an empty list.
    fileprivate mutating func list(_ key: String, _ values: [String]) {
        guard !values.isEmpty else { return }
        beginArray(key)
        for value in values { string(nil, value) }
        endArray()
    }

    fileprivate mutating func write(_ route: Route, _ action: String) {
        head(action, "route", "destination", route.destination.description)
        number("table", UInt64(route.table))
        if let metric = route.metric { number("metric", UInt64(metric)) }
    }

    fileprivate mutating func write(_ rule: Rule, _ action: String) {
        head(action, "rule", "family", rule.family == .v4 ? "ipv4" : "ipv6")
        number("priority", UInt64(rule.priority))
        if let mark = rule.mark {
            bool("inverted", rule.isInverted)
            number("mark", UInt64(mark))
        }
        number("table", UInt64(rule.table))
        if let length = rule.suppressPrefixLength {
            number("suppressPrefixLength", UInt64(length))
        }
    }

    fileprivate mutating func write(_ barrier: Barrier, _ action: String) {
        head(action, "barrier", "destination", barrier.destination.description)
        number("table", UInt64(barrier.table))
        number("metric", UInt64(barrier.metric))
    }

    fileprivate mutating func write(_ settings: DNSSettings?) {
        head(settings == nil ? "remove" : "change", "dns")
        guard let settings else { return }
        list("servers", settings.servers.map(\.text))
        list("searchDomains", settings.searchDomains.map(\.description))
    }

    fileprivate mutating func write(_ settings: FirewallSettings?) {
        head(settings == nil ? "remove" : "change", "firewall")
        guard let settings else { return }
        bool("clampsSegmentSize", settings.clampsSegmentSize)
        if let mark = settings.fullTunnelMark { number("fullTunnelMark", UInt64(mark)) }
        list("protectedAddresses", settings.protectedAddresses.map(\.description))
        if settings.masquerades { bool("masquerades", true) }
        if let mark = settings.answerMark { number("answerMark", UInt64(mark)) }
        guard !settings.forwards.isEmpty else { return }
        beginArray("forwards")
        for forward in settings.forwards { write(forward) }
        endArray()
    }
}
