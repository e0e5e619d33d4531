// SPDX-License-Identifier: Apache-2.0
// libmicrohttpd's own timeout counts inactivity only, so a client that sends a byte now and then
// holds a connection for ever. Each connection has a deadline here, and a watchdog cuts what is
// overdue.
import CMicroHTTPD
import Glibc
import HostProcess
import Synchronization

/// One connection, from accept(2) to close(2).
final class ServerConnection: Sendable {
    /// The library's. Valid while the connection is in `ServerConnections`.
    fileprivate let socket: Int32
    let origin: HTTPRequest.Origin
    /// In milliseconds of CLOCK_MONOTONIC; the far future where there is none.
    private let deadline = Atomic<Int64>(.max)

    init(socket: Int32, origin: HTTPRequest.Origin) {
        self.socket = socket
        self.origin = origin
    }

    /// What is going on must be over by then.
    func expectEnd(within duration: Duration?) {
        let now = Host.monotonicMilliseconds()
        deadline.store(duration.map { now + $0.milliseconds } ?? .max, ordering: .relaxed)
    }

    func isOverdue(_ now: Int64) -> Bool { deadline.load(ordering: .relaxed) <= now }
}

/// All connections of one server.
final class ServerConnections: Sendable {
    private let table = Mutex<[ObjectIdentifier: ServerConnection]>([:])
    private let cuts = Atomic<Int>(0)

    var count: Int { table.withLock { $0.count } }
    var cutCount: Int { cuts.load(ordering: .relaxed) }

    func add(_ connection: ServerConnection) {
        table.withLock { $0[ObjectIdentifier(connection)] = connection }
    }

    /// Before its descriptor is closed.
    func remove(_ connection: ServerConnection) {
        table.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(connection)) }
    }

    /// The library notices at once and closes.
    func cut(_ connection: ServerConnection) {
        table.withLock { table in
            guard table[ObjectIdentifier(connection)] != nil else { return }
            cut(locked: connection)
        }
    }

    func cutOverdue() {
        let now = Host.monotonicMilliseconds()
        table.withLock { table in
            for connection in table.values where connection.isOverdue(now) {
                connection.expectEnd(within: nil)  // counted once
                cut(locked: connection)
            }
        }
    }

    /// Under the lock: the descriptor is still this connection's, since `remove` comes before its
    /// close(2).
    private func cut(locked connection: ServerConnection) {
        cuts.wrappingAdd(1, ordering: .relaxed)
        shutdown(connection.socket, Int32(SHUT_RDWR))
    }

    /// Whether the other end of `connection` has closed it or is gone.
    func isHungUp(_ connection: ServerConnection) -> Bool {
        table.withLock { table in
            guard table[ObjectIdentifier(connection)] != nil else { return true }
            let hungUp = Int16(0x2000)  // POLLRDHUP of poll(2), a GNU extension
            var entry = pollfd(fd: connection.socket, events: hungUp, revents: 0)
            return unsafe poll(&entry, 1, 0) > 0
        }
    }
}

extension HTTPRequest.Origin {
    /// Of a connected socket.
    init(socket: Int32, address: UnsafePointer<sockaddr>?) {
        if let peer = LocalPeer.of(socket: socket) {
            self = .unix(user: peer.user, group: peer.groups[0], process: peer.process)
        } else {
            self = unsafe .ip(address.map { unsafe numericAddress($0) } ?? "?")
        }
    }
}

/// IPv4-mapped addresses in IPv4 form: sockets of both families report them (ipv6(7)).
func numericAddress(_ address: UnsafePointer<sockaddr>) -> String {
    let isIPv6 = unsafe address.pointee.sa_family == sa_family_t(AF_INET6)
    let size = isIPv6 ? MemoryLayout<sockaddr_in6>.size : MemoryLayout<sockaddr_in>.size
    var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
    let status = unsafe getnameinfo(
        address, socklen_t(size), &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST)
    guard status == 0 else { return "?" }
    let characters = text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    let name = String(decoding: characters, as: UTF8.self)
    return name.hasPrefix("::ffff:") && name.contains(".") ? String(name.dropFirst(7)) : name
}

extension Duration {
    /// Rounded up, so that nothing is cut early.
    var milliseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
    }
}
