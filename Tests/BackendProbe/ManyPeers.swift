// SPDX-License-Identifier: Apache-2.0
import Backends
import Glibc
import WireGuard

extension Bench {
    // MARK: many

    func many(_ count: Int) throws {
        try backend.create(name)
        let key = secretKey(1)
        let peers = (0..<count).map { manyPeer($0) }
        for round in 0..<2 {
            try backend.apply(
                name, device: DeviceChange(privateKey: key), peers: peers,
                replacePeers: round == 1)
            let found = try backend.snapshot(name)
            let expected = Set(peers.map { $0.prefixes[0].prefix })
            guard found.peers.count == count,
                Set(found.peers.flatMap(\.prefixes)) == expected, found.privateKey == key
            else { fail("\(found.peers.count) peers came back of \(count)") }
        }
        try backend.apply(
            name, device: DeviceChange(), peers: [peers[0]], replacePeers: true)
        let left = try backend.snapshot(name).peers.count
        guard left == 1 else { fail("\(left) peers are left after a replacement by one") }
        guard try backend.names().contains(name) else { fail("\(name) is not among the names") }
        try backend.remove(name)
        guard try !backend.names().contains(name) else { fail("\(name) is still there") }
        say("\(count) peers, twice, then 1")
    }

    private func manyPeer(_ number: Int) -> PeerChange {
        var bytes = InlineArray<32, UInt8>(repeating: 9)
        for index in 0..<4 { bytes[index] = UInt8(truncatingIfNeeded: number >> (8 * index)) }
        var peer = PeerChange(publicKey: PublicKey(bytes: bytes))
        peer.keepalive = 0
        peer.prefixes = [PrefixChange(host(number))]
        return peer
    }

    private func host(_ number: Int) -> Prefix {
        Prefix(address: .v4(0x0A00_0000 + UInt32(number)), length: 32)!
    }

    // MARK: long lists

    /// A list that no message holds is set and read in parts, which are one peer all the same. It
    /// stands between others, moves to another peer, and loses a part.
    func long(_ count: Int) throws {
        try backend.create(name)
        var lists = [
            0..<1, 1..<count, count..<count, count..<(3 * count / 2),
            (3 * count / 2)..<(3 * count / 2 + 2),
        ].map { Set($0.map(host)) }
        let device = DeviceChange(privateKey: secretKey(1))
        try backend.apply(name, device: device, peers: changes(lists), replacePeers: true)
        try expect(lists, "set")
        try backend.apply(name, device: device, peers: changes(lists), replacePeers: true)
        try expect(lists, "set again")

        lists[2].formUnion(lists[1])
        lists[1] = []
        var moved = manyPeer(2)
        moved.prefixes = lists[2].map { PrefixChange($0) }
        try backend.apply(name, device: DeviceChange(), peers: [moved], replacePeers: false)
        try expect(lists, "moved")

        let taken = Set(lists[2].prefix(count / 2))
        lists[2].subtract(taken)
        var cut = manyPeer(2)
        cut.updateOnly = true
        cut.prefixes = taken.map { PrefixChange($0, remove: true) }
        try backend.apply(name, device: DeviceChange(), peers: [cut], replacePeers: false)
        try expect(lists, "cut")
        try backend.remove(name)
        say("lists of up to \(count) prefixes: set, moved, cut")
    }

    private func changes(_ lists: [Set<Prefix>]) -> [PeerChange] {
        lists.enumerated().map { number, list in
            var peer = manyPeer(number)
            peer.replaceAllowedIPs = true
            peer.prefixes = list.map { PrefixChange($0) }
            return peer
        }
    }

    private func expect(_ lists: [Set<Prefix>], _ what: String) throws {
        let found = try backend.snapshot(name).peers
        guard found.count == lists.count else { fail("\(what): \(found.count) peers") }
        for (number, list) in lists.enumerated() {
            let key = manyPeer(number).publicKey
            let parts = found.filter { $0.publicKey == key }
            guard parts.count == 1, parts[0].prefixes.count == list.count,
                Set(parts[0].prefixes) == list
            else {
                let counts = parts.map(\.prefixes.count)
                fail("\(what): peer \(number) has \(counts) prefixes, not \(list.count)")
            }
        }
    }

    // MARK: cost

    /// The time of this process and of the kernel for it.
    func cost(_ count: Int) throws {
        let peers = (0..<count).map { manyPeer($0) }
        try backend.create(name)
        let begin = clock()
        try backend.apply(
            name, device: DeviceChange(privateKey: secretKey(1)), peers: peers, replacePeers: true)
        let found = try backend.snapshot(name).peers.count
        guard found == count else { fail("\(found) peers of \(count)") }
        say("\((clock() - begin) / (Int(CLOCKS_PER_SEC) / 1000))")
        try backend.remove(name)
    }
}
