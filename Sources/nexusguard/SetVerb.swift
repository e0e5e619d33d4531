// SPDX-License-Identifier: Apache-2.0
import HostProcess
import WireGuard

let setVerb = Verb(
    name: "set", operands: "IFNAME SETTING...", operandCount: 2...Int.max,
    summary: "Change a running tunnel, as wg set does.",
    details: """
        SETTING is of the interface:
          listen-port PORT | fwmark MARK | private-key FILE
        or of a peer:
          peer KEY [remove] [preshared-key FILE] [endpoint ADDRESS:PORT]
                   [persistent-keepalive SECONDS | off] [allowed-ips [+|-]PREFIX,...]
        What is set here is lost with the tunnel, unless `\(programName) save` writes it down.
        """,
    optionsEndAtOperand: true,
    completes: [
        .running,
        .words([
            "listen-port", "fwmark", "private-key", "peer", "remove", "preshared-key", "endpoint",
            "persistent-keepalive", "allowed-ips",
        ]), .file,
    ],
    run: set)

private func set(_ invocation: Invocation) throws(Failure) -> UInt8 {
    let name = try interfaceName(invocation.operands[0])
    let change = try SetChange(invocation.operands.dropFirst())
    try RunningTunnels.apply(change.device, change.peers, to: name)
    return ExitCode.ok
}

/// The words after `set IFNAME` as a change.
struct SetChange {
    private(set) var device = DeviceChange()
    private(set) var peers: [PeerChange] = []
    private var rest: ArraySlice<String>

    init(_ words: ArraySlice<String>) throws(Failure) {
        rest = words
        while let word = rest.popFirst() {
            if word == "peer" {
                peers.append(PeerChange(publicKey: try publicKey(next("peer"))))
            } else if peers.isEmpty {
                try readInterface(word)
            } else {
                try readPeer(word)
            }
        }
    }

    private mutating func readInterface(_ word: String) throws(Failure) {
        switch word {
        case "listen-port":
            device.listenPort = UInt16(try number(try next(word), word, maximum: 65535))
        case "fwmark": device.fwmark = try mark(try next(word))
        case "private-key": device.privateKey = try keyFile(try next(word))
        default: throw .usage("\(quoted(word)): no such setting of an interface")
        }
    }

    private mutating func readPeer(_ word: String) throws(Failure) {
        var peer = peers.removeLast()
        switch word {
        case "remove": peer.remove = true
        case "preshared-key": peer.presharedKey = try keyFile(try next(word))
        case "endpoint": peer.endpoint = try endpoint(try next(word))
        case "persistent-keepalive":
            let value = try next(word)
            peer.keepalive =
                value.lowercased() == "off" ? 0 : UInt16(try number(value, word, maximum: 65535))
        case "allowed-ips": try readPrefixes(try next(word), into: &peer)
        default: throw .usage("\(quoted(word)): no such setting of a peer")
        }
        peers.append(peer)
    }

    private mutating func next(_ word: String) throws(Failure) -> String {
        guard let value = rest.popFirst() else { throw .usage("\(word) needs a value") }
        return value
    }

    /// A list replaces what the peer has, unless each of its prefixes has a sign.
    private func readPrefixes(_ list: String, into peer: inout PeerChange) throws(Failure) {
        peer.prefixes = []
        var signed = 0
        for element in list.split(separator: ",", omittingEmptySubsequences: list.isEmpty) {
            let text = element.drop { $0 == " " }
            let hasSign = text.hasPrefix("+") || text.hasPrefix("-")
            guard let prefix = Prefix(String(hasSign ? text.dropFirst() : text)) else {
                throw .usage("allowed-ips: \(quoted(String(text))) is not an address or prefix")
            }
            signed += hasSign ? 1 : 0
            peer.prefixes.append(PrefixChange(prefix, remove: text.hasPrefix("-")))
        }
        guard signed == 0 || signed == peer.prefixes.count else {
            throw .usage("allowed-ips: give a sign to each prefix or to none")
        }
        peer.replaceAllowedIPs = signed == 0
    }
}

// MARK: values

private func publicKey(_ text: String) throws(Failure) -> PublicKey {
    do throws(KeyError) {
        return try PublicKey(base64: text)
    } catch {
        // Somebody may have given the private key: it is not repeated.
        throw .usage("peer: this is not a public key; it has 44 characters of base64")
    }
}

private func number(_ text: String, _ what: String, maximum: UInt64) throws(Failure) -> UInt64 {
    let bytes = [UInt8](text.utf8)
    guard let number = parseDecimal(bytes.span, maximum: maximum) else {
        throw .usage("\(what): \(quoted(text)) is not a number from 0 to \(maximum)")
    }
    return number
}

private func mark(_ text: String) throws(Failure) -> UInt32 {
    let lower = text.lowercased()
    if lower == "off" { return 0 }
    guard lower.hasPrefix("0x") else {
        return UInt32(try number(text, "fwmark", maximum: UInt64(UInt32.max)))
    }
    let digits = lower.dropFirst(2)
    guard digits.utf8.allSatisfy({ 0x30...0x39 ~= $0 || 0x61...0x66 ~= $0 }),
        let mark = UInt32(digits, radix: 16)
    else { throw .usage("fwmark: \(quoted(text)) is not off, a number, or 0x and 1 to 8 digits") }
    return mark
}

private func endpoint(_ text: String) throws(Failure) -> Endpoint {
    guard let endpoint = Endpoint(text), endpoint.port > 0 else {
        throw .usage(
            "endpoint: \(quoted(text)) is not ADDRESS:PORT or [ADDRESS]:PORT; a host name belongs "
                + "into the configuration, where it is resolved again when it changes")
    }
    return endpoint
}

/// The key that a file holds; an empty file stands for none, as /dev/null does for wg.
private func keyFile<Key: Secret>(_ path: String) throws(Failure) -> Key {
    var file = try asking { () throws(HostError) in
        path == "-"
            ? try HostFile.readStandardInput(limit: 4096)
            : try HostFile.read(path, limit: 4096)
    }
    defer { erase(&file.bytes) }
    guard !file.bytes.allSatisfy(isBlank) else {
        return Key(copying: [UInt8](repeating: 0, count: keyLength).span)
    }
    return try secretKey(file.bytes, visible(path))
}
