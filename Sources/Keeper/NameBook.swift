// SPDX-License-Identifier: Apache-2.0
// Which peers are reached by a name, what the names resolved to, which address is tried now. All
// policy about endpoints with names is here; times are milliseconds of one clock that never jumps.
import TunnelPlan
import WireGuard

struct NameBook: Equatable, Sendable {
    /// Reject-After-Time of the WireGuard paper, section 6.1: without a handshake for longer there
    /// is no session, and nothing that a new endpoint could disturb (C28).
    static let staleAfter: Int64 = 180_000
    /// Three initiations, one each Rekey-Timeout (section 6.1), and none was answered.
    static let patience: Int64 = 15_000
    /// Between looks at the device while something is undecided.
    static let checkInterval: Int64 = 5_000
    static let firstBackoff: Int64 = 2_000
    static let longestBackoff: Int64 = 300_000

    struct Entry: Equatable, Sendable {
        let host: HostName
        let port: UInt16
        /// What the last lookup gave, the one being tried first.
        var candidates: [ResolvedAddress] = []
        /// How many of them have been given to the peer since that lookup.
        var tried = 0
        /// Since when the current one is being tried, and what the peer had sent and received then.
        var trial: Trial?
        var isBeingLookedUp = false
        /// There was a session since the last lookup; once it is over, the name may have another
        /// address (C27).
        var isOutdated = false
        /// nil: not before the session is stale.
        var lookupAt: Int64?
        /// Lookups since the last handshake.
        var attempts = 0
        /// The handshake last seen, and when it was by our clock: the wall clock may jump.
        var handshake: Handshake?
        /// Why the last lookup failed; said once.
        var failure: String?
    }

    struct Handshake: Equatable, Sendable {
        /// Of the wall clock, as the device tells it.
        var seconds: Int64
        var at: Int64
    }

    struct Trial: Equatable, Sendable {
        var since: Int64
        var sentBytes: UInt64
        var receivedBytes: UInt64
    }

    private(set) var entries: [PublicKey: Entry] = [:]
    /// When the device shall be looked at.
    private(set) var checkAt: Int64?
    private var jitter: Jitter

    init(seed: UInt64) { jitter = Jitter(seed: seed) }

    var isEmpty: Bool { entries.isEmpty }
    /// Names without an address, for the status.
    var unresolved: [HostName] {
        Set(entries.values.filter { $0.candidates.isEmpty }.map(\.host)).sorted {
            $0.description < $1.description
        }
    }

    /// Takes over the names of `configuration`; what is known about one that stays stays known.
    /// Literals need no resolver (C31).
    mutating func update(for configuration: ConfigurationFile, now: Int64) {
        var next: [PublicKey: Entry] = [:]
        let known = Dictionary(
            entries.values.map { ($0.host, $0.candidates) },
            uniquingKeysWith: { $0.isEmpty ? $1 : $0 })
        for peer in configuration.peers {
            guard case .host(let host, let port) = peer.endpoint else { continue }
            if let entry = entries[peer.publicKey], entry.host == host, entry.port == port {
                next[peer.publicKey] = entry
            } else {
                var entry = Entry(host: host, port: port)
                // Another peer may have the same name.
                entry.candidates = known[host] ?? []
                entry.lookupAt = now
                next[peer.publicKey] = entry
            }
        }
        entries = next
        checkAt = entries.isEmpty ? nil : now
    }

    /// `configuration` with addresses in place of the names that have one.
    func resolved(_ configuration: ConfigurationFile) -> ConfigurationFile {
        guard !entries.isEmpty else { return configuration }
        var result = configuration
        for index in result.peers.indices {
            guard let entry = entries[result.peers[index].publicKey],
                let endpoint = entry.endpoint
            else { continue }
            result.peers[index].endpoint = .address(endpoint)
        }
        return result
    }

    /// What the endpoints with names stand for, for the peers of `configuration`.
    func addresses(for configuration: ConfigurationFile) -> [PeerEndpoint: Endpoint] {
        guard !entries.isEmpty else { return [:] }
        var result: [PeerEndpoint: Endpoint] = [:]
        for peer in configuration.peers {
            guard case .host(let host, let port) = peer.endpoint,
                let entry = entries[peer.publicKey], entry.host == host, entry.port == port,
                let endpoint = entry.endpoint
            else { continue }
            result[.host(host, port: port)] = endpoint
        }
        return result
    }

    /// "" for a peer without a name.
    func host(of key: PublicKey) -> String { entries[key]?.host.description ?? "" }

    /// Forgets the names, not the jitter.
    func emptied() -> NameBook {
        var result = self
        result.entries = [:]
        result.checkAt = nil
        return result
    }

    /// The device could not be looked at.
    mutating func postpone(now: Int64) {
        if checkAt != nil { checkAt = now + Self.checkInterval }
    }

    /// Names whose lookup is due. Each is told once until its answer comes.
    mutating func takeDueLookups(now: Int64) -> [HostName] {
        var due: Set<HostName> = []
        for (key, entry) in entries {
            guard let at = entry.lookupAt, at <= now else { continue }
            entries[key]?.lookupAt = nil
            guard !entry.isBeingLookedUp else { continue }
            entries[key]?.isBeingLookedUp = true
            due.insert(entry.host)
        }
        return due.sorted { $0.description < $1.description }
    }

    /// When `takeDueLookups` or a check of the device is due.
    var nextTime: Int64? {
        (entries.values.compactMap(\.lookupAt) + [checkAt].compactMap { $0 }).min()
    }
}

// MARK: answers of the resolver

extension NameBook {
    /// True when an address became known for a peer that had none: its path counts from now on.
    mutating func didResolve(
        _ host: HostName, _ addresses: [ResolvedAddress], now: Int64
    ) -> Bool {
        var isNews = false
        for (key, entry) in entries where entry.host == host {
            var entry = entry
            isNews = isNews || entry.candidates.isEmpty
            entry.isBeingLookedUp = false
            entry.isOutdated = false
            entry.failure = nil
            entry.candidates = addresses
            entry.tried = 0
            entry.trial = nil
            entries[key] = entry
            checkAt = now
        }
        return isNews
    }

    /// The event to tell when this is news. It is tried again for ever (C30).
    mutating func didFailToResolve(
        _ host: HostName, reason: String, isFinal: Bool, now: Int64
    ) -> KeeperEvent? {
        var isNews = false
        var next = Int64.max
        for (key, entry) in entries where entry.host == host {
            var entry = entry
            isNews = isNews || entry.failure != reason
            entry.failure = reason
            entry.isBeingLookedUp = false
            // An answer that says no is as good in half a minute.
            schedule(&entry, now: now, minimum: isFinal ? 30_000 : 1_000)
            next = min(next, entry.lookupAt ?? next)
            entries[key] = entry
        }
        guard isNews else { return nil }
        return KeeperEvent(
            .unresolved,
            "cannot resolve \(host): \(reason); the tunnel runs without this endpoint, and the name "
                + "is tried again")
    }

    private mutating func schedule(_ entry: inout Entry, now: Int64, minimum: Int64) {
        let limit = min(Self.longestBackoff, Self.firstBackoff << Int64(min(entry.attempts, 10)))
        entry.attempts += 1
        entry.lookupAt = now + minimum + jitter.upTo(limit)
    }
}

// MARK: the device

extension NameBook {
    /// Looks at the peers and says which get which endpoint now. `wallSeconds`: since 1970.
    mutating func check(
        _ peers: [PeerSnapshot], now: Int64, wallSeconds: Int64
    ) -> [(PublicKey, Endpoint)] {
        var decided: [(PublicKey, Endpoint)] = []
        var next = Int64.max
        for peer in peers {
            guard var entry = entries[peer.publicKey] else { continue }
            entry.observe(peer, now: now, wallSeconds: wallSeconds)
            if entry.isLive(now: now) {
                entry.attempts = 0
                // A name that never resolved is still looked for: it counts for the MTU.
                if !entry.candidates.isEmpty { entry.lookupAt = nil }
                entry.isOutdated = true
                entry.tried = 0
                entry.trial = nil
                next = min(next, (entry.handshake?.at ?? now) + Self.staleAfter + 1)
            } else {
                if let endpoint = advance(&entry, peer, now: now) {
                    decided.append((peer.publicKey, endpoint))
                }
                next = min(next, now + Self.checkInterval)
            }
            entries[peer.publicKey] = entry
        }
        // Peers that somebody took out of the device are looked for again, in no hurry.
        checkAt = entries.isEmpty ? nil : max(now + 1, min(next, now + Self.staleAfter))
        return decided
    }

    /// One step for a peer without a live session.
    private mutating func advance(
        _ entry: inout Entry, _ peer: PeerSnapshot, now: Int64
    ) -> Endpoint? {
        if entry.isBeingLookedUp || entry.lookupAt != nil { return nil }
        if entry.candidates.isEmpty || entry.isOutdated {
            schedule(&entry, now: now, minimum: 0)
            return nil
        }
        if let trial = entry.trial {
            // Who sends nothing wants nothing: an idle peer keeps what it has (C35).
            let isAsking = peer.sentBytes > trial.sentBytes
            let isAnswered = peer.receivedBytes > trial.receivedBytes
            guard isAsking, !isAnswered, now - trial.since >= Self.patience else { return nil }
            guard entry.tried < entry.candidates.count else {
                entry.trial = nil
                schedule(&entry, now: now, minimum: 1_000)
                return nil
            }
            entry.candidates.append(entry.candidates.removeFirst())
        }
        entry.tried += 1
        entry.trial = Trial(
            since: now, sentBytes: peer.sentBytes, receivedBytes: peer.receivedBytes)
        let endpoint = entry.endpoint
        return endpoint == peer.endpoint ? nil : endpoint
    }
}

extension NameBook.Entry {
    var endpoint: Endpoint? {
        candidates.first.flatMap { Endpoint(address: $0.address, port: port, zone: $0.zone) }
    }

    /// Never is not now (C79).
    func isLive(now: Int64) -> Bool {
        guard let handshake else { return false }
        return now - handshake.at <= NameBook.staleAfter
    }

    mutating func observe(_ peer: PeerSnapshot, now: Int64, wallSeconds: Int64) {
        guard peer.lastHandshakeSeconds != 0 else {
            handshake = nil
            return
        }
        guard handshake?.seconds != peer.lastHandshakeSeconds else { return }
        let age = max(0, wallSeconds - peer.lastHandshakeSeconds)
        handshake = NameBook.Handshake(
            seconds: peer.lastHandshakeSeconds, at: now - min(age, 1 << 40) * 1000)
    }
}
