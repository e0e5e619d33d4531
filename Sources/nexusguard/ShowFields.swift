// SPDX-License-Identifier: Apache-2.0
// The forms of `wg show` for programs: one field, or dump; and JSON.
import WireGuard

/// What can be asked for by name, as wg(8) calls it.
enum ShowField: String, CaseIterable {
    case publicKey = "public-key"
    case privateKey = "private-key"
    case listenPort = "listen-port"
    case fwmark
    case peers
    case presharedKeys = "preshared-keys"
    case endpoints
    case allowedIPs = "allowed-ips"
    case latestHandshakes = "latest-handshakes"
    case transfer
    case persistentKeepalive = "persistent-keepalive"
    case dump
}

/// The lines of one field. Holds keys: the caller erases it.
struct ShowLines {
    private(set) var bytes: [UInt8] = []

    /// `showsName`: every line begins with the tunnel's name and a tab.
    init(_ devices: [ShownDevice], _ field: ShowField, showsName: Bool) {
        bytes.reserveCapacity(room(for: devices, perPeer: 512, perPrefix: 64))
        for shown in devices { append(shown, field, prefix: showsName ? shown.name + "\t" : "") }
    }

    private mutating func append(_ shown: ShownDevice, _ field: ShowField, prefix: String) {
        let device = shown.device
        if isOfInterface(field) || field == .dump { bytes.append(prefix) }
        switch field {
        case .publicKey: end { $0.append(device.publicKey) }
        case .privateKey: end { $0.append(device.privateKey) }
        case .listenPort: end { $0.bytes.append(decimal: UInt64(device.listenPort)) }
        case .fwmark: end { $0.append(fwmark: device.fwmark) }
        case .dump:
            end { text in
                text.append(device.privateKey)
                text.tab()
                text.append(device.publicKey)
                text.tab()
                text.bytes.append(decimal: UInt64(device.listenPort))
                text.tab()
                text.append(fwmark: device.fwmark)
            }
            for peer in device.peers { appendDump(peer, prefix: prefix) }
        default:
            for peer in device.peers { append(peer, field, prefix: prefix) }
        }
    }

    private func isOfInterface(_ field: ShowField) -> Bool {
        switch field {
        case .publicKey, .privateKey, .listenPort, .fwmark: true
        default: false
        }
    }

    private mutating func append(_ peer: PeerSnapshot, _ field: ShowField, prefix: String) {
        bytes.append(prefix)
        bytes.append(peer.publicKey.base64)
        if field != .peers { tab() }
        end { text in
            switch field {
            case .presharedKeys: text.append(peer.presharedKey)
            case .endpoints: text.append(peer.endpoint)
            case .allowedIPs: text.append(peer.prefixes, separator: " ")
            case .latestHandshakes: text.append(handshake: peer)
            case .transfer: text.append(transfer: peer)
            case .persistentKeepalive: text.append(keepalive: peer.keepalive)
            default: break
            }
        }
    }

    private mutating func appendDump(_ peer: PeerSnapshot, prefix: String) {
        bytes.append(prefix)
        bytes.append(peer.publicKey.base64)
        tab()
        append(peer.presharedKey)
        tab()
        append(peer.endpoint)
        tab()
        append(peer.prefixes, separator: ",")
        tab()
        append(handshake: peer)
        tab()
        append(transfer: peer)
        tab()
        end { $0.append(keepalive: peer.keepalive) }
    }

    // MARK: values

    private mutating func append(_ key: PublicKey?) { bytes.append(key?.base64 ?? "(none)") }

    private mutating func append(_ key: (some Secret)?) {
        guard let key, !key.isZero else { return bytes.append("(none)") }
        key.appendBase64(to: &bytes)
    }

    private mutating func append(fwmark: UInt32) {
        bytes.append(fwmark == 0 ? "off" : "0x" + String(fwmark, radix: 16))
    }

    private mutating func append(_ endpoint: Endpoint?) {
        guard let endpoint else { return bytes.append("(none)") }
        endpoint.append(to: &bytes)
    }

    private mutating func append(_ prefixes: [Prefix], separator: String) {
        if prefixes.isEmpty { bytes.append("(none)") }
        for (index, prefix) in prefixes.enumerated() {
            if index > 0 { bytes.append(separator) }
            prefix.append(to: &bytes)
        }
    }

    private mutating func append(handshake peer: PeerSnapshot) {
        bytes.append(decimal: UInt64(max(0, peer.lastHandshakeSeconds)))
    }

    private mutating func append(transfer peer: PeerSnapshot) {
        bytes.append(decimal: peer.receivedBytes)
        tab()
        bytes.append(decimal: peer.sentBytes)
    }

    private mutating func append(keepalive: UInt16) {
        if keepalive == 0 {
            bytes.append("off")
        } else {
            bytes.append(decimal: UInt64(keepalive))
        }
    }

    private mutating func tab() { bytes.append("\t") }

    private mutating func end(_ value: (inout ShowLines) -> Void) {
        value(&self)
        bytes.append("\n")
    }
}

/// The document of `show --json`. No secret is ever in it: monitoring has no use for keys.
func showJSON(_ devices: [ShownDevice]) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.number("schemaVersion", 1)
    writer.beginObject("interfaces")
    for shown in devices {
        let device = shown.device
        writer.beginObject(shown.name)
        if let key = device.publicKey { writer.string("publicKey", key.base64) }
        writer.bool("hasPrivateKey", device.privateKey.map { !$0.isZero } ?? false)
        if device.listenPort != 0 { writer.number("listenPort", UInt64(device.listenPort)) }
        if device.fwmark != 0 { writer.number("fwmark", UInt64(device.fwmark)) }
        writer.beginObject("peers")
        for peer in device.peers { writer.peer(peer) }
        writer.endObject()
        writer.endObject()
    }
    writer.endObject()
    writer.endObject()
    return writer.text + [UInt8(ascii: "\n")]
}

extension JSONWriter {
    fileprivate mutating func peer(_ peer: PeerSnapshot) {
        beginObject(peer.publicKey.base64)
        bool("hasPresharedKey", peer.presharedKey.map { !$0.isZero } ?? false)
        if let endpoint = peer.endpoint { string("endpoint", endpoint.description) }
        if peer.lastHandshakeSeconds > 0 {
            number("latestHandshake", UInt64(peer.lastHandshakeSeconds))
        }
        number("transferRx", peer.receivedBytes)
        number("transferTx", peer.sentBytes)
        if peer.keepalive != 0 { number("persistentKeepalive", UInt64(peer.keepalive)) }
        beginArray("allowedIPs")
        for prefix in peer.prefixes { string(nil, prefix.description) }
        endArray()
        endObject()
    }
}
