// SPDX-License-Identifier: Apache-2.0
import Testing
import WireGuard

@testable import TunnelPlan

/// The key that number `number` stands for.
func key(_ number: Int) -> PublicKey {
    var bytes = InlineArray<32, UInt8>(repeating: 0)
    for index in 0..<8 { bytes[index] = UInt8(truncatingIfNeeded: number >> (8 * index)) }
    bytes[31] = 1
    return PublicKey(bytes: bytes)
}

func secret(_ byte: UInt8) -> SecretKey {
    SecretKey(copying: [UInt8](repeating: byte, count: 32).span)
}

func preshared(_ byte: UInt8) -> PresharedKey {
    PresharedKey(copying: [UInt8](repeating: byte, count: 32).span)
}

func prefix(_ text: String) -> Prefix { Prefix(text)! }

func address(_ text: String) -> InterfaceAddress {
    let bytes = [UInt8](text.utf8)
    return InterfaceAddress(bytes.span)!
}

func endpoint(_ text: String) -> Endpoint { Endpoint(text)! }

let wg0 = InterfaceName("wg0")!

/// A file with a private key, and these.
func file(
    addresses: [String] = [], _ peers: ConfigurationFile.Peer...,
    change: (inout ConfigurationFile.Interface) -> Void = { _ in }
) -> ConfigurationFile {
    var file = ConfigurationFile()
    file.interface.privateKey = secret(7)
    file.interface.addresses = addresses.map { address($0) }
    change(&file.interface)
    file.peers = peers
    return file
}

func peer(_ number: Int, _ allowed: [String] = [], endpoint text: String? = nil)
    -> ConfigurationFile.Peer
{
    var peer = ConfigurationFile.Peer(publicKey: key(number))
    peer.allowedIPs = allowed.map { prefix($0) }
    peer.endpoint = text.map { .address(endpoint($0)) }
    return peer
}

func decide(
    _ file: ConfigurationFile, _ facts: HostFacts = HostFacts(),
    _ options: TunnelOptions = TunnelOptions()
) -> TunnelDecision {
    DesiredTunnel.from(configuration: file, name: wg0, facts: facts, options: options)
}

/// What is there after the plan from nothing.
func made(_ tunnel: DesiredTunnel, from before: TunnelState? = nil) throws -> TunnelState {
    var model = TunnelModel(before)
    try model.apply(plan(from: before, to: tunnel))
    return try #require(model.state)
}
