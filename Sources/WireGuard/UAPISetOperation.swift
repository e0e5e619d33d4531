// SPDX-License-Identifier: Apache-2.0

/// The keys of a set operation. Device keys are known before the first `public_key`, peer keys
/// after it.
enum UAPIKey: Sendable {
    case privateKey, listenPort, fwmark, replacePeers
    case publicKey
    case presharedKey, endpoint, keepalive, replaceAllowedIPs, allowedIP, updateOnly, remove,
        protocolVersion

    static let getOperation = [UInt8]("get=1".utf8)
    static let setOperation = [UInt8]("set=1".utf8)

    /// The most frequent first.
    private static let names: [(name: [UInt8], key: UAPIKey)] = [
        ([UInt8]("allowed_ip".utf8), .allowedIP),
        ([UInt8]("public_key".utf8), .publicKey),
        ([UInt8]("endpoint".utf8), .endpoint),
        ([UInt8]("preshared_key".utf8), .presharedKey),
        ([UInt8]("replace_allowed_ips".utf8), .replaceAllowedIPs),
        ([UInt8]("persistent_keepalive_interval".utf8), .keepalive),
        ([UInt8]("protocol_version".utf8), .protocolVersion),
        ([UInt8]("remove".utf8), .remove),
        ([UInt8]("update_only".utf8), .updateOnly),
        ([UInt8]("private_key".utf8), .privateKey),
        ([UInt8]("listen_port".utf8), .listenPort),
        ([UInt8]("fwmark".utf8), .fwmark),
        ([UInt8]("replace_peers".utf8), .replacePeers),
    ]

    init?(_ name: Span<UInt8>) {
        for entry in Self.names where name.elementsEqual(entry.name) {
            self = entry.key
            return
        }
        return nil
    }
}

/// One set operation: collects the lines of a peer and applies them when the next begins.
struct UAPISetOperation: Sendable {
    private var peer: PeerChange?
    private var ownsReplacement = false

    /// Applies a line that is not blank.
    mutating func apply(_ line: Span<UInt8>, to device: some UAPIDevice) throws(UAPIError) {
        guard let equals = line.firstIndex(of: UInt8(ascii: "=")) else { throw .protocolViolation }
        guard let key = UAPIKey(line.extracting(..<equals)) else { throw .invalid }
        let value = line.extracting((equals + 1)...)
        if key == .publicKey {
            try flush(device)
            peer = PeerChange(
                publicKey: try parse { () throws(KeyError) in try PublicKey(hex: value) })
        } else if peer == nil {
            try applyDeviceLine(key, value, to: device)
        } else {
            try applyPeerLine(key, value)
        }
    }

    /// The blank line was read.
    mutating func end(_ device: some UAPIDevice) throws(UAPIError) {
        try flush(device)
        if ownsReplacement {
            try device.commitReplacePeers()
            ownsReplacement = false
        }
    }

    /// A line was bad: what came before it still applies.
    mutating func abort(_ device: some UAPIDevice) {
        // An error of this peer as well would come too late: the client is told of the first.
        try? flush(device)
        drop(device)
    }

    /// Applies nothing more and removes nobody.
    mutating func drop(_ device: some UAPIDevice) {
        peer = nil
        if ownsReplacement { device.abortReplacePeers() }
        ownsReplacement = false
    }

    private mutating func flush(_ device: some UAPIDevice) throws(UAPIError) {
        guard let change = peer else { return }
        peer = nil
        try requireNoOtherReplacement(device)
        try device.set(peer: change)
    }

    /// A peer set while another client replaces all peers would count as one of that client's.
    private func requireNoOtherReplacement(_ device: some UAPIDevice) throws(UAPIError) {
        if device.isReplacingPeers, !ownsReplacement { throw .busy }
    }

    // MARK: lines

    private mutating func applyDeviceLine(
        _ key: UAPIKey, _ value: Span<UInt8>, to device: some UAPIDevice
    ) throws(UAPIError) {
        switch key {
        case .privateKey:
            let key = try parse { () throws(KeyError) in try SecretKey(hex: value) }
            try device.set(device: DeviceChange(privateKey: key))
        case .listenPort:
            let port = try parseUInt16(value)
            try device.set(device: DeviceChange(listenPort: port))
        case .fwmark:
            guard let mark = parseNumber(value, maximum: UInt64(UInt32.max)) else { throw .invalid }
            try device.set(device: DeviceChange(fwmark: UInt32(mark)))
        case .replacePeers:
            try requireTrue(value)
            // No peer was set yet, so a second one changes nothing.
            if !ownsReplacement { try device.beginReplacePeers() }
            ownsReplacement = true
        default: throw .invalid
        }
    }

    private mutating func applyPeerLine(_ key: UAPIKey, _ value: Span<UInt8>) throws(UAPIError) {
        switch key {
        case .updateOnly:
            try requireTrue(value)
            peer?.updateOnly = true
        case .remove:
            try requireTrue(value)
            peer?.remove = true
        case .presharedKey:
            peer?.presharedKey = try parse { () throws(KeyError) in try PresharedKey(hex: value) }
        case .endpoint:
            guard let endpoint = Endpoint(value) else { throw .invalid }
            peer?.endpoint = endpoint
        case .keepalive:
            peer?.keepalive = try parseUInt16(value)
        case .replaceAllowedIPs:
            try requireTrue(value)
            // Prefixes listed before this line are replaced as well.
            peer?.prefixes.removeAll(keepingCapacity: true)
            peer?.replaceAllowedIPs = true
        case .allowedIP:
            try addPrefix(value)
        case .protocolVersion:
            guard value.count == 1, value[0] == UInt8(ascii: "1") else { throw .invalid }
        default: throw .invalid
        }
    }

    /// `address/length`, with a leading `-` to take the prefix away. Without length it is refused,
    /// as in the reference.
    private mutating func addPrefix(_ value: Span<UInt8>) throws(UAPIError) {
        let remove = value.count > 0 && value[0] == UInt8(ascii: "-")
        let text = value.extracting((remove ? 1 : 0)...)
        guard text.firstIndex(of: UInt8(ascii: "/")) != nil, let prefix = Prefix(text) else {
            throw .invalid
        }
        guard peer?.prefixes.count ?? 0 < UAPIConnection.prefixLimit else { throw .tooMany }
        peer?.prefixes.append(PrefixChange(prefix, remove: remove))
    }
}

private func parse<Key>(_ body: () throws(KeyError) -> Key) throws(UAPIError) -> Key {
    do throws(KeyError) { return try body() } catch { throw .invalid }
}

private func parseUInt16(_ value: Span<UInt8>) throws(UAPIError) -> UInt16 {
    guard let number = parseDecimal(value, maximum: 65535) else { throw .invalid }
    return UInt16(number)
}

private func requireTrue(_ value: Span<UInt8>) throws(UAPIError) {
    guard value.elementsEqual("true") else { throw .invalid }
}
