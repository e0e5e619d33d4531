// SPDX-License-Identifier: Apache-2.0
import Glibc

extension StandardStream {
    /// Writes all of `bytes`. A reader that has gone is no error (C92); anything else, as a full
    /// disk, is.
    public func write(bytes: [UInt8]) throws(HostError) {
        let failure = writeWhole(rawValue, bytes)
        guard failure != 0, failure != EPIPE else { return }
        let name = self == .output ? "standard output" : "standard error"
        throw HostError(errno: failure, "cannot write to \(name): \(textOfErrno(failure))")
    }

    public var isTerminal: Bool { isatty(rawValue) == 1 }

    /// Leads to a regular file that everybody may read or write.
    public var isFileOpenToAll: Bool {
        var status = stat()
        guard unsafe fstat(rawValue, &status) == 0 else { return false }
        return status.st_mode & S_IFMT == S_IFREG && status.st_mode & 0o006 != 0
    }
}

extension Host {
    public static var isStandardInputTerminal: Bool { isatty(STDIN_FILENO) == 1 }

    /// Writing to a pipe that nobody reads then fails with EPIPE instead of ending the process.
    public static func ignoreBrokenPipes() { signal(SIGPIPE, SIG_IGN) }

    /// The names in a directory in its own order, without `.` and `..`; none when there is no such
    /// directory or it may not be read.
    public static func names(in directory: String) -> [String] {
        guard let stream = unsafe opendir(directory) else { return [] }
        defer { unsafe closedir(stream) }
        var names: [String] = []
        while let entry = unsafe readdir(stream) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                unsafe String(
                    cString: UnsafeRawPointer(pointer).assumingMemoryBound(to: CChar.self))
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    /// The number of this process's network namespace (namespaces(7)); nil when /proc cannot tell.
    public static var networkNamespace: UInt64? {
        var status = stat()
        guard unsafe stat("/proc/self/ns/net", &status) == 0 else { return nil }
        return UInt64(status.st_ino)
    }

    /// Seconds since 1970 and nanoseconds, of the wall clock.
    public static func wallClock() -> (seconds: Int64, nanoseconds: UInt32) {
        var now = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &now)
        return (Int64(now.tv_sec), UInt32(now.tv_nsec))
    }

    /// Milliseconds since 1970, of the wall clock.
    public static func wallMilliseconds() -> Int64 {
        let now = wallClock()
        return now.seconds * 1000 + Int64(now.nanoseconds) / 1_000_000
    }

    /// This host's name (gethostname(2)); empty when it cannot be told.
    public static var name: String {
        var buffer = [CChar](repeating: 0, count: 256)
        guard unsafe gethostname(&buffer, buffer.count - 1) == 0 else { return "" }
        return string(fromC: buffer)
    }

    /// As seen from the working directory of now.
    public static func absolutePath(_ path: String) -> String {
        guard !path.hasPrefix("/") else { return path }
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        guard unsafe getcwd(&buffer, buffer.count) != nil else { return path }
        return string(fromC: buffer) + "/" + path
    }
}
