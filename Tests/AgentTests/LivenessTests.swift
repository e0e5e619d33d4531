// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Agent

@Suite struct LivenessTests {
    private let wall: Int64 = 1_800_000_000

    private func reading(
        _ seconds: Int64, handshake: Int64?, received: UInt64, sent: UInt64, keepalive: UInt16 = 0
    ) -> TunnelReading {
        TunnelReading(
            at: seconds * 1000, lastHandshake: handshake.map { wall + $0 }, receivedBytes: received,
            sentBytes: sent, keepalive: keepalive)
    }

    private func verdict(_ liveness: Liveness, _ seconds: Int64) -> Liveness.Verdict {
        liveness.verdict(at: seconds * 1000, wallSeconds: wall + seconds)
    }

    @Test func case_C79_no_handshake_yet_is_not_one_of_just_now() {
        var liveness = Liveness()
        liveness.note(
            TunnelReading(at: 0, lastHandshake: 0, receivedBytes: 0, sentBytes: 0))
        #expect(verdict(liveness, 0) == .connecting)
        liveness.note(reading(5, handshake: nil, received: 0, sent: 148))
        #expect(verdict(liveness, 5) == .connecting)
    }

    @Test func case_C79_old_data_gives_no_verdict() {
        var liveness = Liveness()
        #expect(verdict(liveness, 0) == .unknown)
        liveness.note(reading(0, handshake: 0, received: 10, sent: 10))
        #expect(verdict(liveness, 5) == .alive)
        #expect(verdict(liveness, 16) == .unknown, "not alive and not dead")
        liveness.reset()
        #expect(verdict(liveness, 0) == .unknown)
    }

    @Test func case_C80_sent_bytes_without_an_answer_show_a_dead_path_in_half_a_minute() {
        var liveness = Liveness()
        liveness.note(reading(0, handshake: -10, received: 1000, sent: 1000))
        var deadAfter: Int64?
        for second in stride(from: Int64(5), through: 60, by: 5) {
            liveness.note(
                reading(second, handshake: -10, received: 1000, sent: 1000 + UInt64(second)))
            if verdict(liveness, second) == .dead { deadAfter = deadAfter ?? second }
        }
        #expect(15...30 ~= deadAfter!)
        liveness.note(reading(65, handshake: -10, received: 1001, sent: 2000))
        #expect(verdict(liveness, 65) == .alive, "one byte back is enough")
    }

    @Test func case_C80_a_tunnel_that_nobody_uses_is_not_dead() {
        var liveness = Liveness()
        for second in stride(from: Int64(0), through: 170, by: 5) {
            liveness.note(reading(second, handshake: 0, received: 5, sent: 5))
            #expect(verdict(liveness, second) == .alive)
        }
        for second in stride(from: Int64(180), through: 600, by: 5) {
            liveness.note(reading(second, handshake: 0, received: 5, sent: 5))
            #expect(verdict(liveness, second) == .quiet)
        }
    }

    /// Nobody answers a keepalive of 32 bytes: neither a persistent one nor one that answers data.
    @Test(arguments: [0, 1, 2, 5, 25, 60] as [UInt16])
    func case_C80_keepalives_ask_for_no_answer(interval: UInt16) {
        var liveness = Liveness()
        let step = interval == 0 ? 60 : Int64(interval)
        for second in stride(from: Int64(0), through: 170, by: 5) {
            let sent = 1000 + 32 * UInt64(second / step)
            liveness.note(
                reading(second, handshake: 0, received: 7, sent: sent, keepalive: interval))
            #expect(verdict(liveness, second) == .alive, "after \(second) s")
        }
    }

    @Test func case_C80_data_between_keepalives_shows_a_dead_path() {
        var liveness = Liveness()
        liveness.note(reading(0, handshake: 0, received: 7, sent: 0, keepalive: 25))
        // One ping: 84 bytes are padded to 96 and wrapped in 32 more.
        for second in stride(from: Int64(5), through: 25, by: 5) {
            let sent: UInt64 = second < 25 ? 128 : 160
            liveness.note(reading(second, handshake: 0, received: 7, sent: sent, keepalive: 25))
        }
        #expect(verdict(liveness, 25) == .dead)
    }

    @Test func case_C80_a_quiet_tunnel_is_probed_and_rarely() {
        var liveness = Liveness()
        var probes = 0
        for second in stride(from: Int64(0), through: 900, by: 5) {
            liveness.note(reading(second, handshake: 0, received: 5, sent: 5))
            if liveness.takeProbe(at: second * 1000, wallSeconds: wall + second) { probes += 1 }
        }
        #expect(probes == 5, "at 180, 360, 540, 720 and 900 s")
    }

    @Test func a_device_that_was_made_anew_is_not_silent() {
        var liveness = Liveness()
        liveness.note(reading(0, handshake: 0, received: 9_000, sent: 9_000))
        liveness.note(reading(5, handshake: 0, received: 9_000, sent: 9_999))
        liveness.note(reading(10, handshake: nil, received: 0, sent: 148))
        #expect(verdict(liveness, 10) == .connecting)
        liveness.note(reading(20, handshake: nil, received: 0, sent: 148))
        #expect(verdict(liveness, 20) == .connecting)
    }

    @Test func a_clock_that_was_set_back_makes_nothing_old() {
        var liveness = Liveness()
        liveness.note(reading(0, handshake: 0, received: 1, sent: 1))
        #expect(liveness.verdict(at: 0, wallSeconds: wall - 86_400) == .alive)
    }

    @Test func a_handshake_that_nobody_answers_is_seen() {
        var liveness = Liveness()
        for second in stride(from: Int64(0), through: 30, by: 5) {
            liveness.note(
                reading(second, handshake: nil, received: 0, sent: 148 * UInt64(second / 5)))
        }
        #expect(verdict(liveness, 30) == .dead)
    }
}
