// SPDX-License-Identifier: Apache-2.0
// What is accepted, line by line, strictly and leniently. The lenient column was compared with what
// wg 1.0.20210914 sends for the same file.
import TestSupport
import Testing

@testable import WireGuard

typealias Cause = ConfigurationDiagnostic.Cause

let key1 = PublicKey(filledWith: 1).base64
let key2 = PublicKey(filledWith: 2).base64

func parse(_ text: String, lenient: Bool = false) throws(ConfigurationError)
    -> ConfigurationFile.Parsed
{
    let bytes = [UInt8](text.utf8)
    return try ConfigurationFile.parse(bytes.span, file: "wg0.conf", lenient: lenient)
}

/// The settings of the file, without the keys every row has, on one line.
private func summary(_ configuration: ConfigurationFile) -> String {
    let boring = ["[Interface]", "PrivateKey = " + key1, "PublicKey = " + key2, ""]
    return String(decoding: configuration.write(), as: UTF8.self)
        .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        .filter { !boring.contains($0) }.joined(separator: "; ")
}

private enum Outcome: Equatable, CustomStringConvertible {
    case reads(String)
    case warns(String, [Cause])
    case refused([Cause])

    init(_ text: String, lenient: Bool) {
        do throws(ConfigurationError) {
            let parsed = try parse(text, lenient: lenient)
            let summary = summary(parsed.configuration)
            let causes = parsed.warnings.map(\.cause)
            self = causes.isEmpty ? .reads(summary) : .warns(summary, causes)
        } catch {
            self = .refused(error.diagnostics.map(\.cause))
        }
    }

    var description: String {
        switch self {
        case .reads(let summary): "reads \(summary)"
        case .warns(let summary, let causes): "warns \(summary) \(causes.map(\.message))"
        case .refused(let causes): "refused \(causes.map(\.message))"
        }
    }
}

private struct Row {
    let text: String
    let strict: Outcome
    let lenient: Outcome

    init(_ text: String, _ strict: Outcome, lenient: Outcome? = nil) {
        self.text = text
        self.strict = strict
        self.lenient = lenient ?? strict
    }
}

private let interface = "[Interface]\nPrivateKey = \(key1)\n"
private let peer = interface + "[Peer]\nPublicKey = \(key2)\n"

private let textRows: [Row] = [
    Row(peer.split(separator: "\n").joined(separator: "\r\n"), .reads("[Peer]")),
    Row(peer.lowercasedNames, .reads("[Peer]")),
    Row(interface + "\t[ Peer ]\u{B}\nPublicKey=\(key2)", .reads("[Peer]")),
    Row(interface + "[Peer] # laptop\nPublicKey=\(key2)#x", .reads("[Peer]")),
    Row(
        interface + "Listen Port = 5", .refused([.misspelled(.listenPort)]),
        lenient: .reads("ListenPort = 5")),
    Row(
        "[Interface]\nPrivateKey = \(key1.prefix(9)) \(key1.dropFirst(9))",
        .refused([.blankInside]), lenient: .reads("")),
    Row("\u{FEFF}" + peer, .reads("[Peer]")),
    Row(interface + "; comment", .refused([.semicolon])),
    Row(peer + "AllowedIPs =\u{A0}10.0.0.1", .refused([.prefix])),
    Row("[Interface]\nPrivateKey =\u{A0}\(key1)", .refused([.invisible])),
    Row(interface + "ListenPort\u{FF1D}5", .refused([.notSetting])),
    Row("PrivateKey = \(key1)\n" + interface, .refused([.outside])),
    Row(interface + "[Router]\nFoo = 1", .refused([.unknownSection])),
    Row(interface + "[Peer] x\nPublicKey = \(key2)", .refused([.unknownSection])),
    Row(interface + "Address = 10.0.0.1/24", .reads("Address = 10.0.0.1/24")),
    Row(interface + "Jc = 4", .warns("Jc = 4", [.unknownName])),
    Row(
        interface + "ListenPort = 5\0x", .refused([.nul]),
        lenient: .warns("ListenPort = 5", [.nulCut])),
    Row(interface + "PostUp = a\0b", .refused([.nul])),
    Row("", .refused([.empty])),
    Row("# nothing\n\n", .refused([.empty])),
    Row("[Interface]\n", .refused([.missingPrivateKey]), lenient: .warns("", [.missingPrivateKey])),
    Row(
        "[Peer]\nPublicKey = \(key2)", .refused([.missingInterface]), lenient: .reads("[Peer]")),
    Row(interface + "[Peer]\nAllowedIPs = 10.0.0.0/8", .refused([.missingPublicKey])),
    Row(interface + "AllowedIPs = 10.0.0.0/8", .refused([.wrongSection(.allowedIPs)])),
    Row(peer + "ListenPort = 5", .refused([.wrongSection(.listenPort)])),
    Row(
        interface + "[P eer]\nPublicKey = \(key2)", .refused([.unknownSection]),
        lenient: .reads("[Peer]")),
    Row(interface + "[", .refused([.unknownSection])),
    Row(interface + key1, .refused([.badName])),
    Row(interface + "PresharedKey \(key1)", .refused([.badName])),
    Row(interface + "nonsense", .refused([.notSetting])),
]

private let valueRows: [Row] = [
    Row("[Interface]\nPrivateKey =", .refused([.emptyValue(.privateKey)])),
    Row(interface + "[Peer]\nPublicKey =", .refused([.emptyValue(.publicKey)])),
    Row(peer + "PresharedKey = # none", .refused([.emptyValue(.presharedKey)])),
    Row("[Interface]\nPrivateKey = (none)", .refused([.key(.length(6))])),
    Row("[Interface]\nPrivateKey = \(key1.dropLast())", .refused([.key(.length(43))])),
    Row(
        "[Interface]\nPrivateKey = \(key1.dropLast(2))F=", .refused([.key(.notCanonical)])),
    Row(
        "[Interface]\nPrivateKey = \(String(repeating: "A", count: 43))=", .refused([.zeroKey]),
        lenient: .warns("PrivateKey = \(String(repeating: "A", count: 43))=", [.zeroKey])),
    Row(interface + "ListenPort = 0", .reads("ListenPort = 0")),
    Row(
        interface + "ListenPort = 70000", .refused([.port]),
        lenient: .warns("ListenPort = 4464", [.wrappedPort(4464)])),
    Row(
        interface + "ListenPort = 4294967297", .refused([.port]),
        lenient: .warns("ListenPort = 1", [.wrappedPort(1)])),
    Row(interface + "ListenPort = 2147483648", .refused([.port])),
    Row(interface + "ListenPort = domain", .refused([.port])),
    Row(interface + "ListenPort = -1", .refused([.port])),
    Row(interface + "ListenPort = 0x50", .refused([.port])),
    Row(interface + "FwMark = oFF", .reads("FwMark = off")),
    Row(interface + "FwMark = 0", .reads("FwMark = off")),
    Row(interface + "FwMark = 010", .reads("FwMark = 0xa")),
    Row(interface + "FwMark = 0xCA6C", .reads("FwMark = 0xca6c")),
    Row(interface + "FwMark = 0XCA6C", .reads("FwMark = 0xca6c")),
    Row(interface + "FwMark = 0x", .refused([.fwmark])),
    Row(interface + "FwMark = 4294967296", .refused([.fwmark])),
    Row(peer + "PersistentKeepalive = OFF", .reads("[Peer]; PersistentKeepalive = 0")),
    Row(peer + "PersistentKeepalive = 65535", .reads("[Peer]; PersistentKeepalive = 65535")),
    Row(peer + "PersistentKeepalive = 25s", .refused([.keepalive])),
    Row(peer + "PersistentKeepalive = 70000", .refused([.keepalive])),
    Row(
        interface + "ListenPort = 1\nListenPort = 2",
        .refused([.duplicate(.listenPort, line: 3)]),
        lenient: .warns("ListenPort = 2", [.duplicate(.listenPort, line: 3)])),
    Row(
        interface + "[Interface]\nListenPort = 2", .refused([.duplicateInterface(line: 1)]),
        lenient: .warns("ListenPort = 2", [.duplicateInterface(line: 1)])),
    Row(
        peer + "[Peer]\nPublicKey = \(key2)", .refused([.duplicatePeer(line: 3)]),
        lenient: .warns("[Peer]; [Peer]", [.duplicatePeer(line: 3)])),
    Row(interface + "MTU = 67", .refused([.mtu])),
    Row(interface + "MTU = 1420", .reads("MTU = 1420")),
    Row(interface + "Table = Off", .reads("Table = off")),
    Row(interface + "Table = auto", .reads("Table = auto")),
    Row(interface + "Table = 51820", .reads("Table = 51820")),
    Row(interface + "Table = vpn", .reads("Table = vpn")),
    Row(interface + "Table = 0", .refused([.table])),
    Row(interface + "Table = a b", .refused([.blankInside])),
    Row(interface + "SaveConfig = True", .reads("SaveConfig = true")),
    Row(interface + "SaveConfig = 1", .refused([.boolean])),
]

private let addressRows: [Row] = [
    Row(peer + "AllowedIPs =", .reads("[Peer]")),
    Row(peer + "AllowedIPs = 10.0.0.0/8,", .refused([.emptyElement])),
    Row(peer + "AllowedIPs = 10.0.0.0/8,,10.0.0.1", .refused([.emptyElement])),
    Row(
        peer + "AllowedIPs = 10.0.0.1, fd00::1",
        .reads("[Peer]; AllowedIPs = 10.0.0.1/32, fd00::1/128")),
    Row(peer + "AllowedIPs = 10.0.0.1/24", .warns("[Peer]; AllowedIPs = 10.0.0.0/24", [.hostBits])),
    Row(peer + "AllowedIPs = +10.0.0.1", .refused([.signedPrefix])),
    Row(peer + "AllowedIPs = -10.0.0.1", .refused([.signedPrefix])),
    Row(
        peer + "AllowedIPs = ::ffff:10.0.0.1/128",
        .reads("[Peer]; AllowedIPs = ::ffff:10.0.0.1/128")),
    Row(peer + "AllowedIPs = fe80::1%lo", .refused([.prefix])),
    Row(peer + "AllowedIPs = 010.0.0.1", .refused([.prefix])),
    Row(peer + "AllowedIPs = localhost", .refused([.prefix])),
    Row(peer + "AllowedIPs = 10.0.0.0/33", .refused([.prefix])),
    Row(
        peer + "AllowedIPs = 10.0.0.0/024", .refused([.prefix]),
        lenient: .reads("[Peer]; AllowedIPs = 10.0.0.0/24")),
    Row(
        peer + "AllowedIPs = 10.0. 0.0/24", .refused([.blankInside]),
        lenient: .reads("[Peer]; AllowedIPs = 10.0.0.0/24")),
    Row(
        peer + "AllowedIPs = 10.0.0.0/24 10.1.0.0/24", .refused([.blankInside]),
        lenient: .refused([.prefix])),
    Row(
        interface + "Address = 10.0.0.1/24 fd00::1/64\nDNS = 1.1.1.1 lan",
        .reads("Address = 10.0.0.1/24, fd00::1/64; DNS = 1.1.1.1; DNS = lan")),
    Row(interface + "Address =\nDNS =\nPostUp =", .reads("")),
    Row(interface + "DNS = 1.1.1.1,", .refused([.emptyElement]), lenient: .reads("DNS = 1.1.1.1")),
    Row(
        interface + "DNS = fe80::1%eth0, ~., ~corp.example",
        .reads("DNS = fe80::1%eth0; DNS = ~., ~corp.example")),
    Row(interface + "DNS = 1.1.1", .refused([.dns])),
    Row(peer + "Endpoint = 10.0.0.1", .refused([.endpointPort])),
    Row(peer + "Endpoint = 10.0.0.1:", .refused([.endpointPort])),
    Row(peer + "Endpoint = [2001:db8::1]", .refused([.endpointPort])),
    Row(
        peer + "Endpoint = 2001:db8::1:51820", .reads("[Peer]; Endpoint = [2001:db8::1]:51820")),
    Row(peer + "Endpoint = [fe80::1%lo]:5", .reads("[Peer]; Endpoint = [fe80::1%lo]:5")),
    Row(
        peer + "Endpoint = 10.0.0.1:0", .refused([.zeroPort]),
        lenient: .warns("[Peer]; Endpoint = 10.0.0.1:0", [.zeroPort])),
    Row(
        peer + "Endpoint = vpn.example:0", .refused([.zeroPort]),
        lenient: .warns("[Peer]; Endpoint = vpn.example:0", [.zeroPort])),
    Row(peer + "Endpoint = vpn.example:domain", .refused([.port])),
    Row(
        peer + "Endpoint = 10.0.0.1:70000", .refused([.port]),
        lenient: .warns("[Peer]; Endpoint = 10.0.0.1:4464", [.wrappedPort(4464)])),
    Row(peer + "Endpoint = vpn_1.example.:5", .reads("[Peer]; Endpoint = vpn_1.example.:5")),
    Row(
        peer + "Endpoint = [10.0.0.1]:5", .refused([.endpoint]),
        lenient: .reads("[Peer]; Endpoint = 10.0.0.1:5")),
    Row(
        peer + "Endpoint = 010.0.0.1:5", .refused([.endpoint]),
        lenient: .reads("[Peer]; Endpoint = 010.0.0.1:5")),
    Row(
        peer + "Endpoint = 0x7f000001:5", .refused([.endpoint]),
        lenient: .reads("[Peer]; Endpoint = 0x7f000001:5")),
    Row(
        peer + "Endpoint = exa mple:5", .refused([.blankInside]),
        lenient: .reads("[Peer]; Endpoint = example:5")),
    Row(peer + "Endpoint = ex\u{E4}mple:5", .refused([.endpoint])),
]

extension String {
    /// The text in lower case up to the first `=` of each line.
    fileprivate var lowercasedNames: String {
        split(separator: "\n").map { line in
            let end = line.firstIndex(of: "=") ?? line.endIndex
            return line[..<end].lowercased() + line[end...]
        }.joined(separator: "\n")
    }
}

@Suite struct ConfigurationTableTests {
    private func check(_ rows: [Row]) {
        for row in rows {
            let strict = Outcome(row.text, lenient: false)
            hold(strict == row.strict, "strict \(row.text.debugDescription): \(strict)")
            let lenient = Outcome(row.text, lenient: true)
            hold(lenient == row.lenient, "lenient \(row.text.debugDescription): \(lenient)")
        }
    }

    @Test func c01_to_c10_lines_and_sections() { check(textRows) }
    @Test func c04_c12_to_c15_keys_and_numbers() { check(valueRows) }
    @Test func c03_c16_to_c20_addresses_and_endpoints() { check(addressRows) }

    @Test func lenient_accepts_whatever_is_accepted_strictly_and_means_the_same() {
        for row in textRows + valueRows + addressRows {
            if case .refused = row.strict { continue }
            hold(row.strict == row.lenient, row.text.debugDescription)
        }
    }
}
