// SPDX-License-Identifier: Apache-2.0
// Between the values of WireGuard and the structs of tunnel.h. Unsafe code here only views the
// bytes of a local struct's array member, which Swift imports as a tuple.
import CTunnel
import Glibc
import WireGuard

/// Overwrites a C struct that holds keys; explicit_bzero(3) is never optimised away.
@unsafe func erase<Value: BitwiseCopyable>(_ value: inout Value) {
    unsafe withUnsafeMutableBytes(of: &value) {
        unsafe explicit_bzero($0.baseAddress!, $0.count)
    }
}

@unsafe private func copy<Bytes>(_ source: Span<UInt8>, to target: inout Bytes) {
    unsafe withUnsafeMutableBytes(of: &target) { target in
        for index in 0..<min(source.count, target.count) { unsafe target[index] = source[index] }
    }
}

/// Copies `text` into a zeroed C string array; false when it does not fit or holds a NUL.
@unsafe func copy<Characters>(_ text: String, to target: inout Characters) -> Bool {
    let bytes = [UInt8](text.utf8)
    guard bytes.count < MemoryLayout<Characters>.size, !bytes.contains(0) else { return false }
    unsafe copy(bytes.span, to: &target)
    return true
}

func string(terminated text: [CChar]) -> String {
    String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

// MARK: in

extension tunnel_device_change {
    init(_ change: DeviceChange) {
        self.init()
        if let key = change.privateKey {
            fields |= TUNNEL_DEVICE_PRIVATE_KEY.rawValue
            key.withBytes { unsafe copy($0, to: &private_key) }
        }
        if let port = change.listenPort {
            fields |= TUNNEL_DEVICE_LISTEN_PORT.rawValue
            listen_port = port
        }
        if let mark = change.fwmark {
            fields |= TUNNEL_DEVICE_FWMARK.rawValue
            fwmark = mark
        }
    }
}

extension tunnel_peer_change {
    /// All but the prefixes, which the caller keeps alive.
    init(_ change: PeerChange) throws(UAPIError) {
        unsafe self.init()
        let key = change.publicKey.bytes
        unsafe copy(key.span, to: &public_key)
        var wanted: UInt32 = 0
        if change.remove { wanted |= TUNNEL_PEER_REMOVE.rawValue }
        if change.updateOnly { wanted |= TUNNEL_PEER_UPDATE_ONLY.rawValue }
        if change.replaceAllowedIPs { wanted |= TUNNEL_PEER_REPLACE_ALLOWED_IPS.rawValue }
        if let endpoint = change.endpoint {
            wanted |= TUNNEL_PEER_ENDPOINT.rawValue
            unsafe self.endpoint = try tunnel_endpoint(endpoint)
        }
        if let keepalive = change.keepalive {
            wanted |= TUNNEL_PEER_KEEPALIVE.rawValue
            unsafe self.keepalive = keepalive
        }
        if let key = change.presharedKey {
            wanted |= TUNNEL_PEER_PRESHARED_KEY.rawValue
            key.withBytes { unsafe copy($0, to: &preshared_key) }
        }
        unsafe fields = wanted
    }
}

extension tunnel_prefix {
    init(_ change: PrefixChange) {
        self.init()
        unsafe change.prefix.address.write(to: &address, family: &family)
        length = change.prefix.length
        remove = change.remove
    }
}

extension tunnel_endpoint {
    /// EINVAL for a zone that names no interface (C17). A zone means nothing but for a link-local
    /// address and is dropped elsewhere.
    init(_ endpoint: Endpoint) throws(UAPIError) {
        self.init()
        unsafe endpoint.address.write(to: &address, family: &family)
        port = endpoint.port
        guard endpoint.address.isLinkLocal else { return }
        switch endpoint.zone {
        case .index(let index): scope_id = index
        case .name(let name):
            scope_id = unsafe if_nametoindex(name)
            guard scope_id != 0 else { throw .invalid }
        case nil: break
        }
    }
}

extension IPAddress {
    /// Network byte order; IPv4 in the first four bytes.
    @unsafe fileprivate func write<Bytes>(to target: inout Bytes, family: inout UInt8) {
        var bytes: [UInt8] = []
        switch self {
        case .v4(let bits):
            family = 4
            for shift in stride(from: 24, through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(shift)))
            }
        case .v6(let high, let low):
            family = 6
            for word in [high, low] {
                for shift in stride(from: 56, through: 0, by: -8) {
                    bytes.append(UInt8(truncatingIfNeeded: word >> UInt64(shift)))
                }
            }
        }
        unsafe copy(bytes.span, to: &target)
    }

    @unsafe fileprivate init?<Bytes>(_ source: inout Bytes, family: UInt8) {
        func word(_ range: Range<Int>) -> UInt64 {
            unsafe withUnsafeBytes(of: &source) { bytes in
                var word: UInt64 = 0
                for index in range { word = word << 8 | UInt64(unsafe bytes[index]) }
                return word
            }
        }
        switch family {
        case 4: self = .v4(UInt32(word(0..<4)))
        case 6: self = .v6(high: word(0..<8), low: word(8..<16))
        default: return nil
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
    init(_ device: tunnel_device_state) {
        self.init()
        var device = device
        defer { unsafe erase(&device) }
        if device.has_private_key {
            privateKey = unsafe secret(&device.private_key)
            publicKey = unsafe TunnelEngine.publicKey(&device.public_key)
        }
        listenPort = device.listen_port
        fwmark = device.fwmark
        mtu = device.mtu
        isUp = device.up
    }
}

extension PeerSnapshot {
    @unsafe init(
        _ state: UnsafePointer<tunnel_peer_state>, _ list: UnsafeBufferPointer<tunnel_prefix>
    ) {
        var peer = unsafe state.pointee
        defer { unsafe erase(&peer) }
        self.init(publicKey: unsafe TunnelEngine.publicKey(&peer.public_key))
        presharedKey = unsafe secret(&peer.preshared_key)
        endpoint = Endpoint(&peer.endpoint)
        lastHandshakeSeconds = peer.last_handshake_seconds
        lastHandshakeNanoseconds = peer.last_handshake_nanoseconds
        receivedBytes = peer.rx_bytes
        sentBytes = peer.tx_bytes
        keepalive = peer.keepalive
        prefixes.reserveCapacity(list.count)
        for index in list.indices {
            var entry = unsafe list[index]
            if let address = unsafe IPAddress(&entry.address, family: entry.family),
                let prefix = Prefix(address: address, length: entry.length)
            {
                prefixes.append(prefix)
            }
        }
    }
}

extension Endpoint {
    fileprivate init?(_ endpoint: inout tunnel_endpoint) {
        guard let address = unsafe IPAddress(&endpoint.address, family: endpoint.family) else {
            return nil
        }
        let zone: Zone? = endpoint.scope_id == 0 ? nil : .index(endpoint.scope_id)
        self.init(address: address, port: endpoint.port, zone: zone)
    }
}
