// SPDX-License-Identifier: Apache-2.0
// What a client of the configuration protocol says
// (https://www.wireguard.com/xplatform/#configuration-protocol).

/// One whole operation, ready to be sent.
public enum UAPIRequest {
    /// Asks for the device's state.
    public static let get = [UInt8]("get=1\n\n".utf8)

    /// The operation that makes these changes. With `replacePeers` the peers not named go, when the
    /// server has read all. Holds keys: the caller erases it.
    ///
    /// A change is written in full even where it says nothing, so an empty one asks whether the
    /// server takes any.
    public static func set(
        device: DeviceChange, peers: [PeerChange], replacePeers: Bool
    ) -> [UInt8] {
        var text: [UInt8] = []
        // Room for all of it: growing would leave copies of keys in freed memory. The device's
        // lines are below 256 bytes, a peer's fixed ones below 512, a prefix line below 64.
        let prefixes = peers.reduce(0) { $0 + $1.prefixes.count }
        text.reserveCapacity(256 + 512 * peers.count + 64 * prefixes)

        text.append("set=1\n")
        append(device, replacePeers, to: &text)
        for peer in peers { append(peer, to: &text) }
        text.append(UInt8(ascii: "\n"))
        return text
    }

    private static func append(
        _ device: DeviceChange, _ replacePeers: Bool, to text: inout [UInt8]
    ) {
        if let key = device.privateKey {
            text.append("private_key=")
            key.appendHex(to: &text)
            text.append(UInt8(ascii: "\n"))
        }
        if let port = device.listenPort { text.append(uapi: "listen_port=", UInt64(port)) }
        if let mark = device.fwmark { text.append(uapi: "fwmark=", UInt64(mark)) }
        if replacePeers { text.append("replace_peers=true\n") }
    }

    private static func append(_ peer: PeerChange, to text: inout [UInt8]) {
        text.append("public_key=")
        Hex.append(peer.publicKey.bytes, to: &text)
        text.append(UInt8(ascii: "\n"))
        // Nothing else about a peer that goes: servers would make it first.
        guard !peer.remove else { return text.append("remove=true\n") }
        if peer.updateOnly { text.append("update_only=true\n") }
        if let key = peer.presharedKey {
            text.append("preshared_key=")
            key.appendHex(to: &text)
            text.append(UInt8(ascii: "\n"))
        }
        if let endpoint = peer.endpoint {
            text.append("endpoint=")
            endpoint.append(to: &text)
            text.append(UInt8(ascii: "\n"))
        }
        if let keepalive = peer.keepalive {
            text.append(uapi: "persistent_keepalive_interval=", UInt64(keepalive))
        }
        if peer.replaceAllowedIPs { text.append("replace_allowed_ips=true\n") }
        for change in peer.prefixes {
            text.append(change.remove ? "allowed_ip=-" : "allowed_ip=")
            change.prefix.append(to: &text)
            text.append(UInt8(ascii: "\n"))
        }
    }
}

extension [UInt8] {
    /// `key`, which ends with `=`, and the number on a line.
    mutating func append(uapi key: String, _ value: UInt64) {
        append(key)
        append(decimal: value)
        append(UInt8(ascii: "\n"))
    }
}
