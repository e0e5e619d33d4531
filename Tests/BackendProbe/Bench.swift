// SPDX-License-Identifier: Apache-2.0
import Backends
import Glibc
import HostProcess
import Keeper
import LiveHost
import TunnelPlan
import WireGuard

/// A host whose files are in a directory of the test's own.
struct Bench {
    let name: InterfaceName
    /// Who moves the packets; of the userspace kind: `userspace`.
    let backend: any Backend
    let userspace: UserspaceBackend
    let paths: LiveHost.Paths

    /// `program` is an engine's path, or `kernel`.
    init(name: InterfaceName, program: String, directory: String) {
        self.name = name
        userspace = UserspaceBackend(program: program)
        backend = program == BackendKind.kernel.rawValue ? KernelBackend() : userspace
        var paths = LiveHost.Paths()
        paths.run = directory
        paths.resolver.resolvConf = "\(directory)/resolv.conf"
        paths.resolver.nameServiceSwitch = "\(directory)/nsswitch.conf"
        paths.resolver.resolvconfPrograms = []
        paths.resolver.busAddress = "unix:path=\(directory)/no-bus"
        paths.resolver.state = "\(directory)/resolv.conf.state"
        paths.resolver.run = directory
        self.paths = paths
    }

    func host() throws -> LiveHost {
        try LiveHost(name, paths: paths, userspace: userspace)
    }

    // MARK: property

    /// diff(apply(x), y) is fresh(y), on the real thing.
    func property(_ pairs: Int, seed: UInt64) throws {
        var tunnels = RandomTunnels(seed: seed, backend: backend.kind)
        var host = try host()
        var changes = 0
        for pair in 0..<pairs {
            let wanted = tunnels.tunnel()
            let steps = plan(from: try host.snapshot(), to: wanted)
            try perform(steps, together: pair % 2 == 1, &host, pair)
            changes += steps.count
            try expect(wanted, &host, pair)
            if pair % 10 == 9 {
                try remove(&host, pair)
                for step in plan(from: nil, to: wanted) { try perform(step, &host, pair) }
                try expect(wanted, &host, pair)
            }
        }
        try remove(&host, pairs)
        say("\(pairs) pairs, \(changes) changes, all as fresh")
    }

    /// `together`: the device's steps in runs, as the keeper hands them over.
    private func perform(
        _ steps: [Change], together: Bool, _ host: inout LiveHost, _ pair: Int
    ) throws {
        var rest = steps[...]
        while let step = rest.first {
            let run = rest.prefix { isOfDevice($0) }
            if together, run.count > 1 {
                // As the keeper does it: each by itself says what fails.
                if !host.performTogether(run) {
                    warn("pair \(pair): \(run.count) steps together failed; made one by one")
                    for step in run { try perform(step, &host, pair) }
                }
                rest = rest.dropFirst(run.count)
            } else {
                try perform(step, &host, pair)
                rest = rest.dropFirst()
            }
        }
    }

    private func isOfDevice(_ change: Change) -> Bool {
        switch change {
        case .setDevice, .addPeer, .changePeer, .removePeer: true
        default: false
        }
    }

    private func perform(_ step: Change, _ host: inout LiveHost, _ pair: Int) throws {
        do {
            try host.perform(step)
        } catch {
            fail("pair \(pair): \(step): \(error)")
        }
    }

    private func expect(_ wanted: DesiredTunnel, _ host: inout LiveHost, _ pair: Int) throws {
        guard let actual = try host.snapshot() else { fail("pair \(pair): no tunnel") }
        var model = TunnelModel()
        try model.apply(plan(from: nil, to: wanted))
        guard let expected = model.state else { fail("pair \(pair): no model") }
        let (left, right) = (Meaning(actual), Meaning(expected))
        guard left == right else {
            fail("pair \(pair): differs from fresh\n  is     \(left)\n  fresh  \(right)")
        }
        let rest = plan(from: actual, to: wanted)
        guard rest.isEmpty else { fail("pair \(pair): \(rest.count) changes are left: \(rest)") }
    }

    private func remove(_ host: inout LiveHost, _ pair: Int) throws {
        guard let state = try host.snapshot() else { fail("pair \(pair): no tunnel to remove") }
        for step in undo(of: state) { try perform(step, &host, pair) }
        guard try host.snapshot() == nil else { fail("pair \(pair): the link is still there") }
    }

    // MARK: owners

    /// Leaves a full tunnel behind, as a keeper that is killed does; a second host finds the same.
    func adopt() throws {
        var tunnels = RandomTunnels(seed: 1, backend: backend.kind)
        let wanted = tunnels.fullTunnel()
        var first = try host()
        for step in plan(from: try first.snapshot(), to: wanted) { try first.perform(step) }
        let before = try first.snapshot()
        var second = try host()
        guard let before, let after = try second.snapshot(), Meaning(before) == Meaning(after)
        else {
            fail("the second host sees another tunnel")
        }
        let rest = plan(from: after, to: wanted)
        guard rest.isEmpty else { fail("the second host would change \(rest)") }
        say("adopted without a change")
    }

    func down() throws {
        var host = try host()
        guard let state = try host.snapshot() else { fail("there is no tunnel") }
        for step in undo(of: state) { try host.perform(step) }
        say("down")
    }

    func foreign() throws {
        var host = try host()
        do throws(KeeperFailure) {
            _ = try host.snapshot()
            fail("it was taken for ours")
        } catch {
            say("\(error.kind): \(error)")
        }
    }

    /// One line for each kind of event.
    func events() throws {
        var host = try host()
        _ = try host.snapshot()
        say("listening")
        var poller = Poller()
        while true {
            poller.removeAll()
            let input = poller.add(STDIN_FILENO)
            for descriptor in host.descriptors { poller.add(descriptor) }
            poller.wait(milliseconds: nil)
            for event in host.drainEvents() { say("\(event)") }
            if poller.isReadable(input) { return }
        }
    }
}
