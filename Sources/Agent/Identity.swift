// SPDX-License-Identifier: Apache-2.0
// What the agent keeps: who it is towards the hub, and the last configuration that worked.
import ControlAPI
import Crypto
import WireGuard

/// Who this device is. Sealed as one document, so that no crash mixes two identities.
struct Identity: Codable, Sendable {
    /// Of the hub: `https://host:port`.
    var url: String
    /// `sha256//…`; empty: the system's trust, and `caFile`.
    var pins: [String]
    var caFile: String?
    var name: String?
    var deviceId: String
    /// The machine that it was given to (C73).
    var hwid: String
    var token: SecretText
    /// Seconds since 1970 when the token was given out.
    var tokenIssued: Int64
    var privateKey: SecretText
    /// Another key on its way, and whether the hub knows it.
    var nextPrivateKey: SecretText?
    var isNextKeyAccepted = false
    var heartbeatSeconds: Int?
    var isRevoked = false

    /// The key to use; nil when there is none of that kind, or it is damaged.
    func key(_ choice: KeyChoice) -> SecretKey? {
        guard let text = choice == .current ? privateKey : nextPrivateKey else { return nil }
        var bytes = Array(text.exposed.utf8)
        defer { erase(&bytes) }
        return try? SecretKey(base64: bytes.span)
    }

    var bearer: BearerToken? {
        var bytes = Array(token.exposed.utf8)
        defer { erase(&bytes) }
        return BearerToken(text: bytes)
    }
}

extension SecretText {
    init(_ key: SecretKey) {
        var text: [UInt8] = []
        key.appendBase64(to: &text)
        defer { erase(&text) }
        self.init(String(decoding: text, as: UTF8.self))
    }
}

/// A configuration with its forwards, as the hub sent it. Never with a private key.
struct StoredConfiguration: Codable, Equatable, Sendable {
    var configHash: String
    var forwardsHash: String
    var config: WireGuardConfig
    var forwards: [Forward]

    var revision: Revision { Revision(configHash: configHash, forwardsHash: forwardsHash) }
}

/// One that was checked.
struct UsableConfiguration: Sendable {
    var stored: StoredConfiguration
    var config: ValidatedConfig

    init(_ stored: StoredConfiguration) throws(ConfigRefusal) {
        self.stored = stored
        config = try stored.config.validated()
        for (index, forward) in stored.forwards.enumerated() {
            _ = try forward.validated("forwards[\(index)]")
        }
    }

    /// Whatever the hub calls them.
    func meansTheSame(as other: UsableConfiguration) -> Bool {
        guard config.meaningHash == other.config.meaningHash else { return false }
        let hashes = [self, other].map { try? ControlAPI.forwardsHash($0.stored.forwards) }
        return hashes[0] == hashes[1]
    }
}

/// Why what is on disk cannot be used, or a file not be written.
struct StoreFault: Error, Equatable, Sendable {
    /// Stable.
    var code: String
    var reason: String
}
