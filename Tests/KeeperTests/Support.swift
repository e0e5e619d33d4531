// SPDX-License-Identifier: Apache-2.0
import Testing
import TunnelPlan
import WireGuard

@testable import Keeper

let wg0 = InterfaceName("wg0")!

func key(_ number: UInt8) -> PublicKey {
    var bytes = InlineArray<32, UInt8>(repeating: number)
    bytes[31] = 1
    return PublicKey(bytes: bytes)
}

/// A file of wg-quick with a private key; `lines` follow in [Interface].
func text(_ lines: String..., peers: String...) -> String {
    let key = String(repeating: "A", count: 40) + "AWE="
    return (["[Interface]", "PrivateKey = \(key)"] + lines + peers).joined(separator: "\n") + "\n"
}

func peer(_ number: UInt8, _ lines: String...) -> String {
    (["[Peer]", "PublicKey = \(key(number).base64)"] + lines).joined(separator: "\n")
}

func intent(
    _ text: String, backend: BackendKind = .userspace, hooks: HookPolicy = .refuse
) -> Intent {
    let bytes = [UInt8](text.utf8)
    let parsed = try! ConfigurationFile.parse(bytes.span, file: "test")
    return Intent(parsed.configuration, backend: backend, hooks: hooks)
}

let small = text("Address = 10.7.0.1/24", "MTU = 1420", peers: peer(1, "AllowedIPs = 10.7.0.2/32"))
let other = text(
    "Address = 10.8.0.1/24", "MTU = 1380", peers: peer(1, "AllowedIPs = 10.8.0.2/32"),
    peer(2, "AllowedIPs = 10.9.0.0/16"))
let full = text(
    "Address = 10.7.0.1/24", "DNS = 10.7.0.53", "MTU = 1420",
    peers: peer(1, "AllowedIPs = 0.0.0.0/0", "Endpoint = 192.0.2.1:51820"))
