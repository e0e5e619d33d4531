// SPDX-License-Identifier: Apache-2.0
// Reading what libnftables prints of a table.
import TunnelPlan
import WireGuard

/// A table as `list table` shows it, line by line: the parts of nft(8)'s notation that are the same
/// in all versions. What is not understood counts as somebody's change.
struct FirewallListing: Equatable {
    struct Rule: Equatable {
        var text: Substring
        var comment: Substring?
    }
    struct Chain: Equatable {
        var name: Substring
        var header: Substring = ""
        var rules: [Rule] = []
    }

    /// Names exactly this table, also when another takes its place.
    private(set) var handle: UInt64?
    private(set) var comment: Substring?
    private(set) var chains: [Chain] = []
    /// Sets, maps, flags: we write none.
    private(set) var hasOthers = false

    /// The output for one table, with handles. Empty text: an empty listing.
    init(_ text: String) {
        var depth = 0
        for line in text.split(separator: "\n") {
            let (content, handle) = Self.split(line)
            let opens = content.hasSuffix("{")
            if content == "}" {
                depth -= 1
            } else if depth == 0, content.hasPrefix("table "), opens {
                self.handle = handle
            } else if depth == 1 {
                readMember(content, opens: opens)
            } else if depth == 2, !chains.isEmpty {
                chains[chains.count - 1].read(content)
            } else if !content.isEmpty {
                hasOthers = true
            }
            if opens { depth += 1 }
        }
    }

    /// A line without its indentation and its ` # handle 7`.
    private static func split(_ line: Substring) -> (content: Substring, handle: UInt64?) {
        let trimmed = line.drop { $0 == "\t" || $0 == " " }
        let words = trimmed.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count >= 3, words[words.count - 3] == "#", words[words.count - 2] == "handle",
            let handle = UInt64(words[words.count - 1])
        else { return (trimmed, nil) }
        let end = words.count == 3 ? trimmed.startIndex : words[words.count - 4].endIndex
        return (trimmed[..<end], handle)
    }

    private mutating func readMember(_ content: Substring, opens: Bool) {
        let words = content.split(separator: " ")
        if opens, words.count == 3, words[0] == "chain" {
            chains.append(Chain(name: words[1]))
        } else if content.hasPrefix("comment \""), content.hasSuffix("\""), comment == nil {
            comment = content.dropFirst(9).dropLast()
        } else if !content.isEmpty {
            hasOthers = true
        }
    }
}

extension FirewallListing.Chain {
    fileprivate mutating func read(_ content: Substring) {
        if header.isEmpty, rules.isEmpty, content.hasPrefix("type ") {
            header = content
        } else if !content.isEmpty {
            rules.append(FirewallListing.Rule(content))
        }
    }
}

extension FirewallListing.Rule {
    fileprivate init(_ content: Substring) {
        guard content.hasSuffix("\""), let start = content.dropLast().lastIndex(of: "\""),
            content[..<start].hasSuffix(" comment ")
        else {
            self.init(text: content, comment: nil)
            return
        }
        self.init(
            text: content[..<start].dropLast(9),
            comment: content[content.index(after: start)...].dropLast())
    }
}

extension FirewallListing {
    /// Whether the table's comment says that we wrote it.
    var isOurs: Bool {
        comment?.split(separator: " ", omittingEmptySubsequences: false).first.map(String.init)
            == FirewallTable.tag
    }

    /// What the rules' comments say.
    var settings: FirewallSettings {
        var settings = FirewallSettings()
        for rule in chains.lazy.flatMap(\.rules) {
            guard let role = rule.comment.flatMap(FirewallTable.Role.init) else { continue }
            switch role {
            case .clamp: settings.clampsSegmentSize = true
            case .protect(let address): settings.protectedAddresses.append(address)
            case .saveMark(let mark), .restoreMark(let mark): settings.fullTunnelMark = mark
            case .own(let address): settings.ownAddresses.append(address)
            case .forward(let forward), .source(let forward):
                // One rule for each port where they are led to others.
                if !settings.forwards.contains(forward) { settings.forwards.append(forward) }
            case .masquerade: settings.masquerades = true
            case .noteArrival(let mark), .markAnswer(let mark): settings.answerMark = mark
            }
        }
        return settings
    }

    /// Whether it is `table`, nothing missing, added or in another order.
    func shows(_ table: FirewallTable) -> Bool {
        guard comment.map(String.init) == table.comment, !hasOthers,
            chains.count == table.chains.count
        else { return false }
        return zip(chains, table.chains).allSatisfy { listed, written in
            guard listed.name == written.name, listed.header == written.header,
                listed.rules.count == written.rules.count
            else { return false }
            return zip(listed.rules, written.rules).allSatisfy { listed, written in
                listed.comment.map(String.init) == written.role.description
                    && written.landmarks.allSatisfy { listed.text.text(after: $0) != nil }
            }
        }
    }
}
