// SPDX-License-Identifier: Apache-2.0

/// Appends the answer to `get=1`, without its errno line: exactly the keys that `wg` knows, in the
/// order of the reference; numbers decimal, prefixes with their length (C102).
func appendUAPI(_ device: DeviceSnapshot, to text: inout [UInt8]) {
    // Room for all of it: growing would leave copies of keys in freed memory. A peer's fixed lines
    // are below 512 bytes, a prefix line below 64.
    let prefixes = device.peers.reduce(0) { $0 + $1.prefixes.count }
    text.reserveCapacity(text.count + 256 + 512 * device.peers.count + 64 * prefixes)

    if let key = device.privateKey, !key.isZero {
        text.append("private_key=")
        key.appendHex(to: &text)
        text.append(UInt8(ascii: "\n"))
    }
    if device.listenPort != 0 { text.append(uapi: "listen_port=", UInt64(device.listenPort)) }
    if device.fwmark != 0 { text.append(uapi: "fwmark=", UInt64(device.fwmark)) }
    for peer in device.peers { append(peer, to: &text) }
}

private func append(_ peer: PeerSnapshot, to text: inout [UInt8]) {
    text.append("public_key=")
    Hex.append(peer.publicKey.bytes, to: &text)
    text.append("\npreshared_key=")
    if let key = peer.presharedKey {
        key.appendHex(to: &text)
    } else {
        text.append(contentsOf: repeatElement(0x30, count: 2 * keyLength))
    }
    text.append("\nprotocol_version=1\n")
    if let endpoint = peer.endpoint {
        text.append("endpoint=")
        endpoint.append(to: &text)
        text.append(UInt8(ascii: "\n"))
    }
    text.append(uapi: "last_handshake_time_sec=", UInt64(max(0, peer.lastHandshakeSeconds)))
    text.append(uapi: "last_handshake_time_nsec=", UInt64(peer.lastHandshakeNanoseconds))
    text.append(uapi: "tx_bytes=", peer.sentBytes)
    text.append(uapi: "rx_bytes=", peer.receivedBytes)
    text.append(uapi: "persistent_keepalive_interval=", UInt64(peer.keepalive))
    for prefix in peer.prefixes {
        text.append("allowed_ip=")
        prefix.append(to: &text)
        text.append(UInt8(ascii: "\n"))
    }
}
