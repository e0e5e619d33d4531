// SPDX-License-Identifier: Apache-2.0
import HostProcess
import TunnelPlan
import WireGuard

/// Runs the shell commands of a configuration, one after the other, as root. Only ever called for
/// those that root has allowed (C26).
enum Commands {
    /// How long one may take, in milliseconds. Nothing else is served meanwhile.
    static let limit: Int64 = 120_000

    /// Stops at the first that does not end with 0.
    static func run(
        _ commands: [ConfigurationText], name: InterfaceName
    ) throws(KeeperFailure) {
        // wg-quick(8) says bash; where there is none, sh has to do.
        let shell = Host.isExecutable("/bin/bash") ? "/bin/bash" : "/bin/sh"
        for command in commands {
            try run(substitute(command.description, name: name), shell: shell)
        }
    }

    private static func run(_ command: String, shell: String) throws(KeeperFailure) {
        let end: ChildProcess.End?
        let output: String
        do throws(HostError) {
            var child = try ChildProcess.start(
                shell, arguments: ["-c", command],
                environment: [
                    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                    "LC_ALL=C",
                ])
            end = child.wait(milliseconds: limit)
            if end == nil { child.kill() }
            output = child.output()
        } catch {
            throw KeeperFailure(error)
        }
        guard end != .exited(0) else { return }
        let how =
            switch end {
            case .exited(let code): "ended with \(code)"
            case .killed(let signal): "was ended by signal \(signal)"
            case nil: "did not end in \(limit / 1000) s"
            }
        // The command itself may hold a secret: its place in the file is enough to find it.
        let said = output.isEmpty ? "" : ": \(firstLine(output))"
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
