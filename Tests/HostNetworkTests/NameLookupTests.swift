// SPDX-License-Identifier: Apache-2.0
import Glibc
import Synchronization
import Testing
import TunnelPlan
import WireGuard

@testable import HostNetwork

private let v4 = Endpoint("192.0.2.1:51820")!
private let v6 = Endpoint("[2001:db8::1]:51820")!

/// A resolver that answers when it is told to.
private final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var running = 0
        var most = 0
        var calls: [UInt64] = []
    }
    private let state = Mutex(State())

    func open() { state.withLock { $0.isOpen = true } }
    var running: Int { state.withLock { $0.running } }
    var most: Int { state.withLock { $0.most } }
    var calls: [UInt64] { state.withLock { $0.calls } }

    @Sendable func resolve(_ request: NameLookup.Request) -> NameLookup.Outcome {
        state.withLock { state in
            state.running += 1
            state.most = max(state.most, state.running)
            state.calls.append(request.id)
        }
        while !state.withLock({ $0.isOpen }) { usleep(1000) }
        state.withLock { $0.running -= 1 }
        return .found([v4])
    }
}

/// Waits for a condition; false after a bound.
private func wait(until condition: () -> Bool) -> Bool {
    for _ in 0..<10_000 {
        if condition() { return true }
        usleep(1000)
    }
    return false
}

private func isReadable(_ descriptor: Int32, milliseconds: Int32) -> Bool {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return unsafe poll(&entry, 1, milliseconds) == 1
}

private func collect(_ lookup: borrowing NameLookup, _ count: Int) -> [NameLookup.Answer] {
    var answers: [NameLookup.Answer] = []
    while answers.count < count, isReadable(lookup.descriptor, milliseconds: 10_000) {
        while let answer = lookup.next() { answers.append(answer) }
    }
    return answers
}

struct NameLookupTests {
    @Test func requestNeverWaitsAndThreadsAreBounded() throws {
        let gate = Gate()
        let lookup = try NameLookup(resolve: gate.resolve)
        // The gate is shut: if a request waited for its answer, this would not end.
        for id in 0..<50 {
            try lookup.request(HostName("host\(id).example")!, port: 1, id: UInt64(id))
        }
        #expect(wait { gate.running == NameLookup.threadLimit })
        #expect(lookup.pendingCount == 50)
        #expect(lookup.next() == nil)
        #expect(!isReadable(lookup.descriptor, milliseconds: 0))
        gate.open()
        let answers = collect(lookup, 50)
        #expect(Set(answers.map(\.request.id)) == Set(0..<50))
        #expect(answers.allSatisfy { $0.outcome == .found([v4]) })
        #expect(gate.most == NameLookup.threadLimit)
        #expect(lookup.pendingCount == 0)
        #expect(!isReadable(lookup.descriptor, milliseconds: 0))
    }

    @Test func nameThatIsAskedIsNotAskedTwice() throws {
        let gate = Gate()
        let lookup = try NameLookup(resolve: gate.resolve)
        let name = HostName("host.example")!
        for id in 0..<10 { try lookup.request(name, port: 1, id: UInt64(id)) }
        try lookup.request(name, port: 2, id: 10)
        #expect(wait { gate.running == 2 })
        gate.open()
        #expect(Set(collect(lookup, 2).map(\.request.id)) == [0, 10])
        #expect(gate.calls.count == 2)
        // After its answer it may be asked again.
        try lookup.request(name, port: 1, id: 11)
        #expect(collect(lookup, 1).map(\.request.id) == [11])
    }

    @Test func endWhileThreadsRunIsSafe() throws {
        let gate = Gate()
        do {
            let lookup = try NameLookup(resolve: gate.resolve)
            for id in 0..<20 {
                try lookup.request(HostName("host\(id).example")!, port: 1, id: UInt64(id))
            }
            #expect(wait { gate.running == NameLookup.threadLimit })
        }
        gate.open()
        #expect(wait { gate.running == 0 })
        // What had not begun never did.
        #expect(gate.calls.count == NameLookup.threadLimit)
    }

    @Test func threadsBeginAgainAfterAllHadEnded() throws {
        let gate = Gate()
        gate.open()
        let lookup = try NameLookup(resolve: gate.resolve)
        for round in 0..<200 {
            try lookup.request(HostName("host.example")!, port: 1, id: UInt64(round))
            #expect(collect(lookup, 1).map(\.request.id) == [UInt64(round)])
        }
    }

    @Test func systemAnswersForLocalhost() throws {
        let lookup = try NameLookup()
        try lookup.request(HostName("localhost")!, port: 51820, id: 7)
        let answer = try #require(collect(lookup, 1).first)
        guard case .found(let endpoints) = answer.outcome else {
            Issue.record("\(answer)")
            return
        }
        #expect(
            endpoints.contains(Endpoint("127.0.0.1:51820")!)
                || endpoints.contains(Endpoint("[::1]:51820")!))
        #expect(Set(endpoints).count == endpoints.count)
    }

    @Test func errorsAreToldApart() {
        let host = HostName("host.example")!
        for status in [EAI_NONAME, EAI_FAIL, NameLookup.noData, NameLookup.noAddressFamily] {
            guard case .final(let line) = NameLookup.outcome(of: status, errno: 0, host) else {
                Issue.record("\(status) is final")
                continue
            }
            #expect(line.contains("host.example"))
        }
        for status in [EAI_AGAIN, EAI_MEMORY, EAI_SYSTEM] {
            guard case .temporary = NameLookup.outcome(of: status, errno: EIO, host) else {
                Issue.record("\(status) is temporary")
                continue
            }
        }
    }
}

struct OrderByReachabilityTests {
    private let all = [v6, v4, Endpoint("[2001:db8::2]:1")!, Endpoint("192.0.2.2:1")!]

    @Test func case_C29_deadFamilyComesLast() {
        let ordered = NameLookup.orderedByReachability(all) { $0.address.family == .v4 }
        #expect(ordered == [all[1], all[3], all[0], all[2]])
    }

    @Test func case_C29_workingAddressStaysFirst() {
        let order = { (current: Endpoint?, reachable: @escaping (Endpoint) -> Bool) in
            NameLookup.orderedByReachability(all, current: current, isReachable: reachable)
        }
        #expect(order(v4, { _ in true }) == [all[1], all[0], all[2], all[3]])
        // Not when it cannot be reached any more, or the name no longer has it.
        #expect(order(v4, { $0 != v4 }) == [all[0], all[2], all[3], all[1]])
        #expect(order(Endpoint("192.0.2.9:1")!, { _ in true }) == all)
    }

    @Test func nothingIsLost() {
        for bits in 0..<16 {
            let reachable = Set(all.indices.filter { bits >> $0 & 1 == 1 }.map { all[$0] })
            for current in all {
                let ordered = NameLookup.orderedByReachability(
                    all, current: current, isReachable: reachable.contains)
                #expect(Set(ordered) == Set(all))
                #expect(ordered.count == all.count)
                #expect(Set(ordered.prefix(reachable.count)) == reachable)
            }
        }
    }
}
