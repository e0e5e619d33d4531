// SPDX-License-Identifier: Apache-2.0

/// SplitMix64 (Steele, Lea, Flood, 2014). Part of the state, so that the state machine stays a pure
/// function; it spreads times and guards no secret.
public struct SplitMix: RandomNumberGenerator, Equatable, Sendable {
    private var state: UInt64

    public init(seed: UInt64) { state = seed }

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
        return z ^ z >> 31
    }
}

/// Milliseconds of CLOCK_BOOTTIME: they go on while the machine sleeps, and no clock setting moves
/// them.
public typealias Moment = Int64
