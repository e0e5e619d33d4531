// SPDX-License-Identifier: Apache-2.0
// The reconciler against a model that is too simple to be wrong: which configuration should be in
// force after all that happened.
import TestSupport
import Testing
import TunnelPlan
import WireGuard

@testable import Keeper

private struct SlowModel {
    var confirmed: Int?
    var pending: Int?
    var deadline: Int64?

    var current: Int? { pending ?? confirmed }

    mutating func apply(_ number: Int, confirmSeconds: UInt32?, now: Int64) {
        if let confirmSeconds {
            pending = number
            deadline = now + Int64(confirmSeconds) * 1000
        } else {
            self = SlowModel(confirmed: number)
        }
    }

    mutating func confirm() {
        if let pending { self = SlowModel(confirmed: pending) }
    }

    mutating func pass(to time: Int64) {
        if let deadline, deadline <= time { self = SlowModel(confirmed: confirmed) }
    }
}

@Suite struct RandomTests {
    private static let files = [small, other, full].map { intent($0) }

    private func steal(_ random: inout SeededRandom, from simulation: inout Simulation) {
        let choice = random.below(7)
        simulation.tamper { state in
            switch choice {
            case 0: state.host.rules = []
            case 1: state.host.routes = []
            case 2: state.host.addresses = []
            case 3: state.host.firewall = nil
            case 4: state.host.dns = nil
            case 5: state.host.mtu = 1500
            default: state.host.settings = [:]
            }
        }
        if random.oneIn(10), simulation.host.state != nil {
            simulation.host.state = nil
            simulation.handle(.host(.overflow))
        }
    }

    @Test func whateverHappensTheWantedTunnelIsThereInTheEnd() {
        let wanted = Self.files.map { fresh($0) }
        var counts = [Int](repeating: 0, count: 6)
        for seed in 0..<400 {
            var random = SeededRandom(seed: UInt64(seed))
            var simulation = Simulation(seed: UInt64(seed))
            var model = SlowModel()
            for _ in 0..<20 {
                let choice = random.below(8)
                let number = random.below(Self.files.count)
                switch choice {
                case 0, 1, 2:
                    let seconds = random.oneIn(2) ? UInt32(1 + random.below(100)) : nil
                    // Somebody's theft may not be mended yet: the apply mends it too.
                    if random.oneIn(4) {
                        simulation.host.fail(steps: random.below(8))
                    }
                    let answer = simulation.apply(
                        Self.files[number], confirmSeconds: seconds, renewsLink: random.oneIn(4))
                    simulation.host.failingSteps = []
                    if answer?.applied != nil {
                        model.apply(
                            number, confirmSeconds: seconds, now: simulation.now.milliseconds)
                        counts[0] += 1
                    } else {
                        counts[1] += 1
                    }
                case 3:
                    simulation.confirm()
                    model.confirm()
                case 4: steal(&random, from: &simulation)
                case 5:
                    let time = Int64(random.below(60_000))
                    simulation.pass(milliseconds: time)
                    model.pass(to: simulation.now.milliseconds)
                    counts[2] += 1
                case 6:
                    simulation.restart(seed: UInt64(random.below(1000)))
                    counts[3] += 1
                default:
                    if random.oneIn(4) {
                        simulation.down()
                        model = SlowModel()
                        simulation.restart()
                        counts[4] += 1
                    }
                }
            }
            // The last look: nothing fails, nobody interferes.
            model.pass(to: simulation.now.milliseconds)
            simulation.handle(.host(.overflow))
            simulation.pass(milliseconds: 20_000)
            model.pass(to: simulation.now.milliseconds)
            if simulation.hasEnded { simulation.restart() }
            let expected = model.current.flatMap { wanted[$0] }
            #expect(
                sameHost(simulation.host.state, expected),
                "seed \(seed): \(simulation.host.state == nil), \(expected == nil)")
            #expect(simulation.saved.confirmed == model.confirmed.map { Self.files[$0] })
            counts[5] += 1
        }
        #expect(counts.allSatisfy { $0 > 100 }, "every kind of step occurred: \(counts)")
    }

    /// A hostile client: nothing crashes, and whatever is accepted is one of the verbs.
    @Test func mutatedRequestsAreReadOrRefused() {
        var random = SeededRandom(seed: 11)
        var options = KeeperClient.ApplyOptions()
        options.confirmSeconds = 5
        let seeds = [
            RequestText.apply([UInt8](full.utf8), options), RequestText.plain("status"),
            RequestText.plain("events"),
            [UInt8](
                #"{"schemaVersion":1,"verb":"apply","configuration":"\u00e9\ud83d\ude00"}"#.utf8),
        ]
        var accepted = 0
        for _ in 0..<20_000 {
            var line = seeds[random.below(seeds.count)]
            for _ in 0..<random.below(4) {
                let position = random.below(line.count)
                switch random.below(4) {
                case 0: line[position] = UInt8(random.below(256))
                case 1: line.remove(at: position)
                case 2: line.insert(random.element(of: "\"{}[],:\\"), at: position)
                default: line.removeSubrange(position..<min(line.count, position + 5))
                }
                if line.isEmpty { line = [0x20] }
            }
            do throws(KeeperFailure) {
                _ = try Request.parse(line)
                accepted += 1
            } catch {
                #expect(!error.message.isEmpty)
            }
            _ = try? ReceivedAnswer(line)
        }
        #expect(accepted > 1_000 && accepted < 19_000)
    }
}

extension SeededRandom {
    fileprivate mutating func element(of text: String) -> UInt8 {
        let bytes = [UInt8](text.utf8)
        return bytes[below(bytes.count)]
    }
}

/// The host's part, and the peers without what `wg set` may have changed.
private func sameHost(_ a: TunnelState?, _ b: TunnelState?) -> Bool {
    a?.host == b?.host && a?.device.fwmark == b?.device.fwmark
        && Set(a?.device.peers.map(\.publicKey) ?? [])
            == Set(b?.device.peers.map(\.publicKey) ?? [])
}
