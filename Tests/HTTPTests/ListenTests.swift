// SPDX-License-Identifier: Apache-2.0
import Glibc
import HostProcess
import Testing

@testable import HTTP

@Suite struct ListenTests {
    private func start(_ listen: HTTPServer.Listen) throws -> HTTPServer {
        try HTTPServer(.init(listen)) { request in
            guard case .unix(let user, _, let process) = request.origin else {
                return HTTPResponse(status: 400)
            }
            return HTTPResponse(status: 200, body: Array("\(user) \(process)".utf8))
        }
    }

    private func error(_ listen: HTTPServer.Listen) -> HTTPError? {
        do {
            _ = try start(listen)
            return nil
        } catch { return error as? HTTPError }
    }

    @Test func plain_HTTP_beyond_this_host_is_refused() {
        for address in ["0.0.0.0", "192.0.2.1", "::", "*", "", "localhost", "2001:db8::1"] {
            let text = error(.plainLoopback(address: address, port: 0))?.description ?? "accepted"
            #expect(text.contains("use 127.0.0.1 or ::1, a unix socket, or TLS"), "\(address)")
        }
        #expect(error(.plainLoopback(address: "127.0.0.9", port: 0)) == nil)
        #expect(error(.plainLoopback(address: "::1", port: 0)) == nil)
    }

    @Test func a_port_in_use_is_named() throws {
        let first = try start(.plainLoopback(port: 0))
        let failure = try #require(error(.plainLoopback(port: first.port)))
        #expect(failure.kind == .busy)
        #expect(failure.description.contains("127.0.0.1:\(first.port): Address already in use"))
    }

    @Test func a_unix_socket_tells_who_asks() throws {
        let scratch = Scratch()
        let path = scratch.path + "/hub.sock"
        let server = try start(.unix(path: path, mode: 0o660))
        var status = stat()
        #expect(unsafe stat(path, &status) == 0)
        #expect(status.st_mode & 0o7777 == 0o660)
        #expect(server.port == 0)
        var options = HTTPClient.Options()
        options.unixSocket = path
        let response = try HTTPClient(options).perform(HTTPClientRequest("GET", "http://hub/"))
        #expect(response.text == "\(geteuid()) \(getpid())")
        server.stop()
        #expect(unsafe stat(path, &status) != 0, "its name goes with it")
    }

    @Test func a_stale_socket_is_replaced_and_a_live_one_is_not() throws {
        let scratch = Scratch()
        let path = scratch.path + "/hub.sock"
        let stale = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) {
            unsafe $0.copyBytes(from: path.utf8)
        }
        unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                #expect(unsafe bind(stale, pointer, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0)
            }
        }
        close(stale)
        let server = try start(.unix(path: path))
        #expect(error(.unix(path: path))?.kind == .busy)
        server.stop()
        let file = scratch.write("file", [1])
        #expect(error(.unix(path: file)) != nil)
        #expect(unsafe access(file, F_OK) == 0, "what is no socket stays")
    }
}
