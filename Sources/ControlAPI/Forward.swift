// SPDX-License-Identifier: Apache-2.0

/// A port of the hub that leads to a device, in the words of JSON; `validated()` makes the values
/// that may be used.
public struct Forward: Codable, Equatable, Sendable {
    /// Names it towards the hub: 1 to 64 letters, digits, `-` and `_`.
    public var id: String
    /// `tcp` or `udp`.
    public var `protocol`: String
    /// 1 to 65535: at the hub.
    public var publicPort: Int
    /// The last port of a range that begins with `publicPort`; nil: that one only.
    public var publicPortEnd: Int?
    /// An address within the device's allowed prefixes.
    public var targetIp: String
    /// 1 to 65535; of a range the first, the others follow in order.
    public var targetPort: Int
    /// For people: text of one line.
    public var description: String?

    public init(
        id: String, protocol: String, publicPort: Int, publicPortEnd: Int? = nil, targetIp: String,
        targetPort: Int, description: String? = nil
    ) {
        self.id = id
        self.protocol = `protocol`
        self.publicPort = publicPort
        self.publicPortEnd = publicPortEnd
        self.targetIp = targetIp
        self.targetPort = targetPort
        self.description = description
    }
}
