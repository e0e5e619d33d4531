// SPDX-License-Identifier: Apache-2.0

/// Something about a tunnel that its operator should know before it is applied.
public struct Issue: Equatable, Sendable, CustomStringConvertible {
    public enum Severity: String, Sendable {
        /// Nobody loses anything.
        case note
        case warning
        /// Nothing may be applied.
        case error
    }

    public enum Kind: String, Sendable, CaseIterable {
        /// Two peers claim one prefix (C39).
        case sharedPrefix
        case duplicatePeer
        /// A peer is the device itself.
        case ownKey
        case noPrivateKey
        /// Another tunnel listens on the port (C86).
        case portTaken
        /// The endpoint's name did not resolve yet (C30).
        case unresolvedName
        /// Packets to a peer's endpoint would enter the tunnel that they come from (C37).
        case endpointInsideTunnel
        /// A route of the host stands in the way of one of the tunnel's (C37).
        case hostRoute
        case addressTaken
        case subnetOverlap
        /// IPv6 needs an MTU of 1280 (C51).
        case smallMTU
        /// Not the usual routing table (C41).
        case otherTable
        case tableTaken
        case unknownTable
        case otherFullTunnel
        case noRulePriority
        /// A port is forwarded twice, or is a tunnel's own.
        case forwardTaken
        /// A forward leads nowhere.
        case forwardTarget
    }

    public var severity: Severity
    public var kind: Kind
    /// One line each. Never with a secret.
    public var what: String
    /// nil: nobody.
    public var whoLoses: String?
    public var advice: String

    public init(
        _ severity: Severity, _ kind: Kind, _ what: String, whoLoses: String? = nil, advice: String
    ) {
        self.severity = severity
        self.kind = kind
        self.what = what
        self.whoLoses = whoLoses
        self.advice = advice
    }

    public var description: String {
        let loss = whoLoses.map { "; \($0)" } ?? ""
        return "\(severity.rawValue): \(what)\(loss); \(advice)"
    }
}

/// What came out of a configuration.
public struct TunnelDecision: Equatable, Sendable {
    /// nil when one of `issues` is an error.
    public var tunnel: DesiredTunnel?
    /// In the order of the checks.
    public var issues: [Issue]

    public init(tunnel: DesiredTunnel?, issues: [Issue]) {
        self.tunnel = tunnel
        self.issues = issues
    }
}
