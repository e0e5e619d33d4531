// SPDX-License-Identifier: Apache-2.0
import WireGuard

/// A `Forward` whose values have been parsed.
public struct ValidatedForward: Equatable, Sendable {
    public enum Transport: String, Sendable, CaseIterable { case tcp, udp }

    public let id: String
    public let transport: Transport
    /// At the hub; 1 to 65535.
    public let publicPorts: ClosedRange<UInt16>
    public let target: IPAddress
    /// Of the first port; the others of a range follow in order, up to 65535.
    public let targetPort: UInt16
    public let description: String?
}

extension Forward {
    /// Throws for the first value that cannot be used; `field` is put in front of its name.
    public func validated(_ field: String = "forward") throws(ConfigRefusal) -> ValidatedForward {
        let ports: ClosedRange<UInt16> = 1...65535
        guard let transport = ValidatedForward.Transport(rawValue: `protocol`) else {
            throw ConfigRefusal(
                .protocolInvalid, field + ".protocol", "is neither tcp nor udp", shown: `protocol`)
        }
        guard let target = IPAddress(targetIp) else {
            throw ConfigRefusal(
                .addressInvalid, field + ".targetIp", "is no address", shown: targetIp)
        }
        let first = try parseNumber(publicPort, in: ports, field + ".publicPort")!
        let last = try parseNumber(publicPortEnd, in: ports, field + ".publicPortEnd") ?? first
        let targetPort = try parseNumber(targetPort, in: ports, field + ".targetPort")!
        guard first <= last, last - first <= UInt16.max - targetPort else {
            throw ConfigRefusal(
                .numberInvalid, field + ".publicPortEnd",
                "the range ends before it begins, or its target passes 65535")
        }
        return ValidatedForward(
            id: try parseIdentifier(id, field + ".id"), transport: transport,
            publicPorts: first...last, target: target, targetPort: targetPort,
            description: try parseName(description, field + ".description")?.description)
    }
}
