// SPDX-License-Identifier: Apache-2.0
import HostProcess
import TestSupport
import Testing
import TunnelPlan
import WireGuard

@testable import LiveHost

@Suite struct BarrierRecordTests {
    private let halves: Set = [
        Barrier(behind: Route(Prefix("0.0.0.0/1")!)), Barrier(behind: Route(Prefix("8000::/1")!)),
    ]

    @Test func a_keeper_finds_what_the_one_before_it_has_written_down_and_no_others() throws {
        let directory = TemporaryDirectory()
        let mine = BarrierRecord(directory: directory.path, name: InterfaceName("wg0")!)
        let others = BarrierRecord(directory: directory.path, name: InterfaceName("wg1")!)
        #expect(mine.read().isEmpty && mine.readOthers().isEmpty)
        try mine.write(halves)
        #expect(
            BarrierRecord(directory: directory.path, name: InterfaceName("wg0")!).read() == halves)
        #expect(mine.readOthers().isEmpty)
        #expect(others.read().isEmpty)
        #expect(others.readOthers() == halves)
        mine.end()
        #expect(mine.read().isEmpty && others.readOthers().isEmpty)
    }

    @Test func lines_that_are_none_are_skipped() throws {
        let directory = TemporaryDirectory()
        let text =
            "0.0.0.0/1 254 1\n0.0.0.0/33 254 1\n0.0.0.0/1 254\n\n0.0.0.0/1 x 1\n8000::/1 254 1025\n"
        try HostFile.write(Array(text.utf8), to: "\(directory.path)/wg0.barriers", replacing: false)
        let record = BarrierRecord(directory: directory.path, name: InterfaceName("wg0")!)
        #expect(record.read() == halves)
    }
}
