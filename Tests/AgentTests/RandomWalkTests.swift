// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Agent

/// Any order of events: what must hold in every state.
@Suite struct RandomWalkTests {
    private static let kinds: [ControlFault.Kind] = [
        .transient, .authExpired, .tokenRefused, .unknownDevice, .duplicateIdentity,
        .upgradeRequired, .badRequest,
    ]
    private static let revisions = [first, second, third]

    private func event(_ bench: inout Bench, _ random: inout SplitMix) -> AgentEvent {
        let revision = Self.revisions.randomElement(using: &random)!
        let key: KeyChoice = Int.random(in: 0...3, using: &random) == 0 ? .next : .current
        switch Int.random(in: 0..<20, using: &random) {
        case 0: return .loaded(loaded(Bool.random(using: &random) ? revision : nil))
        case 1: return .loadFailed(code: "sealed", reason: "cannot unseal")
        case 2: return .applied(revision, key)
        case 3: return .applyFailed(revision, key, .postponed(reason: "away"))
        case 4: return .applyFailed(revision, key, .rejected(code: "taken", reason: "taken"))
        case 5, 6, 7:
            var news = news(
                revision, offer: Bool.random(using: &random), same: Bool.random(using: &random))
            let commands: [HeartbeatNews.Command?] = [nil, nil, nil, .reset, .rotateKey]
            news.command = commands.randomElement(using: &random)!
            news.commandId = ["a", "b", nil].randomElement(using: &random)!
            return .answered(news)
        case 8, 9: return .refused(fault(Self.kinds.randomElement(using: &random)!))
        case 10: return .keyAccepted
        case 11: return .tokenRenewed
        case 12: return .tokenRenewalFailed(away)
        case 13: return .readingFailed(reason: "no keeper")
        case 14: return .awoke(reason: "woke")
        case 15:
            return bench.reading(
                handshake: bench.now.wallSeconds - Int64.random(in: 0...300, using: &random),
                received: .random(in: 0...9, using: &random),
                sent: .random(in: 0...9, using: &random))
        case 16: return .keyInUseNotTold(away)
        case 17: return .handshakeReset
        case 18: return .handshakeNotReset(reason: "no keeper")
        default: return .due
        }
    }

    @Test(arguments: 1...40)
    func without_a_revocation_nothing_ends_and_nothing_is_taken_down(_ seed: UInt64) {
        var random = SplitMix(seed: seed)
        var bench = Bench(seed: seed)
        bench.tell(.started)
        bench.tell(.loaded(loaded(first)))
        for _ in 0..<2000 {
            bench.pass(.random(in: 0...40_000, using: &random))
            let actions = bench.tell(event(&bench, &random))
            #expect(!actions.contains(.takeDown))
            #expect(bench.state.phase != .ended)
            #expect(actions.applies.count <= 1, "one request to the keeper at a time")
            let waits = bench.state.nextTime != nil || bench.state.isHeartbeatUnderWay
            #expect(waits, "something always follows: no state is a dead end")
        }
    }

    /// What the program does on `due` must move every alarm that was due, or it would spin.
    @Test(arguments: 1...20)
    func an_alarm_never_rings_twice_for_the_same_time(_ seed: UInt64) {
        var random = SplitMix(seed: seed)
        var bench = Bench(seed: seed)
        bench.tell(.started)
        for _ in 0..<1000 {
            bench.tell(event(&bench, &random))
            guard let next = bench.state.nextTime else { continue }
            bench.moment = max(bench.moment, next)
            bench.tell(.due)
            let isLater = bench.state.nextTime.map { $0 > bench.moment } ?? true
            #expect(isLater, "\(bench.state)")
            guard isLater else { return }
        }
    }
}
