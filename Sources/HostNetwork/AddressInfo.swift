// SPDX-License-Identifier: Apache-2.0
import Glibc
import WireGuard

extension NameLookup {
    /// getaddrinfo(3) for datagrams, both families. Blocks.
    @Sendable
    public static func ask(_ request: Request) -> Outcome {
        var hints = unsafe addrinfo()
        unsafe hints.ai_family = AF_UNSPEC
        unsafe hints.ai_socktype = Int32(SOCK_DGRAM.rawValue)
        unsafe hints.ai_flags = AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        let status = unsafe getaddrinfo(
            request.host.description, "\(request.port)", &hints, &list)
        let failure = errno
        defer { if let list = unsafe list { unsafe freeaddrinfo(list) } }
        guard status == 0 else { return outcome(of: status, errno: failure, request.host) }
        var endpoints: [Endpoint] = []
        var entry = unsafe list
        while let info = unsafe entry {
            if let endpoint = unsafe Endpoint(info.pointee), !endpoints.contains(endpoint) {
                endpoints.append(endpoint)
            }
            unsafe entry = info.pointee.ai_next
        }
        guard !endpoints.isEmpty else { return .final("\(request.host) has no address") }
        return .found(endpoints)
    }

    /// Which errors are an answer: as wg(8) has it, for which NONAME, FAIL and NODATA are final.
    static func outcome(of status: Int32, errno: Int32, _ host: HostName) -> Outcome {
        let reason = status == EAI_SYSTEM ? textOfErrno(errno) : textOfLookupError(status)
        let line = "cannot look up \(host): \(reason)"
        switch status {
        case EAI_NONAME, EAI_FAIL, noData, noAddressFamily: return .final(line)
        default: return .temporary(line)
        }
    }

    // netdb.h has them under __USE_GNU, where the importer does not look.
    static let noData: Int32 = -5
    static let noAddressFamily: Int32 = -9

    private static func textOfLookupError(_ status: Int32) -> String {
        guard let text = unsafe gai_strerror(status) else { return "error \(status)" }
        return unsafe String(cString: text)
    }

    /// The same addresses in the order in which they are to be tried (C29): first those that the
    /// host has a route to, each part in the resolver's order. `current`, which works, stays first
    /// as long as it is reachable and among them: a name with two families does not make a tunnel
    /// that works change over.
    public static func orderedByReachability(
        _ endpoints: [Endpoint], current: Endpoint? = nil, isReachable: (Endpoint) -> Bool
    ) -> [Endpoint] {
        var first: [Endpoint] = []
        var reachable: [Endpoint] = []
        var others: [Endpoint] = []
        for endpoint in endpoints {
            if !isReachable(endpoint) {
                others.append(endpoint)
            } else if endpoint == current {
                first.append(endpoint)
            } else {
                reachable.append(endpoint)
            }
        }
        return first + reachable + others
    }
}

extension Endpoint {
    /// nil for a family that is neither of the two.
    fileprivate init?(_ info: addrinfo) {
        guard let address = unsafe info.ai_addr else { return nil }
        switch unsafe info.ai_family {
        case AF_INET:
            let socket = unsafe UnsafeRawPointer(address).loadUnaligned(as: sockaddr_in.self)
            self.init(
                address: .v4(UInt32(bigEndian: socket.sin_addr.s_addr)),
                port: UInt16(bigEndian: socket.sin_port))
        case AF_INET6:
            var socket = unsafe UnsafeRawPointer(address).loadUnaligned(as: sockaddr_in6.self)
            let (high, low) = unsafe withUnsafeBytes(of: &socket.sin6_addr) { bytes in
                unsafe (
                    UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
                    UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
                )
            }
            self.init(
                address: .v6(high: high, low: low), port: UInt16(bigEndian: socket.sin6_port),
                zone: socket.sin6_scope_id == 0 ? nil : .index(socket.sin6_scope_id))
        default: return nil
        }
    }
}
