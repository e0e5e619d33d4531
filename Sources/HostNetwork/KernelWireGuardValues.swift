// SPDX-License-Identifier: Apache-2.0
// Between the values of WireGuard and the structs of netlink.h. Every copy of a key that is made
// here is erased here; explicit_bzero(3) is never optimised away.
import CNetlink
import Glibc
import WireGuard

// MARK: in

/// What one set request says, in C's structs.
@safe struct PackedChanges: ~Copyable {
    private var device = netlink_wireguard_change()
    private var peers: [netlink_wireguard_peer_change] = []
    private var prefixes: [netlink_wireguard_prefix_change] = []
    /// Whether a single prefix is taken from a peer, which older kernels cannot.
    private(set) var takesPrefixes = false

    /// Throws for an endpoint whose zone is no interface (C17).
    init(
        device change: DeviceChange, peers changes: [PeerChange], replacePeers: Bool
    ) throws(NetworkError) {
        device = netlink_wireguard_change(change, replacePeers: replacePeers)
        // At once: an array that grows leaves copies of keys behind.
        peers.reserveCapacity(changes.count)
        prefixes.reserveCapacity(changes.reduce(0) { $0 + $1.prefixes.count })
        do {
            for change in changes { try append(change) }
        } catch {
            erase()
            throw error
        }
    }

    private mutating func append(_ change: PeerChange) throws(NetworkError) {
        var peer = try netlink_wireguard_peer_change(change)
        peer.first_prefix = prefixes.count
        peer.prefix_count = change.prefixes.count
        peers.append(peer)
        unsafe eraseKeys(&peer)
        for entry in change.prefixes {
            var prefix = netlink_wireguard_prefix_change()
            prefix.prefix = netlink_address(entry.prefix)
            prefix.remove = entry.remove
            prefixes.append(prefix)
            if entry.remove, !change.remove { takesPrefixes = true }
        }
    }

    /// The pointer is valid during `body` only.
    func send(_ body: (UnsafePointer<netlink_wireguard_changes>) -> Int32) -> Int32 {
        unsafe peers.withUnsafeBufferPointer { peers in
            unsafe prefixes.withUnsafeBufferPointer { prefixes in
                var changes = unsafe netlink_wireguard_changes(
                    device: device, peers: peers.baseAddress, peer_count: peers.count,
                    prefixes: prefixes.baseAddress, prefix_count: prefixes.count)
                defer { unsafe eraseKeys(&changes.device) }
                return unsafe body(&changes)
            }
        }
    }

    mutating func erase() {
        unsafe eraseKeys(&device)
        unsafe peers.withUnsafeMutableBytes { bytes in
            guard let start = bytes.baseAddress else { return }
            unsafe explicit_bzero(start, bytes.count)
        }
    }
}

@unsafe private func eraseKeys<Value: BitwiseCopyable>(_ value: inout Value) {
    unsafe withUnsafeMutableBytes(of: &value) {
        unsafe explicit_bzero($0.baseAddress!, $0.count)
    }
}

extension netlink_wireguard_change {
    fileprivate init(_ change: DeviceChange, replacePeers: Bool) {
        self.init()
        if replacePeers { fields |= NETLINK_WIREGUARD_REPLACE_PEERS.rawValue }
        if let key = change.privateKey {
            fields |= NETLINK_WIREGUARD_PRIVATE_KEY.rawValue
            key.withBytes { unsafe copy($0, to: &private_key) }
        }
        if let port = change.listenPort {
            fields |= NETLINK_WIREGUARD_LISTEN_PORT.rawValue
            listen_port = port
        }
        if let mark = change.fwmark {
            fields |= NETLINK_WIREGUARD_FWMARK.rawValue
            fwmark = mark
        }
    }
}

extension netlink_wireguard_peer_change {
    fileprivate init(_ change: PeerChange) throws(NetworkError) {
        self.init()
        let key = change.publicKey.bytes
        unsafe copy(key.span, to: &public_key)
        if change.remove { fields |= NETLINK_WIREGUARD_PEER_REMOVE.rawValue }
        if change.updateOnly { fields |= NETLINK_WIREGUARD_PEER_UPDATE_ONLY.rawValue }
        if change.replaceAllowedIPs { fields |= NETLINK_WIREGUARD_PEER_REPLACE_PREFIXES.rawValue }
        if let endpoint = change.endpoint {
            fields |= NETLINK_WIREGUARD_PEER_ENDPOINT.rawValue
            self.endpoint = try netlink_endpoint(endpoint)
        }
        if let keepalive = change.keepalive {
            fields |= NETLINK_WIREGUARD_PEER_KEEPALIVE.rawValue
            self.keepalive = keepalive
        }
        if let key = change.presharedKey {
            fields |= NETLINK_WIREGUARD_PEER_PRESHARED_KEY.rawValue
            key.withBytes { unsafe copy($0, to: &preshared_key) }
        }
    }
}

extension netlink_endpoint {
    /// A zone means nothing but for a link-local address and is dropped elsewhere.
    fileprivate init(_ endpoint: Endpoint) throws(NetworkError) {
        self.init()
        family = endpoint.address.netlinkFamily
        unsafe copy(endpoint.address.netlinkBytes.span, to: &bytes)
        port = endpoint.port
        guard endpoint.address.isLinkLocal else { return }
        switch endpoint.zone {
        case .index(let index): scope_id = index
        case .name(let name):
            scope_id = unsafe if_nametoindex(name)
            guard scope_id != 0 else {
                throw NetworkError(
                    .notFound, errno: ENODEV,
                    "cannot set endpoint \(endpoint): there is no interface \(name)")
            }
        case nil: break
        }
    }
}

// MARK: out

@unsafe private func publicKey<Bytes>(_ source: inout Bytes) -> PublicKey {
    unsafe withUnsafeBytes(of: &source) { source in
        var bytes = InlineArray<32, UInt8>(repeating: 0)
        for index in bytes.indices { bytes[index] = unsafe source[index] }
        return PublicKey(bytes: bytes)
    }
}

/// nil for the key that means "none".
@unsafe private func secret<Key: Secret, Bytes>(_ source: inout Bytes) -> Key? {
    let key = unsafe withUnsafeBytes(of: &source) {
        Key(copying: unsafe $0.bindMemory(to: UInt8.self).span)
    }
    return key.isZero ? nil : key
}

extension DeviceSnapshot {
    @unsafe init(_ device: inout netlink_wireguard_device) {
        self.init()
        if unsafe device.has_private_key {
            privateKey = unsafe secret(&device.private_key)
            if privateKey != nil { publicKey = unsafe HostNetwork.publicKey(&device.public_key) }
        }
        listenPort = unsafe device.listen_port
        fwmark = unsafe device.fwmark
        peers.reserveCapacity(unsafe device.peer_count)
        for index in 0..<(unsafe device.peer_count) {
            peers.append(unsafe PeerSnapshot(device.peers + index))
        }
    }
}

extension PeerSnapshot {
    @unsafe fileprivate init(_ peer: UnsafeMutablePointer<netlink_wireguard_peer>) {
        self.init(publicKey: unsafe HostNetwork.publicKey(&peer.pointee.public_key))
        presharedKey = unsafe secret(&peer.pointee.preshared_key)
        endpoint = Endpoint(unsafe peer.pointee.endpoint)
        lastHandshakeSeconds = unsafe peer.pointee.last_handshake_seconds
        lastHandshakeNanoseconds = unsafe peer.pointee.last_handshake_nanoseconds
        receivedBytes = unsafe peer.pointee.rx_bytes
        sentBytes = unsafe peer.pointee.tx_bytes
        keepalive = unsafe peer.pointee.keepalive
        let list = unsafe UnsafeBufferPointer(
            start: peer.pointee.prefixes, count: peer.pointee.prefix_count)
        prefixes = unsafe list.compactMap { Prefix($0) }
    }
}

extension Endpoint {
    fileprivate init?(_ endpoint: netlink_endpoint) {
        var endpoint = endpoint
        guard let address = unsafe IPAddress(&endpoint.bytes, family: endpoint.family) else {
            return nil
        }
        self.init(
            address: address, port: endpoint.port,
            zone: endpoint.scope_id == 0 ? nil : .index(endpoint.scope_id))
    }
}
