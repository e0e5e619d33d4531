// SPDX-License-Identifier: Apache-2.0
// Which of the sessions that speak for one device is believed (C73, C76). Pure.

/// What a heartbeat says about who sends it.
struct SessionMark: Equatable, Sendable {
    /// One up for each start of the agent.
    var boot: UInt64
    /// Random for each start.
    var session: String
    /// One up for each heartbeat.
    var sequence: UInt64
}

/// The sessions of one device, and what becomes of a heartbeat.
struct SessionJudge: Equatable, Sendable {
    enum Verdict: Equatable, Sendable {
        /// It says how the device is now.
        case current
        /// An answer is due, but what it says is older than what is known.
        case late
        /// Two machines take turns; this is the one that came later.
        case duplicate
    }

    private struct Track: Equatable {
        var mark: SessionMark
        let firstSeen: Milliseconds
        var lastSeen: Milliseconds
    }

    /// So many returns of a session within `window` are no late packets any more: one restart of an
    /// agent makes at most two of them.
    static let returnLimit = 3
    /// Milliseconds.
    static let window: Int64 = 600_000
    /// How many sessions are remembered.
    private static let trackLimit = 8

    private var tracks: [Track] = []
    /// Index into `tracks` of the one that is believed.
    private var current = 0
    private var lastHeard = ""
    /// When a session came back after another one had been heard; the last `returnLimit` times.
    private var returns: [Milliseconds] = []

    init() {}

    /// The session that is believed; nil: none yet.
    var mark: SessionMark? { tracks.isEmpty ? nil : tracks[current].mark }
    var isContested: Bool { returns.count >= Self.returnLimit }
    var trackCount: Int { tracks.count }
    var returnCount: Int { returns.count }

    /// `quiet`: milliseconds after which a session that says nothing is taken for ended.
    mutating func hear(_ mark: SessionMark, at now: Milliseconds, quiet: Int64) -> Verdict {
        forget(before: now)
        defer { lastHeard = mark.session }
        guard let index = tracks.firstIndex(where: { $0.mark.session == mark.session }) else {
            return meet(mark, at: now, quiet: quiet)
        }
        if lastHeard != mark.session {
            // Older ones decide nothing.
            returns = Array(returns.suffix(Self.returnLimit - 1)) + [now]
        }
        let isNewer = mark.sequence > tracks[index].mark.sequence
        tracks[index].lastSeen = now
        if isNewer { tracks[index].mark = mark }
        if isContested { return contest(index) }
        if index != current, isSilent(tracks[current], now, quiet) { current = index }
        return index == current && isNewer ? .current : .late
    }

    /// The clock was set by `step` milliseconds.
    mutating func moveTimes(by step: Int64) {
        tracks = tracks.map { track in
            Track(
                mark: track.mark, firstSeen: track.firstSeen + step,
                lastSeen: track.lastSeen + step)
        }
        returns = returns.map { $0 + step }
    }

    /// A session that was not heard before.
    private mutating func meet(
        _ mark: SessionMark, at now: Milliseconds, quiet: Int64
    ) -> Verdict {
        let supersedes =
            tracks.isEmpty || mark.boot >= tracks[current].mark.boot
            || isSilent(tracks[current], now, quiet)
        let believed = tracks.isEmpty ? nil : tracks[current].mark.session
        tracks.append(Track(mark: mark, firstSeen: now, lastSeen: now))
        if tracks.count > Self.trackLimit {
            let oldest = tracks.indices.dropLast().filter { tracks[$0].mark.session != believed }
                .min { tracks[$0].lastSeen < tracks[$1].lastSeen }
            if let oldest { tracks.remove(at: oldest) }
        }
        if isContested { return contest(tracks.count - 1) }
        current =
            supersedes
            ? tracks.count - 1 : tracks.firstIndex { $0.mark.session == believed } ?? 0
        return supersedes ? .current : .late
    }

    /// The one that was there first is believed, until the operator has decided.
    private mutating func contest(_ index: Int) -> Verdict {
        current = tracks.indices.min { tracks[$0].firstSeen < tracks[$1].firstSeen } ?? 0
        return index == current ? .current : .duplicate
    }

    private func isSilent(_ track: Track, _ now: Milliseconds, _ quiet: Int64) -> Bool {
        now - track.lastSeen > quiet
    }

    /// A contest is over when only one has been heard for the length of a window.
    private mutating func forget(before now: Milliseconds) {
        returns.removeAll { now - $0 > Self.window }
        guard !tracks.isEmpty else { return }
        let believed = tracks[current].mark.session
        tracks.removeAll { $0.mark.session != believed && now - $0.lastSeen > Self.window }
        current = tracks.firstIndex { $0.mark.session == believed } ?? 0
    }
}
