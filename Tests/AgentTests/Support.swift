// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Agent

/// An agent under a clock of the test's: nothing waits.
struct Bench {
    var state: AgentState
    var moment: Moment = 1_000_000
    /// Seconds since 1970, at `moment` 0.
    var wallOffset: Int64 = 1_800_000_000
    /// Everything that was to be done, in order.
    var actions: [AgentAction] = []

    init(seed: UInt64 = 1) { state = AgentState(at: moment, seed: seed) }

    var now: Now { Now(moment: moment, wallSeconds: wallOffset + moment / 1000) }

    /// What this event asks for.
    @discardableResult
    mutating func tell(_ event: AgentEvent) -> [AgentAction] {
        let (next, actions) = step(state, event, now: now)
        state = next
        self.actions += actions
        return actions
    }

    mutating func pass(_ milliseconds: Int64) { moment += milliseconds }

    /// Lets time pass to what is due next, and says so.
    mutating func toNext() -> [AgentAction] {
        guard let next = state.nextTime else { return [] }
        moment = max(moment, next)
        return tell(.due)
    }

    /// Lets time pass until a heartbeat is asked for; the rest of what is due is done on the way.
    mutating func toHeartbeat() throws {
        for _ in 0..<100 where toNext().contains(.heartbeat) { return }
        throw Stuck()
    }

    struct Stuck: Error {}
}

let first = Revision(configHash: "c1", forwardsHash: "f1")
let second = Revision(configHash: "c2", forwardsHash: "f1")
let third = Revision(configHash: "c3", forwardsHash: "f2")

extension Bench {
    /// Enrolled, its last good configuration in the tunnel, the hub not asked yet.
    static func running(seed: UInt64 = 1) -> Bench {
        var bench = Bench(seed: seed)
        bench.tell(.started)
        bench.tell(.loaded(loaded(first)))
        bench.tell(.applied(first, .current))
        bench.actions = []
        return bench
    }

    mutating func reading(handshake: Int64?, received: UInt64, sent: UInt64) -> AgentEvent {
        .read(
            TunnelReading(
                at: moment, lastHandshake: handshake, receivedBytes: received, sentBytes: sent))
    }
}

func loaded(_ revision: Revision?) -> Loaded {
    var loaded = Loaded()
    loaded.revision = revision
    return loaded
}

func news(_ revision: Revision, offer: Bool = false, same: Bool = false) -> HeartbeatNews {
    var news = HeartbeatNews(revision: revision)
    news.isOffer = offer
    news.isSameMeaning = same
    return news
}

let away = ControlFault(.transient, code: "unreachable", "cannot reach the hub")

func fault(_ kind: ControlFault.Kind) -> ControlFault {
    ControlFault(kind, code: kind.rawValue, "the hub says \(kind.rawValue)")
}

extension [AgentAction] {
    var applies: [AgentAction] {
        filter {
            if case .apply = $0 { true } else { false }
        }
    }
    var lines: Int {
        filter {
            if case .say = $0 { true } else { false }
        }.count
    }
}
