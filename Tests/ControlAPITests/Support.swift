// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import FoundationEssentials
import Testing

/// A file of the checkout, from its root.
func file(_ path: String) throws -> [UInt8] {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    return Array(try Data(contentsOf: root.appending(path: path)))
}

/// Known answers made by Tests/vectors/make_control_vectors.py.
func vectors<T: Decodable>(_ name: String, of type: T.Type = T.self) throws -> T {
    try Wire.decode(type, from: try file("Tests/vectors/" + name))
}

func base64(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }

/// A small configuration that is valid.
func sampleConfig() -> WireGuardConfig {
    WireGuardConfig(
        deviceId: "0d9f1c2e-3b4a-4c5d-8e6f-708192a3b4c5", internalIp: "10.172.21.2/32",
        serverPub: base64([UInt8](repeating: 1, count: 32)), endpoint: "hub.example:51820",
        allowedIps: "10.172.21.0/24")
}
