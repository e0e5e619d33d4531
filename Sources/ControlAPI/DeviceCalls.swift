// SPDX-License-Identifier: Apache-2.0
// The smaller calls of a device.

/// POST /api/v1/device/rotate: the public half of the device's next key. The answer is 200 and an
/// empty object.
public struct RotateRequest: Codable, Equatable, Sendable {
    /// Base64.
    public var publicKey: String
    /// The device says when it uses a key. false: not yet; the hub waits for it. true: from now on;
    /// the hub moves the prefixes to it. nil: it will not say, and the hub goes by the first handshake.
    public var isInUse: Bool?

    enum CodingKeys: String, CodingKey {
        case publicKey
        case isInUse = "inUse"
    }

    public init(publicKey: String, isInUse: Bool? = nil) {
        self.publicKey = publicKey
        self.isInUse = isInUse
    }
}

/// POST /api/v1/device/token: the next token; the former lives ten minutes more.
public struct TokenAnswer: Codable, Equatable, Sendable {
    public var deviceToken: SecretText

    public init(deviceToken: SecretText) { self.deviceToken = deviceToken }
}

/// An answer that says nothing but that it was done: `{}`.
public struct EmptyAnswer: Codable, Equatable, Sendable {
    public init() {}
}

/// GET /api/v1/device/events: names of the events. Each says "heartbeat now"; the data is `{}`.
public enum DeviceEvent: String, Sendable, CaseIterable {
    case config, forwards, command
}

/// The calls of a device: where they go.
public enum DeviceCall: String, Sendable, CaseIterable {
    case provision = "/api/v1/provision"
    case heartbeat = "/api/v1/heartbeat"
    case rotate = "/api/v1/device/rotate"
    case token = "/api/v1/device/token"
    case events = "/api/v1/device/events"
    case unenroll = "/api/v1/unenroll"

    public var path: String { rawValue }
    public var method: String { self == .events ? "GET" : "POST" }
    /// Whether it shows the device's token. Only the first call has none yet.
    public var isAuthenticated: Bool { self != .provision }
}
