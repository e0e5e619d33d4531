// SPDX-License-Identifier: Apache-2.0
import HostProcess
import TunnelEngine

let programName = "nexusguard-engine"
let programVersion = "0.1.0"

/// What the command line and the environment ask for.
struct Settings: Sendable {
    enum Request { case run, bench, help, version }

    var request = Request.run
    var engine = EngineOptions(name: "")
    var foreground = false
    /// Of the benchmark.
    var json = false
    /// nil: nothing at all.
    var logLevel: LogLevel? = .info
    /// nil: `/run/nexusguard/IFNAME.engine`.
    var stateSocket: String?
    var tunDescriptor: Int32?
    var uapiDescriptor: Int32?

    var controlPath: String { "/var/run/wireguard/\(engine.name).sock" }
    var statePath: String { stateSocket ?? "/run/nexusguard/\(engine.name).engine" }
}

/// Exit codes; the manual page lists them.
enum ExitCode {
    static let ok: UInt8 = 0
    static let failed: UInt8 = 1
    static let usage: UInt8 = 2
    static let noPermission: UInt8 = 4
    static let busy: UInt8 = 8
}

/// One line for standard error and the code to end with.
struct Failure: Error {
    let code: UInt8
    let message: String

    init(code: UInt8, _ message: String) {
        self.code = code
        self.message = message
    }

    static func usage(_ message: String) -> Failure {
        Failure(code: ExitCode.usage, "\(message); see \(programName) --help")
    }
}

/// The kernel's rule for a link's name, and no character that a shell, a path or a unit's name
/// would read differently: wg-quick(8) has the same set.
func isInterfaceName(_ name: String) -> Bool {
    (1...15).contains(name.utf8.count) && name != "." && name != ".."
        && name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: "_=+.-".utf8.contains(byte)
            }
        }
}

/// Printable and on one line, whatever it holds: for messages about arguments.
func quoted(_ text: String) -> String { text.debugDescription }
