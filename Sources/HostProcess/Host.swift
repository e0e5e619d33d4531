// SPDX-License-Identifier: Apache-2.0
import CHostProcess
import Glibc

/// The process as its starter made it.
public enum Host {
    /// A variable that is set and not empty.
    public static func environment(_ name: String) -> String? {
        guard let value = unsafe getenv(name), unsafe value.pointee != 0 else { return nil }
        return unsafe String(cString: value)
    }

    /// Fills missing standard streams and closes every inherited descriptor but `kept`, which must
    /// be open. Returns those as numbers above the standard streams.
    public static func cleanDescriptors(keeping kept: [Int32]) throws(HostError) -> [Int32] {
        let result = unsafe kept.withUnsafeBufferPointer { list in
            unsafe host_clean_descriptors(list.baseAddress, list.count)
        }
        guard result == 0 else {
            throw HostError(
                errno: -result, "cannot take over descriptors \(kept): \(textOfErrno(-result))")
        }
        return kept.map { host_move_above_standard($0) }
    }

    public static func isOpen(_ descriptor: Int32) -> Bool { fcntl(descriptor, F_GETFD) >= 0 }

    /// CLOCK_MONOTONIC, in milliseconds.
    public static func monotonicMilliseconds() -> Int64 {
        var now = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &now)
        return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
    }

    public static func exit(_ code: UInt8) -> Never { Glibc.exit(Int32(code)) }
}

/// Whole texts to a standard stream. A closed pipe is no error (C92).
public enum StandardStream: Int32 {
    case output = 1
    case error = 2

    public func write(_ text: String) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let length = unsafe rest.withUnsafeBytes { bytes in
                unsafe Glibc.write(rawValue, bytes.baseAddress, bytes.count)
            }
            if length > 0 {
                rest = rest.dropFirst(length)
            } else if errno != EINTR {
                return
            }
        }
    }
}
