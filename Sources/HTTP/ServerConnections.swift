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
    fileprivate let network: ClientNetwork?
    /// In milliseconds of CLOCK_MONOTONIC; the far future where there is none.
    private let deadline = Atomic<Int64>(.max)

    /// `network` nil: one of a unix socket.
    init(socket: Int32, origin: HTTPRequest.Origin, network: ClientNetwork?) {
        self.socket = socket
        self.origin = origin
        self.network = network
    }

    /// What is going on must be over by then.
    func expectEnd(within duration: Duration?) {
        let now = Host.monotonicMilliseconds()
        deadline.store(duration.map { now + $0.milliseconds } ?? .max, ordering: .relaxed)
    }

    func isOverdue(_ now: Int64) -> Bool { deadline.load(ordering: .relaxed) <= now }
}

/// What counts as one client: an IPv4 address, or 64 bits of an IPv6 one, of which a single host
/// may take any address below (RFC 8981).
struct ClientNetwork: Hashable, Sendable {
    private var isIPv6: Bool
    private var bits: UInt64

    /// nil: of another family.
    init?(_ address: UnsafePointer<sockaddr>?) {
        guard let address = unsafe address else { return nil }
        let bytes = unsafe UnsafeRawPointer(address)
        switch unsafe Int32(address.pointee.sa_family) {
        case AF_INET:
            self = unsafe .v4(bytes.load(as: sockaddr_in.self).sin_addr.s_addr)
        case AF_INET6:
            // Alignment: the library keeps any family in sockaddr_storage.
            let whole = unsafe bytes.load(as: sockaddr_in6.self).sin6_addr
            self = unsafe withUnsafeBytes(of: whole) { whole in
                let words = unsafe whole.bindMemory(to: UInt32.self)
                // ::ffff:0:0/96, IPv4-mapped (RFC 4291 section 2.5.5.2).
                if unsafe words[0] == 0 && words[1] == 0 && words[2] == UInt32(0xFFFF).bigEndian {
                    return unsafe .v4(words[3])
                }
                return unsafe ClientNetwork(
                    isIPv6: true, bits: UInt64(words[0]) << 32 | UInt64(words[1]))
            }
        default: return nil
        }
    }

    private init(isIPv6: Bool, bits: UInt64) {
        self.isIPv6 = isIPv6
        self.bits = bits
    }

    private static func v4(_ bits: UInt32) -> ClientNetwork {
        ClientNetwork(isIPv6: false, bits: UInt64(bits))
    }
}

/// All connections of one server.
final class ServerConnections: Sendable {
    private struct State {
        var connections: [ObjectIdentifier: ServerConnection] = [:]
        var counts: [ClientNetwork: Int] = [:]
    }

    private let state = Mutex(State())
    private let cuts = Atomic<Int>(0)
    /// Connections of one network; nil: as many as come.
    private let networkLimit: Int?

    init(networkLimit: Int?) { self.networkLimit = networkLimit }

    var count: Int { state.withLock { $0.connections.count } }
    var cutCount: Int { cuts.load(ordering: .relaxed) }

    /// Cuts it at once where its network has enough.
    func add(_ connection: ServerConnection) {
        state.withLock { state in
            state.connections[ObjectIdentifier(connection)] = connection
            guard let network = connection.network else { return }
            state.counts[network, default: 0] += 1
            if let networkLimit, state.counts[network]! > networkLimit { cut(locked: connection) }
        }
    }

    /// Before its descriptor is closed.
    func remove(_ connection: ServerConnection) {
        state.withLock { state in
            let known = state.connections.removeValue(forKey: ObjectIdentifier(connection))
            guard known != nil, let network = connection.network else { return }
            let rest = state.counts[network]! - 1
            state.counts[network] = rest == 0 ? nil : rest
        }
    }

    /// The library notices at once and closes.
    func cut(_ connection: ServerConnection) {
        state.withLock { state in
            guard state.connections[ObjectIdentifier(connection)] != nil else { return }
            cut(locked: connection)
        }
    }

    func cutOverdue() {
        let now = Host.monotonicMilliseconds()
        state.withLock { state in
            for connection in state.connections.values where connection.isOverdue(now) {
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
        state.withLock { state in
            guard state.connections[ObjectIdentifier(connection)] != nil else { return true }
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
