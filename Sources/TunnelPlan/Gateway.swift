// SPDX-License-Identifier: Apache-2.0
// What a host does for a tunnel besides carrying it. No file of wg-quick(8) has words for it: it is
// asked for beside the configuration.
import WireGuard

public struct Gateway: Hashable, Sendable {
    public var forwards: [PortForward] = []
    /// What comes out of the tunnel and leaves by another link does so under that link's address, and
    /// the answers find back.
    public var masquerades = false
    /// Peers reach each other, and links of this host, through it.
    public var forwardsBetweenPeers = false
    /// Connections that came through the tunnel are answered through it, wherever the routes of this
    /// host lead: what a forward that keeps its source needs at the far end of the tunnel (C52).
    public var answersThroughTunnel = false

    public init() {}
}

/// Connections to a port of this host that are led on to another (C52, C53).
public struct PortForward: Hashable, Sendable {
    public enum Transport: String, Hashable, Sendable, CaseIterable { case tcp, udp }

    /// More ports than this cannot be led to others: each is a rule of its own then.
    public static let shiftedPortLimit = 1024

    public let transport: Transport
    /// The first of the ports; all of them are asked for at any address of this host but the
    /// tunnel's own.
    public let publicPort: UInt16
    /// The last of the ports; `publicPort` for one.
    public let publicPortEnd: UInt16
    public let target: IPAddress
    /// Where `publicPort` leads; the others keep their distance to it.
    public let targetPort: UInt16
    /// The target sees where a connection comes from, and has to answer through the tunnel. Otherwise
    /// it sees this host's address in the tunnel (C52).
    public let keepsSource: Bool

    /// nil: a port of 0, an end before the start, target ports beyond 65535, or more than
    /// `shiftedPortLimit` of them that differ from the public ones.
    public init?(
        _ transport: Transport, publicPort: UInt16, publicPortEnd: UInt16? = nil,
        target: IPAddress, targetPort: UInt16, keepsSource: Bool = false
    ) {
        let end = publicPortEnd ?? publicPort
        guard publicPort > 0, targetPort > 0, end >= publicPort,
            UInt32(targetPort) + UInt32(end - publicPort) <= UInt32(UInt16.max),
            publicPort == targetPort || end - publicPort < Self.shiftedPortLimit
        else { return nil }
        self.transport = transport
        self.publicPort = publicPort
        self.publicPortEnd = end
        self.target = target
        self.targetPort = targetPort
        self.keepsSource = keepsSource
    }

    /// The last of the target's ports.
    public var targetPortEnd: UInt16 { targetPort + (publicPortEnd - publicPort) }

    public func overlaps(_ other: PortForward) -> Bool {
        transport == other.transport && target.family == other.target.family
            && publicPort <= other.publicPortEnd && other.publicPort <= publicPortEnd
    }

    static func precedes(_ left: PortForward, _ right: PortForward) -> Bool {
        (left.transport.rawValue, left.publicPort, left.target.description)
            < (right.transport.rawValue, right.publicPort, right.target.description)
    }
}

// MARK: text

extension PortForward: CustomStringConvertible {
    /// For people: `tcp 8443 → 10.1.2.3:443`.
    public var description: String {
        let host = target.family == .v6 ? "[\(target)]" : "\(target)"
        return "\(transport.rawValue) \(Self.text(publicPort, publicPortEnd)) → "
            + "\(host):\(Self.text(targetPort, targetPortEnd))"
            + (keepsSource ? " keeping the source" : "")
    }

    private static func text(_ first: UInt16, _ last: UInt16) -> String {
        first == last ? "\(first)" : "\(first)-\(last)"
    }

    /// For programs: five words, `tcp 8443-8443 10.1.2.3 443 masquerade`; the last may be `keep`.
    public var words: String {
        "\(transport.rawValue) \(publicPort)-\(publicPortEnd) \(target) \(targetPort) "
            + (keepsSource ? "keep" : "masquerade")
    }

    /// Reads `words`.
    public init?(words text: String) {
        let words = text.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        guard words.count == 5, let transport = Transport(rawValue: words[0]),
            let target = IPAddress(words[2]), let targetPort = UInt16(words[3]),
            words[4] == "keep" || words[4] == "masquerade"
        else { return nil }
        let ports = words[1].split(separator: "-" as Character).map { UInt16($0) }
        guard ports.count == 2, let first = ports[0], let last = ports[1] else { return nil }
        self.init(
            transport, publicPort: first, publicPortEnd: last, target: target,
            targetPort: targetPort, keepsSource: words[4] == "keep")
    }
}

extension JSONWriter {
    /// An object of an array.
    public mutating func write(_ forward: PortForward) {
        beginObject()
        string("protocol", forward.transport.rawValue)
        number("publicPort", UInt64(forward.publicPort))
        number("publicPortEnd", UInt64(forward.publicPortEnd))
        string("target", forward.target.description)
        number("targetPort", UInt64(forward.targetPort))
        bool("keepsSource", forward.keepsSource)
        endObject()
    }
}
