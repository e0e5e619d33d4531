// SPDX-License-Identifier: Apache-2.0
import TestSupport
import Testing
import WireGuard

extension SeededRandom {
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
