// SPDX-License-Identifier: Apache-2.0
import TunnelPlan
import WireGuard

/// The device of a tunnel without its secrets: what an agent or a hub that has no privileges may
/// know.
public struct DeviceState: Equatable, Sendable {
    public var backend: BackendKind
    /// nil: it has no key.
    public var publicKey: PublicKey?
    /// 0: none yet.
    public var listenPort: UInt16 = 0
    /// 0: none.
    public var fwmark: UInt32 = 0
    /// Bytes.
    public var mtu: UInt32 = 0
    public var isUp = false
    /// In order of creation. `presharedKey` is nil, whether there is one or not.
    public var peers: [PeerSnapshot] = []

    public init(backend: BackendKind, _ device: DeviceSnapshot = DeviceSnapshot()) {
        self.backend = backend
        publicKey = device.publicKey
        listenPort = device.listenPort
        fwmark = device.fwmark
        mtu = device.mtu
        isUp = device.isUp
        peers = device.peers
        for index in peers.indices { peers[index].presharedKey = nil }
    }
}

extension JSONWriter {
    mutating func write(_ device: DeviceState?) {
        guard let device else { return null("device") }
        beginObject("device")
        string("backend", device.backend.rawValue)
        if let key = device.publicKey { string("publicKey", key.base64) }
        number("listenPort", UInt64(device.listenPort))
        number("fwmark", UInt64(device.fwmark))
        number("mtu", UInt64(device.mtu))
        bool("isUp", device.isUp)
        beginArray("peers")
        for peer in device.peers { write(peer) }
        endArray()
        endObject()
    }

    private mutating func write(_ peer: PeerSnapshot) {
        beginObject()
        string("publicKey", peer.publicKey.base64)
        if let endpoint = peer.endpoint { string("endpoint", endpoint.description) }
        number("latestHandshake", UInt64(max(0, peer.lastHandshakeSeconds)))
        number("receivedBytes", peer.receivedBytes)
        number("sentBytes", peer.sentBytes)
        number("persistentKeepalive", UInt64(peer.keepalive))
        beginArray("allowedIps")
        for prefix in peer.prefixes { string(nil, prefix.description) }
        endArray()
        endObject()
    }
}

// MARK: reading

extension JSONReader {
    /// nil for null.
    mutating func deviceState() throws(JSONError) -> DeviceState? {
        if null() { return nil }
        var device = DeviceState(backend: .userspace)
        try beginObject()
        while let key = try nextKey() {
            switch key {
            case "backend":
                device.backend = try understood(BackendKind(rawValue: try word()), "a back-end")
            case "publicKey": device.publicKey = try publicKey()
            case "listenPort": device.listenPort = UInt16(clamping: try number())
            case "fwmark": device.fwmark = UInt32(clamping: try number())
            case "mtu": device.mtu = UInt32(clamping: try number())
            case "isUp": device.isUp = try bool()
            case "peers":
                try beginArray()
                while try nextElement() { device.peers.append(try peer()) }
            default: try skip()
            }
        }
        return device
    }

    private mutating func peer() throws(JSONError) -> PeerSnapshot {
        var peer = PeerSnapshot(
            publicKey: PublicKey(bytes: InlineArray<32, UInt8>(repeating: 0)))
        try beginObject()
        while let key = try nextKey() {
            switch key {
            case "publicKey": peer.publicKey = try publicKey()
            case "endpoint":
                peer.endpoint = try understood(Endpoint(try word()), "an endpoint")
            case "latestHandshake": peer.lastHandshakeSeconds = Int64(try number())
            case "receivedBytes": peer.receivedBytes = try number()
            case "sentBytes": peer.sentBytes = try number()
            case "persistentKeepalive": peer.keepalive = UInt16(clamping: try number())
            case "allowedIps":
                for text in try strings() {
                    peer.prefixes.append(try understood(Prefix(text), "a prefix"))
                }
            default: try skip()
            }
        }
        return peer
    }

    private mutating func publicKey() throws(JSONError) -> PublicKey {
        try understood(try? PublicKey(base64: try word()), "a public key")
    }

    /// nil when it is an object that describes none. Throws for an unknown member: it could be what
    /// matters.
    mutating func forward() throws(JSONError) -> PortForward? {
        var transport: PortForward.Transport?
        var target: IPAddress?
        var ports: [String: UInt16] = [:]
        var keepsSource = false
        try beginObject()
        while let key = try nextKey() {
            switch key {
            case "protocol": transport = PortForward.Transport(rawValue: try word())
            case "target": target = IPAddress(try word())
            case "publicPort", "publicPortEnd", "targetPort":
                // 0 is no port.
                ports[key] = UInt16(exactly: try number()) ?? 0
            case "keepsSource": keepsSource = try bool()
            default: throw JSONError(offset: 0, reason: "a forward has a member that is unknown")
            }
        }
        guard let transport, let target, let first = ports["publicPort"],
            let targetPort = ports["targetPort"]
        else { return nil }
        return PortForward(
            transport, publicPort: first, publicPortEnd: ports["publicPortEnd"] ?? first,
            target: target, targetPort: targetPort, keepsSource: keepsSource)
    }

    private func understood<Value>(
        _ value: Value?, _ what: String
    ) throws(JSONError) -> Value {
        guard let value else { throw JSONError(offset: 0, reason: "\(what) is expected") }
        return value
    }
}
