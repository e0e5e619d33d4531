// SPDX-License-Identifier: Apache-2.0
// What can be proved without a kernel that has WireGuard; the messages themselves are proved by
// Tests/CNetlinkTests.
import CNetlink
import Glibc
import Testing
import TunnelPlan
import WireGuard

@testable import HostNetwork

@Suite struct KernelWireGuardTests {
    private func key(_ byte: UInt8) -> PublicKey {
        PublicKey(bytes: InlineArray<32, UInt8>(repeating: byte))
    }

    @Test func case_C83_case_C84_theProbeMakesNoLink() throws {
        let netlink = try Netlink()
        let before = Set(try netlink.links().map(\.name))
        let availability = try KernelWireGuard.availability()
        if geteuid() != 0 { #expect(availability != .available) }
        #expect(Set(try netlink.links().map(\.name)) == before)
    }

    @Test func aKindThatExistsIsToldFromOneThatDoesNot() throws {
        let netlink = try Netlink()
        let known = unsafe netlink_link_probe(netlink.handle, "veth")
        let unknown = unsafe netlink_link_probe(netlink.handle, "no-such-kind")
        if geteuid() == 0 {
            #expect(known == 0)
            #expect(unknown == -EOPNOTSUPP)
        } else {
            #expect(known == -EPERM)
        }
        let name = try #require(InterfaceName("nexusguardprobe"))
        #expect(try netlink.link(named: name) == nil)
    }

    @Test func aDeviceThatIsNotThereIsNotFoundOrUnsupported() throws {
        let kernel = try KernelWireGuard()
        let name = try #require(InterfaceName("no-such-wg"))
        let error = try #require(
            #expect(throws: NetworkError.self) { _ = try kernel.snapshot(name) })
        // Without WireGuard in the kernel there is nobody to ask.
        #expect([.notFound, .unsupported, .permission].contains(error.kind))
        #expect(error.message.contains("no-such-wg"))
    }

    @Test func changesArePackedOnceAndErased() throws {
        var peer = PeerChange(publicKey: key(2))
        peer.replaceAllowedIPs = true
        peer.keepalive = 25
        let bytes = [UInt8](repeating: 3, count: 32)
        peer.presharedKey = PresharedKey(copying: bytes.span)
        peer.endpoint = Endpoint("[fe80::1%7]:51820")
        peer.prefixes = [
            PrefixChange(try #require(Prefix("10.0.0.0/8"))),
            PrefixChange(try #require(Prefix("fd00::/8")), remove: true),
        ]
        var second = PeerChange(publicKey: key(4))
        second.remove = true
        let privateKey = SecretKey(copying: bytes.span)
        var packed = try PackedChanges(
            device: DeviceChange(privateKey: privateKey, listenPort: 1),
            peers: [peer, second], replacePeers: true)
        let takesPrefixes = packed.takesPrefixes
        #expect(takesPrefixes)
        let result = unsafe packed.send { changes in
            let device = unsafe changes.pointee.device
            #expect(device.listen_port == 1)
            #expect(device.fields == 1 << 0 | 1 << 1 | 1 << 3)
            #expect(device.private_key.31 == 3)
            #expect(unsafe changes.pointee.peer_count == 2)
            let first = unsafe changes.pointee.peers[0]
            #expect(first.public_key.0 == 2 && first.preshared_key.31 == 3)
            #expect(first.fields == 1 << 10 | 1 << 11 | 1 << 12 | 1 << 13)
            #expect(first.endpoint.scope_id == 7 && first.endpoint.port == 51820)
            #expect(first.endpoint.family == 6 && first.endpoint.bytes.0 == 0xFE)
            #expect(first.first_prefix == 0 && first.prefix_count == 2)
            #expect(unsafe changes.pointee.peers[1].fields == 1 << 8)
            #expect(unsafe changes.pointee.peers[1].prefix_count == 0)
            #expect(unsafe changes.pointee.prefixes[1].remove)
            #expect(unsafe changes.pointee.prefixes[1].prefix.bytes.0 == 0xFD)
            #expect(unsafe changes.pointee.prefixes[0].prefix.length == 8)
            return -7
        }
        #expect(result == -7)
        packed.erase()
        _ = unsafe packed.send { changes in
            #expect(unsafe changes.pointee.device.private_key.31 == 0)
            #expect(unsafe changes.pointee.peers[0].preshared_key.31 == 0)
            return 0
        }
    }

    @Test func case_C17_aZoneWithoutAnInterfaceIsNamed() throws {
        var peer = PeerChange(publicKey: key(2))
        peer.endpoint = Endpoint("[fe80::1%no-such-link]:1")
        let error = try #require(
            #expect(throws: NetworkError.self) {
                _ = try PackedChanges(device: DeviceChange(), peers: [peer], replacePeers: false)
            })
        #expect(error.message.contains("no-such-link"))
        #expect(error.kind == .notFound)
    }
}
