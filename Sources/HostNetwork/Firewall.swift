// SPDX-License-Identifier: Apache-2.0
import CNFTables
import Glibc
import TunnelPlan

/// What there is of a tunnel's table.
public enum FirewallState: Equatable, Sendable {
    case absent
    /// Ours. `isIntact` is false when somebody changed it since; the settings are then what is left.
    case ours(FirewallSettings, isIntact: Bool)
    /// Somebody else's table has our name.
    case foreign
}

/// The tunnels' nft tables: `inet nexusguard-IFNAME`, one for each, of which nothing else on the
/// host depends and which touches nothing else (C45, C46). Needs CAP_NET_ADMIN.
@safe public struct Firewall: ~Copyable {
    private let context: OpaquePointer

    /// Throws `.unsupported` when the kernel has no nf_tables.
    public init() throws(NetworkError) {
        // libnftables ends the process where this socket cannot be opened (netlink_init_error of
        // its mnl.c), so it is tried before.
        let probe = socket(AF_NETLINK, Int32(SOCK_RAW.rawValue), NETLINK_NETFILTER)
        guard probe >= 0 else {
            throw NetworkError(
                errno == EPROTONOSUPPORT ? .unsupported : .other, errno: errno,
                "cannot use nftables: \(textOfErrno(errno)); the kernel needs CONFIG_NF_TABLES")
        }
        close(probe)
        guard let made = unsafe nft_ctx_new(UInt32(NFT_CTX_DEFAULT)) else {
            throw NetworkError(.other, errno: ENOMEM, "cannot use nftables: out of memory")
        }
        unsafe nft_ctx_buffer_output(made)
        unsafe nft_ctx_buffer_error(made)
        // No names from files of the host: the text is compared.
        unsafe nft_ctx_output_set_flags(
            made,
            UInt32(
                NFT_CTX_OUTPUT_STATELESS | NFT_CTX_OUTPUT_HANDLE | NFT_CTX_OUTPUT_NUMERIC_PROTO
                    | NFT_CTX_OUTPUT_NUMERIC_SYMBOL))
        unsafe context = made
    }

    deinit { unsafe nft_ctx_free(context) }

    /// Makes the table or replaces ours, in one transaction: packets see the old rules or the new
    /// ones. Does nothing when it is there and intact. Throws `.exists` for a table of that name
    /// that is not ours.
    public func apply(
        _ settings: FirewallSettings, for interface: InterfaceName
    ) throws(NetworkError) {
        let table = FirewallTable(settings, for: interface)
        let listing = try listing(of: table.name)
        if let listing {
            guard listing.isOurs, listing.handle != nil else { throw foreign(table.name) }
            if listing.shows(table) { return }
        }
        let action = listing == nil ? "make" : "replace"
        try run(
            table.commands(replacing: listing?.handle), "\(action) the nft table \(table.name)")
    }

    /// What there is now.
    public func current(_ interface: InterfaceName) throws(NetworkError) -> FirewallState {
        guard let listing = try listing(of: FirewallTable.name(for: interface)) else {
            return .absent
        }
        guard listing.isOurs else { return .foreign }
        let settings = listing.settings
        return .ours(
            settings, isIntact: listing.shows(FirewallTable(settings, for: interface)))
    }

    /// Removes our table. One that is gone is no error; throws `.exists` for somebody else's.
    public func remove(_ interface: InterfaceName) throws(NetworkError) {
        let name = FirewallTable.name(for: interface)
        guard let listing = try listing(of: name) else { return }
        guard listing.isOurs, let handle = listing.handle else { throw foreign(name) }
        try run("delete table inet handle \(handle)", "remove the nft table \(name)")
    }

    private func foreign(_ name: String) -> NetworkError {
        NetworkError(
            .exists, errno: EEXIST,
            "the nft table inet \(name) was not made by nexusguard: remove it or name the tunnel "
                + "differently"
        )
    }

    /// nil: there is none.
    private func listing(of name: String) throws(NetworkError) -> FirewallListing? {
        let tables = try run("list tables inet", "list the nft tables")
        let isThere = tables.split(separator: "\n").contains { line in
            line.split(separator: " ").prefix(3).elementsEqual(["table", "inet", Substring(name)])
        }
        guard isThere else { return nil }
        return FirewallListing(try run("list table inet \(name)", "list the nft table \(name)"))
    }

    /// What libnftables printed.
    @discardableResult
    private func run(_ commands: String, _ purpose: String) throws(NetworkError) -> String {
        let status = unsafe nft_run_cmd_from_buffer(context, commands)
        // Both buffers are emptied by reading them (libnftables(3)).
        let output = unsafe nft_ctx_get_output_buffer(context).map { unsafe String(cString: $0) }
        let problem = unsafe nft_ctx_get_error_buffer(context).map { unsafe String(cString: $0) }
        guard status == 0 else { throw Self.error(purpose, problem ?? "") }
        return output ?? ""
    }

    /// libnftables gives text only. Its first line says why, the others quote the commands.
    private static func error(_ purpose: String, _ text: String) -> NetworkError {
        var reason = text.split(separator: "\n").first.map(String.init) ?? "no reason given"
        if let cause = reason.text(after: "rror: ") { reason = String(cause) }
        for (number, kind, advice) in knownReasons
        where reason.text(after: textOfErrno(number)) != nil {
            return NetworkError(kind, errno: number, "cannot \(purpose): \(reason)\(advice)")
        }
        return NetworkError(.other, "cannot \(purpose): \(reason)")
    }

    private static let knownReasons: [(Int32, NetworkError.Kind, String)] = [
        (EPERM, .permission, "; it needs root or CAP_NET_ADMIN"),
        (EACCES, .permission, "; it needs root or CAP_NET_ADMIN"),
        (ENOENT, .notFound, "; it was removed meanwhile, or the kernel lacks a part of nf_tables"),
        (EEXIST, .exists, "; somebody made it meanwhile"),
        (EBUSY, .busy, ""),
        (EOPNOTSUPP, .unsupported, "; the kernel lacks a part of nf_tables"),
        (EAFNOSUPPORT, .unsupported, "; the kernel needs CONFIG_NF_TABLES_INET"),
    ]
}
