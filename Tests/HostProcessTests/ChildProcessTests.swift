// SPDX-License-Identifier: Apache-2.0
import Glibc
import Testing

@testable import HostProcess

@Suite struct ChildProcessTests {
    /// Longer than any of these programs takes.
    private let patience: Int64 = 30_000

    private func shell(_ script: String, _ environment: [String] = []) throws -> ChildProcess {
        try ChildProcess.start("/bin/sh", arguments: ["-c", script], environment: environment)
    }

    @Test func exit_code_and_both_streams_are_seen() throws {
        var child = try shell("echo one; echo two >&2; exit 7")
        #expect(child.wait(milliseconds: patience) == .exited(7))
        #expect(child.output() == "one\ntwo")
        #expect(child.output(limit: 2) == "on")
        #expect(child.end() == .exited(7), "asked again, it still knows")
    }

    @Test func a_signal_that_ended_it_is_told() throws {
        var child = try shell("kill -TERM $$")
        #expect(child.wait(milliseconds: patience) == .killed(signal: SIGTERM))
    }

    @Test func it_has_only_the_environment_given() throws {
        var child = try ChildProcess.start("/usr/bin/env", arguments: [], environment: ["A=b c"])
        #expect(child.wait(milliseconds: patience) == .exited(0))
        #expect(child.output() == "A=b c")
    }

    @Test func it_leads_a_session_and_has_no_descriptor_of_ours() throws {
        let null = unsafe open("/dev/null", O_RDONLY)
        // Not close-on-exec, and not a number that the shell takes for the directory it lists.
        let leaked = fcntl(null, F_DUPFD, 100)
        defer {
            close(null)
            close(leaked)
        }
        #expect(leaked >= 100)
        // Field 1 of proc(5) stat is the process id, 6 its session; ls itself opens /proc/self/fd.
        var child = try shell(
            "cut -d' ' -f1,6 /proc/$$/stat; for f in /proc/$$/fd/*; do echo ${f##*/}; done",
            ["PATH=/usr/bin:/bin"])
        #expect(child.wait(milliseconds: patience) == .exited(0))
        let lines = child.output().split(separator: "\n")
        let ids = lines[0].split(separator: " ")
        #expect(ids[0] == ids[1])
        #expect(!lines.dropFirst().contains("\(leaked)"))
        #expect(Set(lines.dropFirst()).isSuperset(of: ["0", "1", "2"]))
    }

    @Test func ignored_and_blocked_signals_are_not_inherited() throws {
        signal(SIGPIPE, SIG_IGN)
        var child = try shell("grep -E '^Sig(Blk|Ign):' /proc/self/status", ["PATH=/usr/bin:/bin"])
        #expect(child.wait(milliseconds: patience) == .exited(0))
        // Signals 32 and 33 belong to glibc's threads; its posix_spawn ignores them until exec.
        let internalSignals: UInt64 = 3 << 31
        for line in child.output().split(separator: "\n") {
            let set = try #require(UInt64(line.drop { $0 != "\t" }.dropFirst(), radix: 16))
            #expect(set & ~internalSignals == 0, "\(line)")
        }
    }

    @Test func one_that_does_not_end_is_given_up_and_can_be_killed() throws {
        var child = try shell("sleep 1000 & wait", ["PATH=/usr/bin:/bin"])
        #expect(child.wait(milliseconds: 20) == nil)
        child.kill()
        #expect(child.wait(milliseconds: patience) == .killed(signal: SIGKILL))
    }

    @Test func one_that_was_killed_leaves_no_zombie() throws {
        var child = try shell("echo $$; exec sleep 1000", ["PATH=/usr/bin:/bin"])
        var process = ""
        while process.isEmpty {
            #expect(child.wait(milliseconds: 1) == nil)
            process = child.output()
        }
        child.kill()
        #expect(!HostFile.exists("/proc/\(process)"))
    }

    @Test func what_it_leaves_behind_does_not_hold_us_up() throws {
        // The grandchild keeps the output open: waiting for its end would take 1000 seconds.
        var child = try shell("sleep 1000 & echo $!", ["PATH=/usr/bin:/bin"])
        #expect(child.wait(milliseconds: patience) == .exited(0))
        let grandchild = try #require(pid_t(child.output()))
        #expect(Glibc.kill(grandchild, SIGKILL) == 0)
    }

    @Test func a_program_that_is_not_there_is_named() {
        let error = #expect(throws: HostError.self) {
            _ = try ChildProcess.start("/nonexistent/program", arguments: [], environment: [])
        }
        #expect(error?.errno == ENOENT)
        #expect(error?.description.contains("/nonexistent/program") == true)
    }
}

@Suite struct ConnectionTests {
    private func temporaryPath() -> String {
        "/tmp/nghc-\(getpid())-\(UInt32.random(in: 0...9_999_999)).sock"
    }

    @Test func both_ends_of_a_connection_exchange_bytes() throws {
        let path = temporaryPath()
        var listener = try Listener.open(path)
        let client = try Descriptor.connect(path)
        guard case .client(let server) = listener.accept() else {
            Issue.record("no client")
            return
        }
        #expect(client.write([1, 2, 3], from: 1) == 2)
        var buffer = [UInt8](repeating: 0, count: 8)
        guard case .bytes(2) = server.read(into: &buffer) else {
            Issue.record("not two bytes")
            return
        }
        #expect(buffer[..<2] == [2, 3])
    }

    @Test func nobody_listening_is_told_from_other_failures() throws {
        let path = temporaryPath()
        var error = #expect(throws: HostError.self) { _ = try Descriptor.connect(path) }
        #expect(error?.isNobodyListening == true)
        #expect(error?.description.contains(path) == true)
        // A socket whose process died.
        let stale = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { bytes in
            unsafe bytes.copyBytes(from: Array(path.utf8))
        }
        let bound = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                unsafe bind(stale, pointer, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        #expect(bound == 0)
        close(stale)
        error = #expect(throws: HostError.self) { _ = try Descriptor.connect(path) }
        #expect(error?.isNobodyListening == true)
        try HostFile.remove(path)
        try HostFile.remove(path)
        error = #expect(throws: HostError.self) { _ = try Descriptor.connect("relative") }
        #expect(error?.isNobodyListening == false)
    }
}
