// SPDX-License-Identifier: Apache-2.0

/// The settings of wg(8) and wg-quick(8).
enum ConfigurationKey: Sendable, CaseIterable {
    case privateKey, listenPort, fwmark
    case address, dns, mtu, table, preUp, postUp, preDown, postDown, saveConfig
    case publicKey, presharedKey, allowedIPs, endpoint, keepalive

    var name: String {
        switch self {
        case .privateKey: "PrivateKey"
        case .listenPort: "ListenPort"
        case .fwmark: "FwMark"
        case .address: "Address"
        case .dns: "DNS"
        case .mtu: "MTU"
        case .table: "Table"
        case .preUp: "PreUp"
        case .postUp: "PostUp"
        case .preDown: "PreDown"
        case .postDown: "PostDown"
        case .saveConfig: "SaveConfig"
        case .publicKey: "PublicKey"
        case .presharedKey: "PresharedKey"
        case .allowedIPs: "AllowedIPs"
        case .endpoint: "Endpoint"
        case .keepalive: "PersistentKeepalive"
        }
    }

    /// Of a peer's section; the others are of the interface's.
    var isOfPeer: Bool {
        switch self {
        case .publicKey, .presharedKey, .allowedIPs, .endpoint, .keepalive: true
        default: false
        }
    }

    /// Known to `wg` itself, which removes every blank from the line.
    var isOfTool: Bool {
        switch self {
        case .privateKey, .listenPort, .fwmark: true
        default: isOfPeer
        }
    }

    /// May stand more than once in its section; the values add up (C12).
    var isRepeatable: Bool {
        switch self {
        case .address, .dns, .allowedIPs: true
        default: hookEvent != nil
        }
    }

    var hookEvent: ConfigurationFile.Hook.Event? {
        switch self {
        case .preUp: .preUp
        case .postUp: .postUp
        case .preDown: .preDown
        case .postDown: .postDown
        default: nil
        }
    }

    private static let longestName = 19

    private static let lowercasedNames = allCases.map { ([UInt8]($0.name.lowercased().utf8), $0) }
    private static let byName = Dictionary(uniqueKeysWithValues: lowercasedNames)

    /// In any case (C05).
    init?(_ name: Span<UInt8>) {
        guard 3...Self.longestName ~= name.count,
            let key = Self.byName[lowercased(name)]
        else { return nil }
        self = key
    }

    /// The key that `name` was probably meant to be: a typing error in a name must not end in a
    /// peer without its preshared key. One wrong character in a short name, two in a longer one.
    static func nearest(to name: Span<UInt8>) -> ConfigurationKey? {
        guard 3...longestName + 2 ~= name.count else { return nil }
        let name = lowercased(name)
        var nearest: (key: ConfigurationKey, distance: Int)?
        for (known, key) in lowercasedNames {
            let allowed = known.count < 6 ? 1 : 2
            guard abs(known.count - name.count) <= allowed else { continue }
            let distance = distance(known, name)
            if distance <= allowed, distance < nearest?.distance ?? .max {
                nearest = (key, distance)
            }
        }
        return nearest?.key
    }
}

func lowercased(_ text: Span<UInt8>) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(text.count)
    for index in text.indices {
        let character = text[index]
        result.append(0x41...0x5A ~= character ? character | 0x20 : character)
    }
    return result
}

/// Insertions, deletions and replacements that make one of the other (Levenshtein 1966).
private func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
    var row = Array(0...right.count)
    for (index, character) in left.enumerated() {
        var diagonal = row[0]
        row[0] = index + 1
        for column in right.indices {
            let replaced = diagonal + (character == right[column] ? 0 : 1)
            diagonal = row[column + 1]
            row[column + 1] = min(replaced, diagonal + 1, row[column] + 1)
        }
    }
    return row[right.count]
}
