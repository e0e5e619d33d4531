// SPDX-License-Identifier: Apache-2.0
import Glibc
import TunnelPlan
import WireGuard

/// What systemd-resolved is told about one link (org.freedesktop.resolve1(5)).
struct ResolvedLink: Equatable {
    struct Domain: Hashable {
        /// "." for all names.
        var name: String
        var routesOnly: Bool
    }

    var servers: [IPAddress]
    var domains: [Domain]

    init(servers: [IPAddress], domains: [Domain]) {
        self.servers = servers
        self.domains = domains
    }

    /// Unless the configuration routes domains itself, all names go to the tunnel's servers: what
    /// wg-quick(8) has in effect (`resolvconf -x`).
    init(_ settings: DNSSettings) {
        // The link is part of the call: a zone says nothing more.
        servers = settings.servers.map(\.address)
        domains = settings.searchDomains.map { Domain(name: $0.name, routesOnly: $0.isRoutingOnly) }
        if !servers.isEmpty, !domains.contains(where: \.routesOnly) {
            domains.append(Domain(name: ".", routesOnly: true))
        }
    }
}

/// systemd-resolved over D-Bus. Its settings end with the link.
struct ResolvedClient: ~Copyable {
    private static let service = "org.freedesktop.resolve1"
    private static let path = "/org/freedesktop/resolve1"
    private static let manager = "org.freedesktop.resolve1.Manager"

    private let bus: SystemBus

    /// nil: there is no bus, or nobody answers to the name on it. A service is not started for this.
    init?(busAddress: String?) {
        do throws(SystemBus.Failure) {
            let bus = try SystemBus(address: busAddress)
            let answer = try bus.call(
                "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
                "NameHasOwner"
            ) { (message) throws(SystemBus.Failure) in try message.append(Self.service) }
            guard try answer.readFlag() else { return nil }
            self.bus = bus
        } catch {
            return nil
        }
    }

    /// Leaves nothing behind when it throws.
    func set(_ link: ResolvedLink, index: UInt32) throws(NetworkError) {
        do throws(SystemBus.Failure) {
            try callManager("SetLinkDNS") { (message) throws(SystemBus.Failure) in
                try message.append(Int32(bitPattern: index))
                try message.appendArray(of: "iay", link.servers) {
                    (address) throws(SystemBus.Failure) in
                    try message.append(address.familyNumber)
                    try message.append(address.networkBytes)
                }
            }
            try callManager("SetLinkDomains") { (message) throws(SystemBus.Failure) in
                try message.append(Int32(bitPattern: index))
                try message.appendArray(of: "sb", link.domains) {
                    (domain) throws(SystemBus.Failure) in
                    try message.append(domain.name)
                    try message.append(domain.routesOnly)
                }
            }
        } catch {
            try? revert(index: index)
            throw Self.error("tell systemd-resolved the tunnel's servers", error)
        }
    }

    /// A link that is gone is no error.
    func revert(index: UInt32) throws(NetworkError) {
        do throws(SystemBus.Failure) {
            try callManager("RevertLink") { (message) throws(SystemBus.Failure) in
                try message.append(Int32(bitPattern: index))
            }
        } catch {
            guard error.name != "org.freedesktop.resolve1.NoSuchLink" else { return }
            throw Self.error("take the tunnel's servers from systemd-resolved", error)
        }
    }

    /// What it has for the link now; nil where it does not know the link.
    func link(index: UInt32) throws(NetworkError) -> ResolvedLink? {
        do throws(SystemBus.Failure) {
            let answer = try callManager("GetLink") { (message) throws(SystemBus.Failure) in
                try message.append(Int32(bitPattern: index))
            }
            let path = try answer.readText(type: "o")
            let servers = try property("DNS", of: path)
            let addresses = try servers.readArrayInVariant(of: "iay") {
                () throws(SystemBus.Failure) -> IPAddress? in
                let family = try servers.readNumber()
                return IPAddress(familyNumber: family, networkBytes: try servers.readBytes())
            }
            let domains = try property("Domains", of: path)
            let names = try domains.readArrayInVariant(of: "sb") {
                () throws(SystemBus.Failure) -> ResolvedLink.Domain in
                let name = try domains.readText()
                return ResolvedLink.Domain(name: name, routesOnly: try domains.readFlag())
            }
            return ResolvedLink(servers: addresses.compactMap(\.self), domains: names)
        } catch {
            guard error.name != "org.freedesktop.resolve1.NoSuchLink" else { return nil }
            throw Self.error("ask systemd-resolved for the tunnel's servers", error)
        }
    }

    private func property(
        _ name: String, of path: String
    ) throws(SystemBus.Failure) -> BusMessage {
        try bus.call(Self.service, path, "org.freedesktop.DBus.Properties", "Get") {
            (message) throws(SystemBus.Failure) in
            try message.append("org.freedesktop.resolve1.Link")
            try message.append(name)
        }
    }

    @discardableResult
    private func callManager(
        _ method: String, _ build: (BusMessage) throws(SystemBus.Failure) -> Void
    ) throws(SystemBus.Failure) -> BusMessage {
        try bus.call(Self.service, Self.path, Self.manager, method, build)
    }

    private static func error(_ purpose: String, _ failure: SystemBus.Failure) -> NetworkError {
        let (kind, advice): (NetworkError.Kind, String) =
            switch failure.name {
            case "org.freedesktop.resolve1.LinkBusy":
                (.busy, "; systemd-networkd manages the link: set DNS= in its .network file")
            case "org.freedesktop.DBus.Error.AccessDenied",
                "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired":
                (.permission, "; it needs root")
            default: (.other, "")
            }
        return NetworkError(
            kind, errno: failure.errno, "cannot \(purpose): \(failure.text)\(advice)")
    }
}

extension IPAddress {
    fileprivate var familyNumber: Int32 {
        switch self {
        case .v4: AF_INET
        case .v6: AF_INET6
        }
    }

    fileprivate var networkBytes: [UInt8] {
        func bytes<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
            stride(from: Number.bitWidth - 8, through: 0, by: -8).map {
                UInt8(truncatingIfNeeded: number >> Number($0))
            }
        }
        switch self {
        case .v4(let bits): return bytes(bits)
        case .v6(let high, let low): return bytes(high) + bytes(low)
        }
    }

    fileprivate init?(familyNumber: Int32, networkBytes: [UInt8]) {
        func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
            bytes.reduce(0) { $0 << 8 | UInt64($1) }
        }
        switch (familyNumber, networkBytes.count) {
        case (AF_INET, 4): self = .v4(UInt32(number(networkBytes[...])))
        case (AF_INET6, 16):
            self = .v6(high: number(networkBytes[..<8]), low: number(networkBytes[8...]))
        default: return nil
        }
    }
}
