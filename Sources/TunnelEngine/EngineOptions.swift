// SPDX-License-Identifier: Apache-2.0
import CTunnel

/// How an engine is made. Every rung of the offload ladder can be switched off; what the kernel
/// lacks is found by probing.
public struct EngineOptions: Sendable {
    /// Rungs not to use even where the kernel has them; tunnel.h says what each is.
    public struct Switches: OptionSet, Sendable {
        public let rawValue: UInt32
        public init(rawValue: UInt32) { self.rawValue = rawValue }

        public static let noVnetHeader = Switches(rawValue: 1 << 0)
        public static let noTunGSO = Switches(rawValue: 1 << 1)
        public static let noTunUSO = Switches(rawValue: 1 << 2)
        public static let noTunMerge = Switches(rawValue: 1 << 3)
        public static let noTunUDPMerge = Switches(rawValue: 1 << 4)
        public static let noUDPGSO = Switches(rawValue: 1 << 5)
        public static let noUDPGRO = Switches(rawValue: 1 << 6)
        public static let noSendmmsg = Switches(rawValue: 1 << 7)
        public static let noSteering = Switches(rawValue: 1 << 8)
    }

    /// Interface name, at most 15 bytes.
    public var name: String
    /// An open TUN descriptor to take over; nil: create the device.
    public var tunDescriptor: Int32?
    /// Worker pairs; 0: half the CPUs, at least one.
    public var workers: UInt32 = 0
    /// 0: 1420 for a device made here, unchanged for a given one.
    public var mtu: UInt32 = 0
    /// Microseconds, at most `maximumSpin`: how long after a packet a worker waits for the next one
    /// without sleeping. 0: not at all.
    public var spin: UInt32 = 0
    public var switches: Switches = []
    /// "": measure and choose; or one of `aeadNames`.
    public var aead = ""
    /// Of the program; the state document names it.
    public var version = "unknown"

    public static let maximumSpin = UInt32(TUNNEL_MAX_SPIN_US)

    public init(name: String) { self.name = name }

    /// Every back-end there is; not every machine runs all.
    public static let aeadNames = [
        "avx512", "avx2", "ipsec-mb", "libcrypto", "portable", "libsodium",
    ]
}

/// Why an engine could not be made or started: what was tried, on what, and what to do.
public struct EngineError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Positive.
    public let errno: Int32
    public let message: String

    public init(errno: Int32, message: String) {
        self.errno = errno
        self.message = message
    }

    public var description: String { message }
}

public enum LogLevel: UInt32, Sendable, Comparable {
    case error = 0
    case info = 1
    case debug = 2

    public static func < (left: LogLevel, right: LogLevel) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// A TAI64N label as a point of CLOCK_REALTIME (pitfall 53, C78).
public struct TimestampFloor: Equatable, Comparable, Sendable {
    public var seconds: UInt64
    /// Below 10^9.
    public var nanoseconds: UInt32

    public init(seconds: UInt64, nanoseconds: UInt32) {
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }

    public static func < (left: TimestampFloor, right: TimestampFloor) -> Bool {
        (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
    }
}

extension EngineOptions {
    /// nil: a text is too long for its field, or holds a NUL.
    func toC() -> tunnel_options? {
        var options = tunnel_options()
        unsafe tunnel_options_init(&options)
        guard unsafe copy(name, to: &options.name), unsafe copy(aead, to: &options.aead) else {
            return nil
        }
        options.tun_fd = tunDescriptor ?? -1
        options.workers = workers
        options.mtu = mtu
        options.spin_us = spin
        options.no_vnet_hdr = switches.contains(.noVnetHeader)
        options.no_tun_gso = switches.contains(.noTunGSO)
        options.no_tun_uso = switches.contains(.noTunUSO)
        options.no_tun_merge = switches.contains(.noTunMerge)
        options.no_tun_udp_merge = switches.contains(.noTunUDPMerge)
        options.no_udp_gso = switches.contains(.noUDPGSO)
        options.no_udp_gro = switches.contains(.noUDPGRO)
        options.no_sendmmsg = switches.contains(.noSendmmsg)
        options.no_steering = switches.contains(.noSteering)
        return options
    }
}
