// SPDX-License-Identifier: Apache-2.0
// A tunnel's nft table as a value: what is written, and how what the kernel has is recognised.
import TunnelPlan
import WireGuard

/// The table of one tunnel. Each rule carries its role in a comment, so that the settings can be
/// read back from the kernel; the table's comment carries our tag and a hash of what was written.
struct FirewallTable: Equatable {
    struct Rule: Equatable {
        /// In the notation of nft(8), without the comment.
        var text: String
        /// What the rule is for, and the value that is not in its text.
        var role: Role
        /// What every version of libnftables prints of it: a rule that was exchanged under the same
        /// comment lacks it.
        var landmarks: [String]
    }

    enum Role: Equatable {
        case clamp
        case protect(InterfaceAddress)
        case saveMark(UInt32)
        case restoreMark(UInt32)
        /// Nothing is forwarded that peers ask of this address.
        case own(InterfaceAddress)
        case forward(PortForward)
        /// The address under which forwarded connections enter the tunnel.
        case source(PortForward)
        case masquerade
        case noteArrival(UInt32)
        case markAnswer(UInt32)
    }

    struct Chain: Equatable {
        var name: String
        /// Hook, priority and policy (nft(8), "CHAINS"). Nothing is dropped by a policy of ours.
        var header: String
        var rules: [Rule]
    }

    let name: String
    let chains: [Chain]

    static func name(for interface: InterfaceName) -> String {
        // nft knows letters, digits and /\-_. in a name. No interface's name holds a slash.
        var name = "nexusguard-"
        for character in interface.description {
            switch character {
            case "=": name += "/3d"
            case "+": name += "/2b"
            default: name.append(character)
            }
        }
        return name
    }

    init(_ settings: FirewallSettings, for interface: InterfaceName) {
        name = Self.name(for: interface)
        let link = "\"\(interface)\""
        chains =
            [
                Chain(
                    name: "forward", header: Self.header("forward", "mangle"),
                    rules: settings.clampsSegmentSize ? Self.clamp(link) : []),
                Chain(
                    name: "protect", header: Self.header("prerouting", "raw"),
                    rules: settings.protectedAddresses.map { Self.protect($0, link) }),
                Chain(
                    name: "restore", header: Self.header("prerouting", "mangle"),
                    rules: settings.fullTunnelMark.map { [Self.restore($0)] } ?? []),
                Chain(
                    name: "save", header: Self.header("postrouting", "mangle"),
                    rules: settings.fullTunnelMark.map { [Self.save($0)] } ?? []),
            ].filter { !$0.rules.isEmpty } + Self.gatewayChains(settings, link)
    }

    private static func header(_ hook: String, _ priority: String) -> String {
        "type filter hook \(hook) priority \(priority); policy accept;"
    }

    /// Forwarded TCP in both directions (C50). `rt mtu` is the smaller one of the routes to both
    /// ends, and a segment size is only ever lowered (nft(8), "EXTENSION HEADER EXPRESSIONS").
    private static func clamp(_ link: String) -> [Rule] {
        ["oifname", "iifname"].map { direction in
            let size = "tcp option maxseg size set rt mtu"
            return Rule(
                text: "\(direction) \(link) tcp flags & (syn | rst) == syn \(size)",
                role: .clamp, landmarks: ["\(direction) \(link)", size])
        }
    }

    /// A neighbour on another link must not reach the tunnel's addresses past the tunnel: with a
    /// full tunnel the strict reverse path check is not there to stop it (CVE-2019-14899).
    private static func protect(_ address: InterfaceAddress, _ link: String) -> Rule {
        let protocolName = address.address.family == .v4 ? "ip" : "ip6"
        let match = "iifname != \(link) \(protocolName) daddr \(address.address)"
        return Rule(
            text: "\(match) fib saddr type != local drop", role: .protect(address),
            landmarks: [match, "fib saddr type != ", " drop"])
    }

    /// Our datagrams' mark is kept with their connection …
    private static func save(_ mark: UInt32) -> Rule {
        Rule(
            text: "meta l4proto udp meta mark \(mark) ct mark set meta mark",
            role: .saveMark(mark), landmarks: ["meta mark \(hexadecimal(mark)) ct mark set"])
    }

    /// … and put on the answers, so that reverse path filtering asks the table they came by
    /// (net.ipv4.conf.*.src_valid_mark). Marks of others stay what they are.
    private static func restore(_ mark: UInt32) -> Rule {
        Rule(
            text: "meta l4proto udp ct mark \(mark) meta mark set \(mark)",
            role: .restoreMark(mark),
            landmarks: ["ct mark \(hexadecimal(mark)) meta mark set \(hexadecimal(mark))"])
    }

    /// As libnftables prints a mark.
    static func hexadecimal(_ mark: UInt32) -> String {
        let digits = String(mark, radix: 16)
        return "0x" + String(repeating: "0", count: 8 - digits.count) + digits
    }
}

// MARK: text

extension FirewallTable {
    static let tag = "nexusguard"

    /// The commands that make the table; they fail when there is one of that name. `replacedHandle`
    /// is the table that goes in the same transaction.
    func commands(replacing replacedHandle: UInt64?) -> String {
        let removal = replacedHandle.map { "delete table inet handle \($0)\n" } ?? ""
        return "\(removal)create table inet \(name) { comment \"\(comment)\"; }\n\(body)"
    }

    /// What the table's comment says of an intact one.
    var comment: String { "\(Self.tag) \(String(fingerprint(of: body), radix: 16))" }

    private var body: String {
        var text = ""
        for chain in chains {
            text += "add chain inet \(name) \(chain.name) { \(chain.header) }\n"
            for rule in chain.rules {
                text += "add rule inet \(name) \(chain.name) \(rule.text)"
                text += " comment \"\(rule.role)\"\n"
            }
        }
        return text
    }
}

/// FNV-1a of 64 bits (draft-eastlake-fnv): it tells a change, it does not withstand a forger, who
/// could write any comment.
private func fingerprint(of text: String) -> UInt64 {
    text.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
}

extension FirewallTable.Role: CustomStringConvertible {
    var description: String {
        switch self {
        case .clamp: "clamp"
        case .protect(let address): "protect \(address)"
        case .saveMark(let mark): "save \(mark)"
        case .restoreMark(let mark): "restore \(mark)"
        case .own(let address): "own \(address)"
        case .forward(let forward): "forward \(forward.words)"
        case .source(let forward): "source \(forward.words)"
        case .masquerade: "masquerade"
        case .noteArrival(let mark): "note \(mark)"
        case .markAnswer(let mark): "answer \(mark)"
        }
    }

    init?(_ text: Substring) {
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        switch (words.first, words.count) {
        case ("clamp", 1): self = .clamp
        case ("masquerade", 1): self = .masquerade
        case ("protect", 2), ("own", 2):
            guard let address = Array(words[1].utf8).withInterfaceAddress else { return nil }
            self = words[0] == "own" ? .own(address) : .protect(address)
        case ("save", 2), ("restore", 2), ("note", 2), ("answer", 2):
            guard let mark = UInt32(words[1]) else { return nil }
            self.init(words[0], mark)
        case ("forward", 6), ("source", 6):
            guard let forward = PortForward(words: String(text.dropFirst(words[0].count + 1)))
            else {
                return nil
            }
            self = words[0] == "forward" ? .forward(forward) : .source(forward)
        default: return nil
        }
    }

    private init(_ word: Substring, _ mark: UInt32) {
        switch word {
        case "save": self = .saveMark(mark)
        case "restore": self = .restoreMark(mark)
        case "note": self = .noteArrival(mark)
        default: self = .markAnswer(mark)
        }
    }
}

extension [UInt8] {
    fileprivate var withInterfaceAddress: InterfaceAddress? { InterfaceAddress(span) }
}
