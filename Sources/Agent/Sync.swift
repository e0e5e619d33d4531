// SPDX-License-Identifier: Apache-2.0

/// A configuration with its forwards, by the names that the hub gave them. A hub may send any opaque
/// text as a hash: two revisions may mean the same.
public struct Revision: Hashable, Sendable {
    public var configHash: String
    public var forwardsHash: String

    public init(configHash: String, forwardsHash: String) {
        self.configHash = configHash
        self.forwardsHash = forwardsHash
    }
}

/// A revision that this host cannot apply. It is reported, and not tried again until it changes.
public struct Rejection: Equatable, Sendable {
    public var revision: Revision
    public var code: String
    public var reason: String

    public init(revision: Revision, code: String, reason: String) {
        self.revision = revision
        self.code = code
        self.reason = reason
    }
}

/// What the hub wants and what the tunnel has.
public struct Sync: Equatable, Sendable {
    public enum Decision: Equatable, Sendable {
        case nothing
        /// Only the names are new.
        case rename
        case apply
    }

    /// What the tunnel has; it is also the last good configuration.
    public private(set) var applied: Revision?
    /// Asked of the keeper, with no answer yet, or waiting for a keeper.
    public private(set) var wanted: Revision?
    public private(set) var rejection: Rejection?

    public init() {}

    /// What the hub was told last time decides what it sends: it never sends what was rejected.
    public var rejectedHash: String? {
        guard let rejection else { return nil }
        return rejection.revision.configHash == applied?.configHash
            ? rejection.revision.forwardsHash : rejection.revision.configHash
    }

    /// `isSameMeaning`: it would change nothing of what is applied.
    mutating func offered(_ revision: Revision, isSameMeaning: Bool) -> Decision {
        if revision == applied {
            wanted = nil
            rejection = nil
            return .nothing
        }
        if revision == rejection?.revision || revision == wanted { return .nothing }
        if isSameMeaning, applied != nil {
            wanted = nil
            rejection = nil
            applied = revision
            return .rename
        }
        wanted = revision
        return .apply
    }

    /// The last good one, after a start.
    mutating func restored(_ revision: Revision) { wanted = revision }

    mutating func succeeded(_ revision: Revision) {
        applied = revision
        if wanted == revision { wanted = nil }
        if rejection?.revision != revision { rejection = nil }
    }

    mutating func rejected(_ rejection: Rejection) {
        self.rejection = rejection
        if wanted == rejection.revision { wanted = nil }
    }
}
