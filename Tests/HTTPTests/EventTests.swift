// SPDX-License-Identifier: Apache-2.0
import Glibc
import HostProcess
import Synchronization
import Testing

@testable import HTTP

@Suite struct EventTests {
    /// A server each of whose answers is a stream, and the streams it gave out.
    private func streamServer(_ change: (inout HTTPServer.Options) -> Void = { _ in }) throws
        -> (server: HTTPServer, streams: Notes<EventStream>, url: String)
    {
        let streams = Notes<EventStream>()
        let server = try plainServer(limits(change)) { _ in
            let stream = EventStream()
            stream.send(event: "hello", data: "")
            streams.add(stream)
            return .events(stream)
        }
        return (server, streams, "http://127.0.0.1:\(server.port)/")
    }

    @Test func events_arrive_in_order_one_by_one() throws {
        let (server, streams, url) = try streamServer()
        var seen: [String] = []
        let response = try HTTPClient().events(HTTPClientRequest("GET", url)) { event, data in
            seen.append("\(event)=\(data)")
            let stream = streams.all[0]
            guard seen.count < 100 else {
                stream.close()
                return true
            }
            // While the server's thread is asleep: this wakes it.
            return stream.send(event: "config\n", data: "\(seen.count)\nsecond line\r\nthird")
        }
        #expect(response.status == 200)
        #expect(seen.count == 100)
        #expect(seen[0] == "hello=")
        #expect(seen[99] == "config =99\nsecond line\nthird")
        #expect(streams.all[0].isClosed)
        #expect(!streams.all[0].send(event: "late", data: ""))
        _ = server
    }

    @Test func a_client_that_has_enough_leaves_and_the_stream_knows() throws {
        let (server, streams, url) = try streamServer { $0.streamKeepAlive = .milliseconds(100) }
        try HTTPClient().events(HTTPClientRequest("GET", url)) { _, _ in false }
        #expect(eventually { streams.all[0].isClosed && server.connectionCount == 0 })
    }

    @Test func a_quiet_stream_says_that_it_lives() throws {
        let (server, _, _) = try streamServer { $0.streamKeepAlive = .milliseconds(50) }
        let client = try RawClient(port: server.port)
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        var text = ""
        #expect(
            eventually {
                text += client.receive()
                return text.components(":\n\n") >= 3
            })
        #expect(server.cutCount == 0)
    }

    @Test func a_stream_that_is_not_read_is_cut() throws {
        let (server, streams, _) = try streamServer()
        let client = try RawClient(port: server.port)
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(eventually { streams.all.count == 1 })
        let line = String(repeating: "x", count: 60_000)
        var sent = 0
        // The kernel's buffers fill first.
        while streams.all[0].send(event: "e", data: line), sent < 10_000 { sent += 1 }
        #expect(sent < 10_000)
        #expect(streams.all[0].isClosed)
        #expect(eventually { server.connectionCount == 0 })
        #expect(server.cutCount == 1)
    }

    @Test func stop_ends_all_streams() throws {
        let (server, streams, _) = try streamServer()
        var clients: [RawClient] = []
        for _ in 0..<20 {
            let client = try RawClient(port: server.port)
            client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            _ = client.receive(until: "hello")
            clients.append(client)
        }
        server.stop()
        #expect(streams.all.count == 20)
        #expect(streams.all.allSatisfy { $0.isClosed })
        for client in clients { #expect(client.receiveAll().components("event") == 0) }
    }

    @Test func senders_on_many_threads_lose_nothing() throws {
        let (server, streams, url) = try streamServer()
        let counts = Notes<String>()
        onThreads(5) { thread in
            if thread == 0 {
                guard let client = try? HTTPClient() else { return }
                var seen = 0
                _ = try? client.events(HTTPClientRequest("GET", url)) { event, data in
                    seen += 1
                    counts.add(data)
                    return seen < 4001
                }
            } else {
                _ = eventually { streams.all.count == 1 }
                for index in 0..<1000 {
                    streams.all[0].send(event: "n", data: "\(thread) \(index)")
                }
            }
        }
        #expect(Set(counts.all).count == 4001)
        for thread in 1...4 {
            let own = counts.all.filter { $0.hasPrefix("\(thread) ") }
            #expect(own == (0..<1000).map { "\(thread) \($0)" }, "in order")
        }
        _ = server
    }

    @Test func the_parser_takes_every_way_to_cut_a_stream() {
        let text =
            "\u{FEFF}data: one\r\n\r\nevent: e\rdata:two\rdata: three\r\r: c\nid: 1\ndata\n\nevent: x\n\n"
        let whole = parse([Array(text.utf8)])
        #expect(whole == ["message=one", "e=two\nthree", "message="])
        let bytes = Array(text.utf8)
        for cut in bytes.indices {
            #expect(parse([Array(bytes[..<cut]), Array(bytes[cut...])]) == whole)
        }
        #expect(parse(bytes.map { [$0] }) == whole)
        var parser = EventParser()
        let long = [UInt8](repeating: 0x78, count: EventParser.limit + 1)
        #expect(!parser.receive(long) { _, _ in })
    }

    private func parse(_ pieces: [[UInt8]]) -> [String] {
        var parser = EventParser()
        var seen: [String] = []
        for piece in pieces { #expect(parser.receive(piece) { seen.append("\($0)=\($1)") }) }
        return seen
    }
}
