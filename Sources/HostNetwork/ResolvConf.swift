// SPDX-License-Identifier: Apache-2.0
// resolv.conf(5) as values: what we write, and what we remember to put back.
import TunnelPlan
import WireGuard

/// What is found under the name of the file.
enum ResolvConfEntry: Equatable {
    case absent
    case file(bytes: [UInt8], mode: UInt32, user: UInt32, group: UInt32)
    /// `bytes`: what it leads to; empty when that is not there.
    case link(target: String, bytes: [UInt8])

    var bytes: [UInt8] {
        switch self {
        case .absent: []
        case .file(let bytes, _, _, _), .link(_, let bytes): bytes
        }
    }
}

/// What this host's file was before us, and who asked for what. It lies on disk before the file is
/// changed.
struct ResolvConfState: Equatable {
    struct Tunnel: Equatable {
        var name: InterfaceName
        var settings: DNSSettings
    }

    var original: ResolvConfEntry
    /// The newest first.
    var tunnels: [Tunnel] = []
    /// What we wrote last, and before that: after a crash either may be there.
    var written: [[UInt8]] = []

    init(original: ResolvConfEntry) { self.original = original }

    /// Whether `entry` is our work. Anything else is somebody's newer edit.
    func isOurs(_ entry: ResolvConfEntry) -> Bool {
        guard case .file(let bytes, _, _, _) = entry else { return false }
        return written.contains(bytes)
    }

    mutating func set(_ settings: DNSSettings, for name: InterfaceName) {
        if let index = tunnels.firstIndex(where: { $0.name == name }) {
            tunnels[index].settings = settings
        } else {
            tunnels.insert(Tunnel(name: name, settings: settings), at: 0)
        }
    }

    mutating func remove(_ name: InterfaceName) { tunnels.removeAll { $0.name == name } }

    /// Notes that `content` is written next.
    mutating func willWrite(_ content: [UInt8]) {
        written.removeAll { $0 == content }
        written = [content] + written.prefix(1)
    }

    /// The tunnels' servers instead of the host's, as wg-quick(8) has it. The host's stay where no
    /// tunnel names one. Domains that only route cannot be said here.
    func content(stateFile: String) -> [UInt8] {
        let names = tunnels.map(\.name.description).joined(separator: ", ")
        var text = Array(
            """
            # Written by nexusguard for the tunnel \(names). What was here before comes back when the
            # tunnel goes down; until then it is kept in \(stateFile).

            """.utf8)
        let lines = original.bytes.split(separator: UInt8(ascii: "\n"))
        let servers = tunnels.flatMap(\.settings.servers)
        for server in servers {
            text += Array("nameserver ".utf8)
            server.append(to: &text)
            text.append(UInt8(ascii: "\n"))
        }
        let domains = tunnels.flatMap(\.settings.searchDomains).filter { !$0.isRoutingOnly }
        if !domains.isEmpty {
            let words = domains.map(\.description).joined(separator: " ")
            text += Array("search \(words)\n".utf8)
        }
        for line in lines
        where keeps(line, hasServers: !servers.isEmpty, hasDomains: !domains.isEmpty) {
            text += line
            text.append(UInt8(ascii: "\n"))
        }
        return text
    }

    private func keeps(_ line: ArraySlice<UInt8>, hasServers: Bool, hasDomains: Bool) -> Bool {
        let keyword = line.prefix { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") }
        switch String(decoding: keyword, as: UTF8.self) {
        case "nameserver": return !hasServers
        // The host's domains are a question for the host's servers.
        case "search", "domain": return !hasServers && !hasDomains
        case "options", "sortlist": return true
        default: return false
        }
    }
}

extension SearchDomain {
    /// It says where names are asked for and is not appended to any.
    var isRoutingOnly: Bool { description.hasPrefix("~") }
    /// Without the mark of a routing domain; "." for all.
    var name: String { isRoutingOnly ? String(description.dropFirst()) : description }
}

// MARK: text

extension DNSSettings {
    /// Lines `server ADDRESS` and `domain NAME`.
    var lines: [UInt8] {
        var text: [UInt8] = []
        for server in servers {
            text += Array("server ".utf8)
            server.append(to: &text)
            text.append(UInt8(ascii: "\n"))
        }
        for domain in searchDomains { text += Array("domain \(domain)\n".utf8) }
        return text
    }

    /// Takes one of these lines; false: it is none.
    mutating func read(_ line: [UInt8]) -> Bool {
        if line.starts(with: Array("server ".utf8)) {
            guard let server = DNSServer(line.span.extracting(7...)) else { return false }
            servers.append(server)
        } else if line.starts(with: Array("domain ".utf8)) {
            guard let domain = SearchDomain(line.span.extracting(7...)) else { return false }
            searchDomains.append(domain)
        } else {
            return false
        }
        return true
    }
}

extension ResolvConfState {
    private static let heading = "nexusguard resolv.conf 1"

    /// For the state file; lengths stand before what may hold any byte.
    var serialised: [UInt8] {
        var text = Array("\(Self.heading)\n".utf8)
        func append(_ line: String, _ bytes: [UInt8]) {
            text += Array("\(line) \(bytes.count)\n".utf8) + bytes + [UInt8(ascii: "\n")]
        }
        switch original {
        case .absent: text += Array("absent\n".utf8)
        case .file(let bytes, let mode, let user, let group):
            append("file \(mode) \(user) \(group)", bytes)
        case .link(let target, let bytes):
            append("link", Array(target.utf8))
            append("content", bytes)
        }
        for content in written { append("written", content) }
        for tunnel in tunnels {
            text += Array("tunnel \(tunnel.name)\n".utf8) + tunnel.settings.lines
        }
        return text + Array("end\n".utf8)
    }

    /// nil: not what `serialised` writes.
    init?(_ bytes: [UInt8]) {
        var reader = StateReader(bytes: bytes)
        guard reader.line() == Self.heading, let original = reader.original() else { return nil }
        self.init(original: original)
        while let line = reader.line() {
            let words = line.split(separator: " ").map(String.init)
            if line == "end" { return }
            switch (words.first, words.count) {
            case ("written", 2):
                guard let content = reader.bytes(words[1]) else { return nil }
                written.append(content)
            case ("tunnel", 2):
                guard let name = InterfaceName(words[1]) else { return nil }
                tunnels.append(Tunnel(name: name, settings: DNSSettings()))
            default:
                guard !tunnels.isEmpty,
                    tunnels[tunnels.count - 1].settings.read(Array(line.utf8))
                else { return nil }
            }
        }
        return nil
    }
}

private struct StateReader {
    let bytes: [UInt8]
    private var position = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    mutating func line() -> String? {
        guard let end = bytes[position...].firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        defer { position = end + 1 }
        return String(decoding: bytes[position..<end], as: UTF8.self)
    }

    /// As many as `count` says, and the end of the line after them.
    mutating func bytes(_ count: String) -> [UInt8]? {
        guard let count = Int(count), count >= 0, count < bytes.count - position,
            bytes[position + count] == UInt8(ascii: "\n")
        else { return nil }
        defer { position += count + 1 }
        return Array(bytes[position..<position + count])
    }

    mutating func original() -> ResolvConfEntry? {
        guard let words = line()?.split(separator: " ").map(String.init) else { return nil }
        switch (words.first, words.count) {
        case ("absent", 1): return .absent
        case ("file", 5):
            guard let mode = UInt32(words[1]), let user = UInt32(words[2]),
                let group = UInt32(words[3]), let content = bytes(words[4])
            else { return nil }
            return .file(bytes: content, mode: mode, user: user, group: group)
        case ("link", 2):
            guard let target = bytes(words[1]),
                let next = line()?.split(separator: " ").map(String.init), next.count == 2,
                next[0] == "content", let content = bytes(next[1])
            else { return nil }
            return .link(target: String(decoding: target, as: UTF8.self), bytes: content)
        default: return nil
        }
    }
}
