// SPDX-License-Identifier: Apache-2.0
import HostProcess
import Testing

@Suite struct WorkerTests {
    /// Everything that arrives until there are `count`, at most 10 s.
    private func messages(_ mailbox: Mailbox<Int>, _ count: Int) -> [Int] {
        var found: [Int] = []
        var poller = Poller()
        let deadline = Host.monotonicMilliseconds() + 10_000
        while found.count < count, Host.monotonicMilliseconds() < deadline {
            poller.removeAll()
            poller.add(mailbox.descriptor)
            poller.wait(milliseconds: deadline - Host.monotonicMilliseconds())
            found += mailbox.take()
        }
        return found
    }

    @Test func jobs_run_one_after_the_other_in_order() throws {
        let mailbox = try Mailbox<Int>()
        let worker = try Worker()
        for number in 0..<500 { worker.submit { mailbox.post(number) } }
        #expect(messages(mailbox, 500) == Array(0..<500))
    }

    @Test func a_worker_that_blocks_does_not_block_another() throws {
        let mailbox = try Mailbox<Int>()
        let gate = try Mailbox<Int>()
        let (blocked, free) = (try Worker(), try Worker())
        blocked.submit {
            var poller = Poller()
            poller.add(gate.descriptor)
            poller.wait(milliseconds: 10_000)
            mailbox.post(1)
        }
        free.submit { mailbox.post(2) }
        #expect(messages(mailbox, 1) == [2])
        gate.post(0)
        #expect(messages(mailbox, 1) == [1])
    }

    @Test func jobs_are_done_although_nobody_holds_the_worker() throws {
        let mailbox = try Mailbox<Int>()
        do {
            let worker = try Worker()
            for number in 0..<50 { worker.submit { mailbox.post(number) } }
        }
        #expect(messages(mailbox, 50) == Array(0..<50))
    }

    @Test func a_mailbox_is_readable_only_while_something_is_there() throws {
        let mailbox = try Mailbox<Int>()
        var poller = Poller()
        let entry = poller.add(mailbox.descriptor)
        poller.wait(milliseconds: 0)
        #expect(!poller.isReadable(entry))
        mailbox.post(7)
        poller.wait(milliseconds: 0)
        #expect(poller.isReadable(entry))
        #expect(mailbox.take() == [7])
        poller.wait(milliseconds: 0)
        #expect(!poller.isReadable(entry))
        #expect(mailbox.take() == [])
    }

    @Test func only_numeric_addresses_are_sent_to() {
        #expect(!Host.sendDiscard(to: "localhost"))
        #expect(Host.sendDiscard(to: "127.0.0.1"))
    }
}
