// SPDX-License-Identifier: Apache-2.0
import Glibc
import HostProcess
import Synchronization
import Testing

@testable import HTTP

/// A directory of its own, removed at the end.
final class Scratch: Sendable {
    let path: String

    init() {
        var template = Array("/tmp/nexusguard-http-XXXXXX".utf8CString)
        unsafe mkdtemp(&template)
        path = String(decoding: template.prefix { $0 != 0 }.map { UInt8($0) }, as: UTF8.self)
    }

    deinit {
        guard let directory = unsafe opendir(path) else { return }
        while let entry = unsafe readdir(directory) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { name in
                unsafe name.withMemoryRebound(to: CChar.self, capacity: 256) {
                    unsafe String(cString: $0)
                }
            }
            unsafe unlink("\(path)/\(name)")
        }
        unsafe closedir(directory)
        unsafe rmdir(path)
    }

    func write(_ name: String, _ bytes: [UInt8]) -> String {
        let file = unsafe fopen("\(path)/\(name)", "w")
        unsafe fwrite(bytes, 1, bytes.count, file)
        unsafe fclose(file)
        return "\(path)/\(name)"
    }
}

/// misbehaving_server.py, once for all tests. It ends with this process.
final class Misbehaving: Sendable {
    static let shared = Misbehaving()

    let scratch = Scratch()
    let ports: [String: Int]

    private init() {
        var script = #filePath
        script.removeLast("Support.swift".count)
        var child = try! ChildProcess.start(
            "/usr/bin/python3", arguments: ["-B", script + "misbehaving_server.py", scratch.path],
            environment: ["PATH=/usr/bin:/bin"])
        var output = ""
        _ = eventually {
            output = child.output(limit: 65536)
            return output.hasSuffix("ready") || child.end() != nil
        }
        var ports: [String: Int] = [:]
        for line in output.split(separator: "\n") {
            let words = line.split(separator: " ")
            if words.count == 2 { ports[String(words[0])] = Int(words[1]) }
        }
        precondition(output.hasSuffix("ready"), "misbehaving_server.py says: \(output)")
        self.ports = ports
    }

    func url(_ path: String, _ server: String = "plain", host: String = "127.0.0.1") -> String {
        "\(server == "plain" || server == "noise" ? "http" : "https")://\(host):\(ports[server]!)\(path)"
    }

    func bytes(_ name: String) throws -> [UInt8] {
        try HostFile.read(file(name), limit: 65536).bytes
    }

    func file(_ name: String) -> String { "\(scratch.path)/\(name)" }
}

/// Waits for a condition, at most half a minute.
func eventually(_ condition: () -> Bool) -> Bool {
    let deadline = Host.monotonicMilliseconds() + 30_000
    while !condition() {
        guard Host.monotonicMilliseconds() < deadline else { return false }
        usleep(2000)
    }
    return true
}

/// Open descriptors of this process.
func descriptorCount() -> Int {
    guard let directory = unsafe opendir("/proc/self/fd") else { return -1 }
    defer { unsafe closedir(directory) }
    var count = 0
    while unsafe readdir(directory) != nil { count += 1 }
    return count
}

/// A connection on which a test says whatever it wants.
final class RawClient {
    let socket: Int32

    init(port: UInt16) throws {
        socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let status = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                unsafe connect(socket, pointer, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(status == 0)
        var patience = timeval(tv_sec: 30, tv_usec: 0)
        unsafe setsockopt(
            socket, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { close(socket) }

    /// False: the connection is over.
    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes { bytes in
                unsafe Glibc.send(socket, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    @discardableResult
    func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    func endSending() { shutdown(socket, Int32(SHUT_WR)) }

    /// What comes next; empty: the end.
    func receive() -> String {
        var buffer = [UInt8](repeating: 0, count: 65536)
        let count = unsafe recv(socket, &buffer, buffer.count, 0)
        return String(decoding: buffer.prefix(max(count, 0)), as: UTF8.self)
    }

    func receive(until mark: String) -> String {
        var text = ""
        while !text.contains(mark) {
            let piece = receive()
            guard !piece.isEmpty else { break }
            text += piece
        }
        return text
    }

    func receiveAll() -> String { receive(until: "\u{0}never") }

    /// Nothing came and it is over.
    func isClosed() -> Bool {
        var byte: UInt8 = 0
        return unsafe recv(socket, &byte, 1, Int32(MSG_DONTWAIT)) == 0 || errno != EAGAIN
    }
}

/// Of a server on loopback.
func limits(_ change: (inout HTTPServer.Options) -> Void) -> HTTPServer.Options {
    var options = HTTPServer.Options(.plainLoopback(port: 0))
    change(&options)
    return options
}

/// A server on loopback.
func plainServer(
    _ options: HTTPServer.Options = limits { _ in }, _ handler: @escaping HTTPServer.Handler
) throws -> HTTPServer { try HTTPServer(options, handler: handler) }

/// A place for what a handler saw.
final class Notes<Value: Sendable>: Sendable {
    private let state = Mutex<[Value]>([])
    func add(_ value: Value) { state.withLock { $0.append(value) } }
    var all: [Value] { state.withLock { $0 } }
}

/// Runs `body` on `count` threads and waits for them.
func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    final class Work: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }
    var threads: [pthread_t] = []
    for index in 0..<count {
        var thread = pthread_t()
        let work = unsafe Unmanaged.passRetained(Work { body(index) })
        let status = unsafe pthread_create(
            &thread, nil,
            { argument in
                unsafe Unmanaged<Work>.fromOpaque(argument!).takeRetainedValue().run()
                return nil
            }, work.toOpaque())
        precondition(status == 0)
        threads.append(thread)
    }
    for thread in threads { pthread_join(thread, nil) }
}

extension HTTPClientResponse {
    var text: String { String(decoding: body, as: UTF8.self) }
}

/// A program of the host, to its end.
func run(_ program: String, _ arguments: [String]) throws -> (
    end: ChildProcess.End?, output: String
) {
    var child = try ChildProcess.start(
        program, arguments: arguments, environment: ["PATH=/usr/bin:/bin"])
    let end = child.wait(milliseconds: 30_000)
    return (end, child.output(limit: 65536))
}
