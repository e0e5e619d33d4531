// SPDX-License-Identifier: Apache-2.0
import Glibc
import HostProcess

/// Where a server listens. Opened here and not by the library, which could not say what is wrong.
struct ListeningSocket: ~Copyable {
    private(set) var number: Int32
    /// 0: a unix socket.
    let port: UInt16
    /// Only this host can reach it, or TLS is spoken.
    let isSecure: Bool
    private var listener: Listener?

    private init(_ number: Int32, port: UInt16, isSecure: Bool, listener: consuming Listener?) {
        self.number = number
        self.port = port
        self.isSecure = isSecure
        self.listener = listener
    }

    deinit { if number >= 0 { close(number) } }

    /// Somebody else closes it from now on.
    mutating func giveAway() { number = -1 }

    /// The owner of a unix socket's name.
    mutating func takeListener() -> Listener? { listener.take() }

    static func open(_ listen: HTTPServer.Listen) throws(HTTPError) -> ListeningSocket {
        switch listen {
        case .tls(let address, let port, _, _):
            return try openPort(listen, address, port)
        case .plainLoopback(let address, let port):
            guard isLoopback(address) else {
                throw HTTPError(
                    "cannot serve plain HTTP on \(listen.place): tokens would be readable on the "
                        + "way; use 127.0.0.1 or ::1, a unix socket, or TLS with a certificate")
            }
            return try openPort(listen, address, port)
        case .unix(let path, let mode, let group):
            return try openName(path, mode, group)
        }
    }

    private static func openName(
        _ path: String, _ mode: UInt32, _ group: UInt32?
    ) throws(HTTPError) -> ListeningSocket {
        let listener: Listener
        do throws(HostError) {
            let opened = try Listener.open(path)
            if let group { try HostFile.share(path, withGroup: group) }
            listener = opened
        } catch {
            throw HTTPError(error.kind, error.description)
        }
        guard unsafe chmod(path, mode) == 0 else {
            throw HTTPError.of(errno, "cannot set the mode of \(path)")
        }
        // The library closes its own; the listener keeps the name.
        let number = fcntl(listener.descriptor, F_DUPFD_CLOEXEC, 3)
        guard number >= 0 else { throw HTTPError.of(errno, "cannot serve HTTP on \(path)") }
        return ListeningSocket(number, port: 0, isSecure: true, listener: listener)
    }

    private static func openPort(
        _ listen: HTTPServer.Listen, _ address: String, _ port: UInt16
    ) throws(HTTPError) -> ListeningSocket {
        if address == "*" {
            // One socket for both families; a host may have no IPv6.
            let both = unsafe withAddress("::", port) { address, size in
                unsafe bound(to: address, size)
            }
            if case .success(let number) = both { return try adopt(number, listen) }
        }
        let text = address == "*" ? "0.0.0.0" : address
        let result = unsafe withAddress(text, port) { address, size in
            unsafe bound(to: address, size)
        }
        switch result {
        case .success(let number): return try adopt(number, listen)
        case .failure(let reason):
            throw HTTPError.of(reason.errno, "cannot serve HTTP on \(listen.place)")
        case nil:
            throw HTTPError(
                "cannot serve HTTP on \(listen.place): that is no numeric address; write one of "
                    + "this host's, or *")
        }
    }

    private static func adopt(
        _ number: Int32, _ listen: HTTPServer.Listen
    ) throws(HTTPError) -> ListeningSocket {
        var address = sockaddr_in6()
        var size = socklen_t(MemoryLayout<sockaddr_in6>.size)
        let status = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                unsafe getsockname(number, pointer, &size)
            }
        }
        // The port is at the same place for both families (ip(7), ipv6(7)).
        let socket = ListeningSocket(
            number, port: UInt16(bigEndian: address.sin6_port), isSecure: listen.isTLS,
            listener: nil)
        guard status == 0 else { throw HTTPError.of(errno, "cannot serve HTTP on \(listen.place)") }
        return socket
    }

    private struct Reason: Error { var errno: Int32 }

    private static func bound(
        to address: UnsafePointer<sockaddr>, _ size: socklen_t
    ) -> Result<Int32, Reason> {
        let family = unsafe Int32(address.pointee.sa_family)
        let type = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
        let number = socket(family, Int32(type), 0)
        guard number >= 0 else { return .failure(Reason(errno: errno)) }
        var yes: Int32 = 1
        var no: Int32 = 0
        let flagSize = socklen_t(MemoryLayout<Int32>.size)
        // A restart must not wait for the connections of the last life (socket(7)).
        unsafe setsockopt(number, SOL_SOCKET, SO_REUSEADDR, &yes, flagSize)
        if family == AF_INET6 {
            unsafe setsockopt(number, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &no, flagSize)
        }
        guard unsafe bind(number, address, size) == 0, listen(number, SOMAXCONN) == 0 else {
            let reason = Reason(errno: errno)
            close(number)
            return .failure(reason)
        }
        return .success(number)
    }
}

/// nil: not a numeric address.
func withAddress<R>(
    _ text: String, _ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> R
) -> R? {
    var hints = unsafe addrinfo()
    unsafe hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE
    unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    guard unsafe getaddrinfo(text, "\(port)", &hints, &found) == 0, let found = unsafe found else {
        return nil
    }
    defer { unsafe freeaddrinfo(found) }
    return unsafe body(found.pointee.ai_addr, found.pointee.ai_addrlen)
}

/// 127.0.0.0/8 (RFC 1122 section 3.2.1.3) and ::1 (RFC 4291 section 2.5.3).
func isLoopback(_ address: String) -> Bool {
    let text = unsafe withAddress(address, 0) { address, _ in unsafe numericAddress(address) }
    guard let text = text ?? nil else { return false }
    return text == "::1" || text.hasPrefix("127.")
}

extension HTTPServer.Listen {
    var isTLS: Bool {
        if case .tls = self { true } else { false }
    }

    /// For messages.
    var place: String {
        switch self {
        case .tls(let address, let port, _, _), .plainLoopback(let address, let port):
            address.contains(":") ? "[\(address)]:\(port)" : "\(address):\(port)"
        case .unix(let path, _, _): path
        }
    }
}

extension HTTPError {
    static func of(_ errno: Int32, _ what: String) -> HTTPError {
        let advice =
            switch errno {
            case EADDRINUSE: "; stop who listens there (ss -tlnp) or choose another port"
            case EACCES, EPERM: "; ports below 1024 need CAP_NET_BIND_SERVICE"
            case EADDRNOTAVAIL: "; the address is not one of this host's (ip address)"
            default: ""
            }
        return HTTPError(ErrorKind(errno: errno), "\(what): \(textOfErrno(errno))\(advice)")
    }
}
