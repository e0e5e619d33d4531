// SPDX-License-Identifier: Apache-2.0
import CHostProcess
import Glibc

/// Another program that was started here: in a session of its own, with no descriptor of ours, so
/// that it outlives us. Only its beginning is ours to see; at the end of this value's life it goes
/// on.
public struct ChildProcess: ~Copyable {
    private var child: host_child
    /// Its path.
    public let program: String

    /// How it ended.
    public enum End: Equatable, Sendable {
        case exited(UInt8)
        case killed(signal: Int32)
    }

    /// Starts the program at `path`. Its environment is `environment` (`NAME=value`) and no more.
    public static func start(
        _ path: String, arguments: [String], environment: [String]
    ) throws(HostError) -> ChildProcess {
        var child = host_child()
        let status = unsafe withCStrings([path] + arguments) { arguments in
            unsafe withCStrings(environment) { environment in
                unsafe host_child_start(&child, path, arguments, environment)
            }
        }
        guard status == 0 else {
            throw HostError(errno: -status, "cannot start \(path): \(textOfErrno(-status))")
        }
        return ChildProcess(child: child, program: path)
    }

    private init(child: consuming host_child, program: String) {
        self.child = child
        self.program = program
    }

    deinit {
        var copy = child
        unsafe host_child_close(&copy)
    }

    /// Readable when it has ended; nil where the kernel has no such descriptor (before Linux 5.3).
    public var descriptor: Int32? { child.pid_fd < 0 ? nil : child.pid_fd }

    /// nil: it runs. Never waits.
    public mutating func end() -> End? {
        guard unsafe host_child_has_ended(&child) else { return nil }
        return child.signal != 0
            ? .killed(signal: child.signal) : .exited(UInt8(clamping: child.exit_code))
    }

    /// Ends it and what it started in its session, at once, and leaves no zombie.
    public mutating func kill() {
        unsafe host_child_kill([child])
        _ = wait(milliseconds: Self.dyingLimit)
    }

    /// Milliseconds; only a process in the midst of a device's work takes longer after SIGKILL.
    private static let dyingLimit: Int64 = 1000

    /// The first `limit` bytes of what it wrote to standard output and standard error so far, as
    /// text; without the white space at its end.
    public func output(limit: Int = 4096) -> String {
        var buffer = [CChar](repeating: 0, count: limit)
        let length = unsafe host_child_output([child], &buffer, buffer.count)
        guard length > 0 else { return "" }
        let bytes = buffer.prefix(length).map { UInt8(bitPattern: $0) }
        let end = bytes.lastIndex { $0 != 0x20 && $0 != 0x0A && $0 != 0x0D && $0 != 0x09 }
        return String(decoding: bytes[..<(end.map { $0 + 1 } ?? 0)], as: UTF8.self)
    }

    /// Waits for its end; nil when `milliseconds` have passed: it still runs.
    public mutating func wait(milliseconds: Int64) -> End? {
        let deadline = Host.monotonicMilliseconds() + milliseconds
        var poller = Poller()
        while true {
            if let end = end() { return end }
            let rest = deadline - Host.monotonicMilliseconds()
            guard rest > 0 else { return nil }
            poller.removeAll()
            if let descriptor {
                poller.add(descriptor)
                poller.wait(milliseconds: rest)
            } else {
                poller.wait(milliseconds: min(rest, 5))
            }
        }
    }
}

/// `body` with a vector of C strings that ends with NULL, as execve(2) takes it.
private func withCStrings<Result>(
    _ strings: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
) -> Result {
    var vector = unsafe strings.map { unsafe strdup($0) }
    unsafe vector.append(nil)
    defer { for index in unsafe vector.indices { unsafe free(vector[index]) } }
    return unsafe vector.withUnsafeBufferPointer { unsafe body($0.baseAddress!) }
}

extension Host {
    /// The file that this process runs (proc(5), `exe`); nil when /proc cannot tell.
    public static var programPath: String? {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let length = unsafe readlink("/proc/self/exe", &buffer, buffer.count - 1)
        guard length > 0 else { return nil }
        return string(fromC: buffer)
    }

    /// Whether this process may execute the file at `path`.
    public static func isExecutable(_ path: String) -> Bool {
        guard unsafe access(path, X_OK) == 0 else { return false }
        var status = stat()
        return unsafe stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }
}
