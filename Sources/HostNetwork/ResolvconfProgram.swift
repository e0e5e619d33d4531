// SPDX-License-Identifier: Apache-2.0
import Glibc
import TunnelPlan
import WireGuard

/// resolvconf(8), of openresolv or of Debian: the program is the interface itself.
struct ResolvconfProgram: Sendable {
    var path: String
    /// Debian's orders records by patterns of their names (interface-order(5)), in which `tun*` comes
    /// before every other kind of link; our links are named by their users. openresolv has options
    /// for it instead.
    var ordersByName = false

    /// The first of `candidates` that is one; not the stand-in of systemd, which is spoken to over
    /// D-Bus (resolvectl(1), "COMPATIBILITY WITH RESOLVCONF(8)").
    static func find(_ candidates: [String]) -> ResolvconfProgram? {
        for path in candidates where unsafe access(path, X_OK) == 0 {
            guard let real = unsafe realpath(path, nil) else { continue }
            defer { unsafe free(real) }
            if unsafe !String(cString: real).hasSuffix("/resolvectl") {
                return ResolvconfProgram(path: path)
            }
        }
        return nil
    }

    /// Makes or replaces our record. `-m 0 -x` make it the first and the only one for openresolv,
    /// as wg-quick(8) does; Debian's takes no options here and overlooks them.
    func add(_ settings: DNSSettings, for name: InterfaceName) throws(NetworkError) {
        try run(["-a", record(name), "-m", "0", "-x"], input: Self.input(settings))
    }

    /// A record that is not there is no error.
    func remove(_ name: InterfaceName) throws(NetworkError) {
        try run(["-d", record(name), "-f"], input: [])
    }

    func has(_ name: InterfaceName) throws(NetworkError) -> Bool {
        try run(["-i"], input: []).split(whereSeparator: \.isWhitespace)
            .contains { $0 == record(name) }
    }

    /// INTERFACE.PROGRAM, as resolvconf(8) of Debian asks for.
    private func record(_ name: InterfaceName) -> String {
        ordersByName ? "tun.\(name).wg" : "\(name).wg"
    }

    /// As of resolv.conf(5). Domains that only route have no place there.
    static func input(_ settings: DNSSettings) -> [UInt8] {
        var text: [UInt8] = []
        for server in settings.servers {
            text += Array("nameserver ".utf8)
            server.append(to: &text)
            text.append(UInt8(ascii: "\n"))
        }
        let domains = settings.searchDomains.filter { !$0.isRoutingOnly }
        if !domains.isEmpty {
            let words = domains.map(\.description).joined(separator: " ")
            text += Array("search \(words)\n".utf8)
        }
        return text
    }

    @discardableResult
    private func run(_ arguments: [String], input: [UInt8]) throws(NetworkError) -> String {
        let purpose = "\(path) \(arguments.prefix(2).joined(separator: " "))"
        do throws(HelperProgram.Failure) {
            return try HelperProgram.run(path, arguments, input: input)
        } catch {
            switch error {
            case .start(let errno):
                throw NetworkError(
                    .other, errno: errno, "cannot run \(purpose): \(textOfErrno(errno))")
            case .tooLong:
                throw NetworkError(
                    .other, errno: ETIMEDOUT,
                    "\(purpose) did not end in \(HelperProgram.seconds) s and was killed")
            case .status(let status, let output):
                let reason = output.split(separator: "\n").first.map { ": \($0)" } ?? ""
                throw NetworkError(.other, "\(purpose) failed with \(status)\(reason)")
            }
        }
    }
}
