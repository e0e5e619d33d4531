// SPDX-License-Identifier: Apache-2.0
import Testing
import WireGuard

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

    mutating func key() -> InlineArray<32, UInt8> {
        var bytes = InlineArray<32, UInt8>(repeating: 0)
        for index in bytes.indices { bytes[index] = UInt8(truncatingIfNeeded: next()) }
        return bytes
    }

    /// Groups of zeros are as likely as others: they are what the text forms are about.
    mutating func address() -> IPAddress {
        if oneIn(2) { return .v4(UInt32(truncatingIfNeeded: next())) }
        var words: [UInt64] = [0, 0]
        for index in 0..<8 {
            let group = oneIn(2) ? 0 : next() & (oneIn(2) ? 0xFFFF : 0xF)
            words[index / 4] = words[index / 4] << 16 | group
        }
        if oneIn(8) { words = [0, 0xFFFF_0000_0000 | next() & 0xFFFF_FFFF] }
        return .v6(high: words[0], low: words[1])
    }
}

extension PublicKey {
    /// A key that is easy to tell in a text.
    init(filledWith byte: UInt8) { self.init(bytes: InlineArray(repeating: byte)) }
}

extension SecretKey {
    init(filledWith byte: UInt8) { self.init(copying: [UInt8](repeating: byte, count: 32).span) }
}

extension PresharedKey {
    init(filledWith byte: UInt8) { self.init(copying: [UInt8](repeating: byte, count: 32).span) }
}

func hex(_ byte: UInt8) -> String { PublicKey(filledWith: byte).hex }

func prefix(_ text: String) -> Prefix { Prefix(text)! }

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

/// All answers to `input` given at once, and whether the connection must close.
func converse(_ input: String, with device: MemoryDevice) -> (output: String, mustClose: Bool) {
    converse([[UInt8](input.utf8)], with: device)
}

/// The same, the input in fragments.
func converse(_ fragments: [[UInt8]], with device: MemoryDevice) -> (
    output: String, mustClose: Bool
) {
    var connection = UAPIConnection()
    var output: [UInt8] = []
    for fragment in fragments {
        connection.receive(fragment, device: device)
        output += connection.takeOutput()
        while connection.hasHeldInput, !connection.mustClose {
            connection.receive([], device: device)
            output += connection.takeOutput()
        }
    }
    let mustClose = connection.mustClose
    connection.finish(device: device)
    return (String(decoding: output, as: UTF8.self), mustClose)
}
