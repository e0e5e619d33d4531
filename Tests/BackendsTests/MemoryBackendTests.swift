// SPDX-License-Identifier: Apache-2.0
import TestSupport
import Testing
import TunnelPlan
import WireGuard

@testable import Backends

extension SeededRandom {
    /// About few enough keys and prefixes that they meet.
    mutating func change() -> PeerChange {
        var peer = PeerChange(publicKey: key(UInt8(1 + below(5))))
        peer.remove = oneIn(8)
        peer.updateOnly = oneIn(6)
        peer.replaceAllowedIPs = oneIn(5)
        if oneIn(3) { peer.keepalive = UInt16(below(3)) }
        for _ in 0..<below(5) {
            let prefix = Prefix(address: .v4(0x0A00_0000 + UInt32(below(6))), length: 32)!
            guard !peer.prefixes.contains(where: { $0.prefix == prefix }) else { continue }
            peer.prefixes.append(PrefixChange(prefix, remove: oneIn(3)))
        }
        return peer
    }
}

/// In no order.
private func meaning(_ device: DeviceSnapshot) -> [PublicKey: [Set<Prefix>]] {
    Dictionary(uniqueKeysWithValues: device.peers.map { ($0.publicKey, [Set($0.prefixes)]) })
}

/// Who holds a prefix, and who exists, one change after the other: what the protocol says, in its
/// plainest form.
private func reference(
    _ changes: [PeerChange], replacing: Bool, _ state: [PublicKey: Set<Prefix>]
) -> [PublicKey: Set<Prefix>] {
    var state = state
    for change in changes {
        if change.remove {
            state[change.publicKey] = nil
            continue
        }
        if state[change.publicKey] == nil {
            if change.updateOnly { continue }
            state[change.publicKey] = []
        }
        if change.replaceAllowedIPs { state[change.publicKey] = [] }
        for entry in change.prefixes {
            if entry.remove {
                state[change.publicKey]!.remove(entry.prefix)
            } else {
                for key in state.keys { state[key]!.remove(entry.prefix) }
                state[change.publicKey]!.insert(entry.prefix)
            }
        }
    }
    if replacing {
        let named = Set(changes.map(\.publicKey))
        state = state.filter { named.contains($0.key) }
    }
    return state
}

@Suite struct MemoryBackendTests {
    @Test func random_changes_mean_what_the_protocol_says_also_without_removals() throws {
        var random = SeededRandom(seed: 5)
        for round in 0..<2000 {
            let backend = MemoryBackend(kind: .userspace)
            let old = MemoryBackend(kind: .userspace)
            try backend.create(wg0)
            try old.create(wg0)
            var expected: [PublicKey: Set<Prefix>] = [:]
            for _ in 0..<3 {
                let changes = (0..<random.below(6)).map { _ in random.change() }
                let replace = random.oneIn(4)
                try backend.apply(
                    wg0, device: DeviceChange(), peers: changes, replacePeers: replace)
                let avoided = PrefixRemoval.avoided(in: changes, actual: try old.snapshot(wg0))
                if PrefixRemoval.isUsed(in: avoided) { Issue.record("round \(round): a removal") }
                try old.apply(wg0, device: DeviceChange(), peers: avoided, replacePeers: replace)
                expected = reference(changes, replacing: replace, expected)
                let actual = meaning(try backend.snapshot(wg0)).mapValues { $0[0] }
                if actual != expected { Issue.record("round \(round): memory") }
                let older = meaning(try old.snapshot(wg0)).mapValues { $0[0] }
                if older != expected { Issue.record("round \(round): without removals") }
            }
        }
    }

    @Test func a_name_is_made_once_and_removed_often() throws {
        let backend = MemoryBackend(kind: .kernel)
        try backend.create(wg0)
        #expect(thrown { () throws(BackendError) in try backend.create(wg0) }?.kind == .taken)
        #expect(try backend.names() == [wg0])
        try backend.remove(wg0)
        try backend.remove(wg0)
        #expect(
            thrown { () throws(BackendError) in try backend.snapshot(wg0) }?.kind == .notRunning)
    }
}

@Suite struct BackendSelectionTests {
    private let noRight = BackendAvailability.unavailable(BackendError(.permission, "no right"))
    private let noModule = BackendAvailability.unavailable(BackendError(.unavailable, "no module"))
    private let noEngine = BackendAvailability.unavailable(BackendError(.unavailable, "no engine"))

    private func choose(
        _ preference: BackendKind?, _ kernel: BackendAvailability, _ engine: BackendAvailability
    ) throws(BackendError) -> BackendSelection {
        try BackendSelection.choose(preference, kernel: kernel, userspace: engine)
    }

    @Test func the_kernel_comes_first_and_needs_no_reason() throws {
        #expect(try choose(nil, .available, .available) == BackendSelection(.kernel))
        #expect(try choose(nil, .available, noEngine) == BackendSelection(.kernel))
    }

    @Test func case_C84_without_the_kernels_the_engine_is_used_and_one_line_says_why() throws {
        let selection = try choose(nil, noModule, .available)
        #expect(selection.kind == .userspace)
        #expect(selection.note == "using nexusguard-engine: no module")
    }

    @Test func what_was_asked_for_is_used_or_its_lack_is_told() throws {
        #expect(try choose(.userspace, .available, .available) == BackendSelection(.userspace))
        #expect(try choose(.kernel, .available, .available) == BackendSelection(.kernel))
        let module = thrown { () throws(BackendError) in try choose(.kernel, noModule, .available) }
        #expect(module?.message == "no module")
        let engine = thrown { () throws(BackendError) in
            try choose(.userspace, .available, noEngine)
        }
        #expect(engine?.message == "no engine")
    }

    @Test func case_C83_a_missing_right_is_named_and_not_the_missing_module() {
        let error = thrown { () throws(BackendError) in try choose(nil, noRight, noRight) }
        #expect(error?.kind == .permission)
        let both = thrown { () throws(BackendError) in try choose(nil, noModule, noRight) }
        #expect(both?.kind == .permission)
        let neither = thrown { () throws(BackendError) in try choose(nil, noModule, noEngine) }
        #expect(neither?.kind == .unavailable)
        #expect(neither?.message == "no engine; and no module")
    }
}
