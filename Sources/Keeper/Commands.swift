// SPDX-License-Identifier: Apache-2.0
import HostProcess
import TunnelPlan
import WireGuard

/// The shell commands of a configuration, one after the other, as root, beside what the keeper does
/// meanwhile. Only ever those that root has allowed (C26).
struct Commands: ~Copyable {
    /// How long one may take, in milliseconds.
    static let limit: Int64 = 120_000
    /// How often to look where the kernel has no descriptor for a process, in milliseconds.
    private static let pollTime: Int64 = 5

    enum Progress: Equatable {
        case running
        /// nil: all ended with 0. They stop at the first that does not.
        case ended(KeeperFailure?)
    }

    private let name: InterfaceName
    private var rest: ArraySlice<ConfigurationText>
    private var child: ChildProcess?
    private var deadline: Int64 = 0

    init(_ commands: [ConfigurationText], name: InterfaceName) {
        self.name = name
        rest = commands[...]
    }

    /// To wait on; then `advance`.
    var descriptor: Int32? {
        switch child {
        case .some(let child): child.descriptor
        case nil: nil
        }
    }

    /// Milliseconds, 0 or more, after which to `advance` though the descriptor was silent.
    func timeout(now: Int64) -> Int64 {
        guard child != nil else { return 0 }
        return descriptor == nil ? Self.pollTime : max(0, deadline - now)
    }

    /// Starts what is to be started. Never waits.
    mutating func advance(now: Int64) -> Progress {
        do throws(KeeperFailure) {
            while try hasEnded(now: now) {
                guard let next = rest.popFirst() else { return .ended(nil) }
                try start(Self.substitute(next.description, name: name), now: now)
            }
            return .running
        } catch {
            child = nil
            return .ended(error)
        }
    }

    private mutating func start(_ command: String, now: Int64) throws(KeeperFailure) {
        // wg-quick(8) says bash; where there is none, sh has to do.
        let shell = Host.isExecutable("/bin/bash") ? "/bin/bash" : "/bin/sh"
        deadline = now + Self.limit
        child = try asking { () throws(HostError) in
            try ChildProcess.start(
                shell, arguments: ["-c", command],
                environment: [
                    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                    "LC_ALL=C",
                ])
        }
    }

    /// True also before the first. Throws why the command did not succeed.
    private mutating func hasEnded(now: Int64) throws(KeeperFailure) -> Bool {
        guard var running = child.take() else { return true }
        let end = running.end()
        if end == nil, now < deadline {
            child = consume running
            return false
        }
        if end == nil { running.kill() }
        guard end != .exited(0) else { return true }
        let how =
            switch end {
            case .exited(let code): "ended with \(code)"
            case .killed(let signal): "was ended by signal \(signal)"
            case nil: "did not end in \(Self.limit / 1000) s"
            }
        // The command itself may hold a secret: its place in the file is enough to find it.
        let output = running.output()
        let said = output.isEmpty ? "" : ": \(Self.firstLine(output))"
        throw KeeperFailure(.failed, "a command of the configuration \(how)\(said)")
    }

    /// `%i` is the interface's name, as in wg-quick(8).
    static func substitute(_ command: String, name: InterfaceName) -> String {
        var result = ""
        var rest = Substring(command)
        while let percent = rest.firstIndex(of: "%") {
            result += rest[..<percent]
            let after = rest.index(after: percent)
            if after < rest.endIndex, rest[after] == "i" {
                result += name.description
                rest = rest[rest.index(after: after)...]
            } else {
                result += "%"
                rest = rest[after...]
            }
        }
        return result + rest
    }

    private static func firstLine(_ text: String) -> String {
        let line = text.unicodeScalars.prefix { $0 != "\n" }
            .filter { $0.value >= 0x20 && !(0x7F...0x9F ~= $0.value) }
        return String(String.UnicodeScalarView(line.prefix(200)))
    }
}
