// SPDX-License-Identifier: Apache-2.0
// A plan for people: one line for each change. Secrets are never in it, only whether they are set.
import WireGuard

public struct PlanDocument: Equatable, Sendable {
    public static let schemaVersion: UInt64 = 1

    public var name: InterfaceName
    public var changes: [Change]
    public var issues: [Issue]
    /// How peers are called; the others go by their key.
    public var friendlyNames: [PublicKey: ConfigurationText] = [:]
    /// As they were: the firewall changes as a whole, its forwards are told one by one.
    public var formerForwards: [PortForward] = []

    public init(
        name: InterfaceName, changes: [Change], issues: [Issue] = [],
        configuration: ConfigurationFile? = nil
    ) {
        self.name = name
        self.changes = changes
        self.issues = issues
        for peer in configuration?.peers ?? [] {
            if let friendly = peer.friendlyName { friendlyNames[peer.publicKey] = friendly }
        }
    }

    /// `+` comes, `~` changes, `-` goes. Each line ends with a newline; empty without changes.
    public var text: String {
        var text = ""
        for change in changes {
            for line in lines(change) {
                text += line
                text += "\n"
            }
        }
        return text
    }

    /// The line of the change, and one for each forward that comes or goes with it.
    public func lines(_ change: Change) -> [String] {
        if case .exchangeLink = change { return [line(change)] + exchangeNotes }
        guard case .setFirewall(let settings) = change else { return [line(change)] }
        let forwards = settings?.forwards ?? []
        return [line(change)]
            + forwards.filter { !formerForwards.contains($0) }.map { "+ forward \($0)" }
            + formerForwards.filter { !forwards.contains($0) }.map { "- forward \($0)" }
    }

    /// What people see of it elsewhere.
    private var exchangeNotes: [String] {
        [
            "~ link \(name): its number (ifindex) is another, its counters begin anew",
            "~ sessions: one new handshake with each peer",
        ]
    }

    /// Without a newline.
    public func line(_ change: Change) -> String {
        switch change {
        case .createLink(let kind): "+ link \(name) (\(kind.rawValue))"
        case .createReplacement(let kind):
            "+ link (\(kind.rawValue)) beside \(name), to replace it"
        case .exchangeLink: "~ link \(name): the new one takes its place"
        case .greetPeers(let keys):
            "~ sessions: a handshake with \(keys.count) peer\(keys.count == 1 ? "" : "s") begins here"
        case .removeLink: "- link \(name)"
        case .setDevice(let change): "~ device " + describe(change)
        case .addPeer(let change): "+ peer " + describe(change)
        case .changePeer(let change): "~ peer " + describe(change)
        case .removePeer(let key): "- peer " + label(key)
        case .addAddress(let address): "+ address \(address)"
        case .removeAddress(let address): "- address \(address)"
        case .setMTU(let mtu): "~ mtu \(mtu)"
        case .setUp(let isUp): "~ link \(name) \(isUp ? "up" : "down")"
        case .addRoute(let route): "+ route " + describe(route)
        case .removeRoute(let route): "- route " + describe(route)
        case .addRule(let rule): "+ rule " + describe(rule)
        case .removeRule(let rule): "- rule " + describe(rule)
        case .addBarrier(let barrier): "+ barrier " + describe(barrier)
        case .removeBarrier(let barrier): "- barrier " + describe(barrier)
        case .setDNS(let settings): settings.map { "~ dns " + describe($0) } ?? "- dns"
        case .setFirewall(let settings):
            settings.map { "~ firewall " + describe($0) } ?? "- firewall"
        case .setSetting(let setting, let value):
            value.map { "~ setting \(setting.path) = \($0)" } ?? "- setting \(setting.path)"
        }
    }

    private func label(_ key: PublicKey) -> String { friendlyNames[key]?.description ?? key.base64 }
}

extension HostSetting {
    /// As sysctl(8) writes it.
    public var path: String {
        switch self {
        case .sourceValidMark: "net.ipv4.conf.all.src_valid_mark"
        case .forwardsIPv4: "net.ipv4.ip_forward"
        case .forwardsIPv6: "net.ipv6.conf.all.forwarding"
        case .sendsRedirects: "net.ipv4.conf.all.send_redirects"
        }
    }
}

// MARK: parts of a line, in the words of `wg show`

extension PlanDocument {
    private func describe(_ change: DeviceChange) -> String {
        var parts: [String] = []
        if let key = change.privateKey { parts.append("private key " + hidden(key)) }
        if let port = change.listenPort {
            parts.append("listening port \(port == 0 ? "any" : String(port))")
        }
        if let mark = change.fwmark { parts.append("fwmark " + describe(mark: mark)) }
        return parts.joined(separator: "; ")
    }

    private func describe(_ change: PeerChange) -> String {
        var parts: [String] = []
        if let key = change.presharedKey { parts.append("preshared key " + hidden(key)) }
        if let endpoint = change.endpoint { parts.append("endpoint \(endpoint)") }
        if let seconds = change.keepalive {
            parts.append(
                "persistent keepalive "
                    + (seconds == 0 ? "off" : "every \(seconds) second\(seconds == 1 ? "" : "s")"))
        }
        let sign = change.updateOnly ? "+ " : ""
        parts += describe(change.prefixes.filter { !$0.remove }, sign)
        parts += describe(change.prefixes.filter(\.remove), "- ")
        return ([label(change.publicKey)] + [parts.joined(separator: "; ")])
            .filter { !$0.isEmpty }.joined(separator: " ")
    }

    private func describe(_ prefixes: [PrefixChange], _ sign: String) -> [String] {
        guard !prefixes.isEmpty else { return [] }
        return [
            sign + "allowed ips " + prefixes.map(\.prefix.description).joined(separator: ", ")
        ]
    }

    private func hidden(_ key: some Secret) -> String { key.isZero ? "(none)" : "(hidden)" }

    private func describe(mark: UInt32) -> String {
        mark == 0 ? "off" : "0x" + String(mark, radix: 16)
    }

    private func describe(_ route: Route) -> String {
        let table = route.table == Route.mainTable ? "" : " table \(route.table)"
        return "\(route.destination)" + table + (route.metric.map { " metric \($0)" } ?? "")
    }

    private func describe(_ barrier: Barrier) -> String {
        describe(Route(barrier.destination, table: barrier.table)) + " unreachable"
    }

    private func describe(_ rule: Rule) -> String {
        var text = "\(rule.priority) \(rule.family == .v4 ? "IPv4" : "IPv6")"
        if rule.isInverted { text += " not" }
        if let mark = rule.mark { text += " fwmark 0x" + String(mark, radix: 16) }
        text += " table " + (rule.table == Route.mainTable ? "main" : String(rule.table))
        if let length = rule.suppressPrefixLength { text += " suppress_prefixlength \(length)" }
        return text
    }

    private func describe(_ settings: DNSSettings) -> String {
        var parts: [String] = []
        if !settings.servers.isEmpty {
            parts.append(settings.servers.map(\.text).joined(separator: ", "))
        }
        if !settings.searchDomains.isEmpty {
            let domains = settings.searchDomains.map(\.description)
            parts.append("search " + domains.joined(separator: ", "))
        }
        return parts.joined(separator: "; ")
    }

    private func describe(_ settings: FirewallSettings) -> String {
        var parts: [String] = []
        if settings.clampsSegmentSize { parts.append("clamps the segment size") }
        if let mark = settings.fullTunnelMark {
            parts.append("keeps mark " + describe(mark: mark))
        }
        if !settings.protectedAddresses.isEmpty {
            let addresses = settings.protectedAddresses.map(\.description)
            parts.append("protects " + addresses.joined(separator: ", "))
        }
        if !settings.forwards.isEmpty { parts.append("\(settings.forwards.count) forwards") }
        if settings.masquerades { parts.append("masquerades") }
        if let mark = settings.answerMark {
            parts.append("answers through the tunnel with mark " + describe(mark: mark))
        }
        return parts.joined(separator: "; ")
    }
}

extension DNSServer {
    var text: String {
        var text: [UInt8] = []
        append(to: &text)
        return String(decoding: text, as: UTF8.self)
    }
}
