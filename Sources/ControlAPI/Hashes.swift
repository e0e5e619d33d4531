// SPDX-License-Identifier: Apache-2.0
// The names that hub and device give to a state, so that it is sent only when it has changed: hashes
// of the canonical JSON of what it means. docs/control-api.md has a worked example.

import Crypto
import WireGuard

/// `configHash` of a configuration. Throws if it is none.
public func configHash(_ config: WireGuardConfig) throws(ConfigRefusal) -> String {
    try config.validated().meaningHash
}

/// `forwardsHash` of a list of forwards, in any order. Throws if one is none.
public func forwardsHash(_ forwards: [Forward]) throws(ConfigRefusal) -> String {
    var texts: [[UInt8]] = []
    for (index, forward) in forwards.enumerated() {
        let value = try forward.validated("forwards[\(index)]").canonicalValue
        texts.append(CanonicalJSON.text(value))
    }
    texts.sort { $0.lexicographicallyPrecedes($1) }
    let list = Array(texts.joined(separator: [UInt8(ascii: ",")]))
    return hexadecimal(SHA256.hash([UInt8(ascii: "[")] + list + [UInt8(ascii: "]")]))
}

extension ValidatedConfig {
    /// 64 hexadecimal digits in lower case, equal for configurations that mean the same.
    public var meaningHash: String {
        var text = canonicalText
        defer { erase(&text) }
        return hexadecimal(SHA256.hash(text))
    }

    /// What is hashed. Holds the preshared keys; the caller erases it.
    var canonicalText: [UInt8] { CanonicalJSON.text(canonicalValue) }

    /// Everything but the two hashes and the private key: a hub that made the key erases it once the
    /// device has it, and must get the same hash afterwards.
    private var canonicalValue: JSONValue {
        var fields = Fields()
        fields.put("deviceId", deviceId)
        fields.put("internalIp", joined(addresses))
        fields.put("serverPub", hub.publicKey.base64)
        fields.put("endpoint", hub.endpoint)
        fields.put("presharedKey", hub.presharedKey)
        fields.put("allowedIps", joined(hub.allowedIPs))
        fields.put("persistentKeepalive", hub.keepalive)
        fields.put("dns", joined(dnsServers.map(\.address) + searchDomains))
        fields.put("serverWgIp", hubAddress?.description)
        fields.put("mtu", mtu)
        fields.put("listenPort", listenPort)
        if !peers.isEmpty { fields.members["peers"] = .array(peers.map(canonicalValue)) }
        return .object(fields.members)
    }

    private func canonicalValue(_ peer: ConfigurationFile.Peer) -> JSONValue {
        var fields = Fields()
        fields.put("publicKey", peer.publicKey.base64)
        fields.put("presharedKey", peer.presharedKey)
        fields.put("endpoint", peer.endpoint)
        fields.put("allowedIps", joined(peer.allowedIPs))
        fields.put("persistentKeepalive", peer.keepalive)
        fields.put("name", peer.friendlyName?.description)
        return .object(fields.members)
    }

    private func joined(_ values: [any CustomStringConvertible]) -> String {
        values.map(\.description).joined(separator: ", ")
    }
}

extension ValidatedForward {
    fileprivate var canonicalValue: JSONValue {
        var fields = Fields()
        fields.put("id", id)
        fields.put("protocol", transport.rawValue)
        fields.put("publicPort", publicPorts.lowerBound)
        // A range of one is no range.
        if publicPorts.count > 1 { fields.put("publicPortEnd", publicPorts.upperBound) }
        fields.put("targetIp", target.description)
        fields.put("targetPort", targetPort)
        fields.put("description", description)
        return .object(fields.members)
    }
}

/// The members of an object. What is absent and what is empty mean the same, and are left out.
private struct Fields {
    var members: [String: JSONValue] = [:]

    mutating func put(_ name: String, _ text: String?) {
        if let text, !text.isEmpty { members[name] = .string(text) }
    }

    mutating func put(_ name: String, _ number: UInt16?) {
        if let number { members[name] = .integer(Int64(number)) }
    }

    mutating func put(_ name: String, _ endpoint: PeerEndpoint?) {
        var text: [UInt8] = []
        endpoint?.append(to: &text)
        put(name, String(decoding: text, as: UTF8.self))
    }

    mutating func put(_ name: String, _ key: PresharedKey?) {
        var text: [UInt8] = []
        text.reserveCapacity(44)
        defer { erase(&text) }
        key?.appendBase64(to: &text)
        put(name, String(decoding: text, as: UTF8.self))
    }
}
