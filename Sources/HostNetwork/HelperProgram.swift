// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Runs a program to its end, with a bound.
enum HelperProgram {
    enum Failure: Error {
        /// An errno.
        case start(Int32)
        case tooLong
        /// Its exit code, 128 and more for a signal, and what it printed on both streams.
        case status(Int32, String)
    }

    /// Longer than resolvconf waits for its own lock (10 s).
    static let seconds = 15
    private static let outputLimit = 64 << 10

    /// What it printed on standard output and standard error. `input`, up to what a socket takes,
    /// is its standard input.
    static func run(
        _ path: String, _ arguments: [String], input: [UInt8]
    ) throws(Failure) -> String {
        // Sockets, since writing to one whose reader is gone can be had without a signal.
        let standardInput = try Pair()
        defer { standardInput.closeBoth() }
        let standardOutput = try Pair()
        defer { standardOutput.closeBoth() }
        let process = try start(
            path, arguments, input: standardInput.theirs, output: standardOutput.theirs)
        standardInput.closeTheirs()
        standardOutput.closeTheirs()
        _ = unsafe input.withUnsafeBytes { bytes in
            unsafe send(
                standardInput.ours, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        }
        standardInput.closeOurs()
        return try wait(for: process, output: standardOutput.ours)
    }

    private static func start(
        _ path: String, _ arguments: [String], input: Int32, output: Int32
    ) throws(Failure) -> pid_t {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
        unsafe posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
        unsafe posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO)
        let environment = ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"]
        var process: pid_t = 0
        let status = unsafe withCStrings([path] + arguments) { arguments in
            unsafe withCStrings(environment) { environment in
                unsafe posix_spawn(&process, path, &actions, nil, arguments, environment)
            }
        }
        guard status == 0 else { throw .start(status) }
        return process
    }

    /// Looks every 20 ms: a process of its own may have inherited the output and keep it open.
    private static func wait(for process: pid_t, output: Int32) throws(Failure) -> String {
        var text: [UInt8] = []
        var isOpen = true
        for _ in 0..<seconds * 50 {
            var entry = pollfd(fd: isOpen ? output : -1, events: Int16(POLLIN), revents: 0)
            _ = unsafe poll(&entry, 1, 20)
            isOpen = isOpen && read(output, &text)
            var status: Int32 = 0
            let ended = unsafe waitpid(process, &status, WNOHANG)
            guard ended == process || (ended < 0 && errno == ECHILD) else { continue }
            _ = read(output, &text)
            // WIFEXITED and WEXITSTATUS of wait(2) are macros.
            let code = status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
            let printed = String(decoding: text, as: UTF8.self)
            guard code == 0 else { throw .status(code, printed) }
            return printed
        }
        kill(process, SIGKILL)
        var status: Int32 = 0
        _ = unsafe waitpid(process, &status, 0)
        throw .tooLong
    }

    /// All there is now; false at its end.
    private static func read(_ number: Int32, _ text: inout [UInt8]) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = unsafe buffer.withUnsafeMutableBytes { bytes in
                unsafe recv(
                    number, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT))
            }
            if count < 0 { return errno == EAGAIN || errno == EINTR }
            if count == 0 { return false }
            if text.count < outputLimit { text += buffer[..<count] }
        }
    }

    private final class Pair {
        private(set) var ours: Int32 = -1
        private(set) var theirs: Int32 = -1

        init() throws(Failure) {
            var ends: [Int32] = [-1, -1]
            let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
            guard unsafe socketpair(AF_UNIX, type, 0, &ends) == 0 else { throw .start(errno) }
            (ours, theirs) = (ends[0], ends[1])
        }

        func closeOurs() {
            if ours >= 0 { close(ours) }
            ours = -1
        }

        func closeTheirs() {
            if theirs >= 0 { close(theirs) }
            theirs = -1
        }

        func closeBoth() {
            closeOurs()
            closeTheirs()
        }
    }
}

private func withCStrings<Value>(
    _ strings: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Value
) -> Value {
    let pointers = unsafe strings.map { unsafe strdup($0) }
    defer { for index in unsafe pointers.indices { unsafe free(pointers[index]) } }
    return unsafe body(pointers + [nil])
}
