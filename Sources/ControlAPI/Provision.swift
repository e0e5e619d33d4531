// SPDX-License-Identifier: Apache-2.0
// POST /api/v1/provision: a device shows an enrolment token and becomes one of the hub's devices.

/// What a device sends to be enrolled.
public struct ProvisionRequest: Codable, Equatable, Sendable {
    /// The enrolment token as the operator handed it out.
    public var token: SecretText
    /// Machine id made for this application (sd_id128_get_machine_app_specific(3)): 32 hexadecimal
    /// digits in lower case. It is a salt of the envelope, and tells one machine from its clone.
    public var hwid: String
    /// Base64 of the public key whose private half the device made and keeps. nil asks the hub to
    /// make one, which it does only where its operator allows that.
    public var publicKey: String?
    /// What the operator sees. Text of one line, at most 64 characters.
    public var name: String?
    /// Such as `linux/amd64`.
    public var platform: String?
    public var agentVersion: String?
    /// nil: 1.
    public var protocolVersion: Int? = ProtocolVersion.current

    public init(
        token: SecretText, hwid: String, publicKey: String? = nil, name: String? = nil,
        platform: String? = nil, agentVersion: String? = nil
    ) {
        self.token = token
        self.hwid = hwid
        self.publicKey = publicKey
        self.name = name
        self.platform = platform
        self.agentVersion = agentVersion
    }
}

/// What an enrolled device gets, once.
public struct ProvisionAnswer: Codable, Equatable, Sendable {
    /// A UUID in lower case.
    public var deviceId: String
    /// Shown in every other call; a `BearerToken`.
    public var deviceToken: SecretText
    /// 16 random bytes as hexadecimal digits, new in each answer.
    public var salt: String
    /// A `WireGuardConfig`, sealed by `Envelope`.
    public var encrypted: String
    /// Seconds between heartbeats; nil means 30. Read it through `HeartbeatInterval`.
    public var heartbeatSeconds: Int?

    public init(
        deviceId: String, deviceToken: SecretText, salt: String, encrypted: String,
        heartbeatSeconds: Int? = nil
    ) {
        self.deviceId = deviceId
        self.deviceToken = deviceToken
        self.salt = salt
        self.encrypted = encrypted
        self.heartbeatSeconds = heartbeatSeconds
    }
}

/// How often a device reports.
public enum HeartbeatInterval {
    public static let standard = 30
    public static let range = 5...3600

    /// What `seconds` of an answer means: 30 where it is absent, and never outside of 5 to 3600.
    public static func seconds(_ seconds: Int?) -> Int {
        min(max(seconds ?? standard, range.lowerBound), range.upperBound)
    }
}
