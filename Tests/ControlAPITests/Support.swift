// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import FoundationEssentials
import Testing

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014):
/// the same numbers in every run, so that a failure can be repeated.
struct Random: RandomNumberGenerator {
    var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
        return z ^ z >> 31
    }

    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

    mutating func oneIn(_ count: Int) -> Bool { below(count) == 0 }

    mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) }
    }
}

/// `#expect` for loops of many thousand rounds: costs nothing while the condition holds.
func hold(
    _ condition: Bool, _ note: @autoclosure () -> String = "",
    sourceLocation: SourceLocation = #_sourceLocation
) {
    if !condition {
        Issue.record("does not hold: \(note())", sourceLocation: sourceLocation)
    }
}

/// What `body` throws, or nil.
func thrown<Failure: Error>(_ body: () throws(Failure) -> some Any) -> Failure? {
    do throws(Failure) {
        _ = try body()
        return nil
    } catch { return error }
}

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
