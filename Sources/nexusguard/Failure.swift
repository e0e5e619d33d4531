// SPDX-License-Identifier: Apache-2.0
import HostProcess

/// Exit codes; nexusguard(8) lists them.
enum ExitCode {
    static let ok: UInt8 = 0
    static let failed: UInt8 = 1
    static let usage: UInt8 = 2
    static let notRunning: UInt8 = 3
    static let noPermission: UInt8 = 4
    static let configurationInvalid: UInt8 = 5
    static let busy: UInt8 = 8
}

/// What standard error says, and the code to end with.
struct Failure: Error, Equatable {
    let code: UInt8
    let message: String
    /// Lines that begin with FILE:LINE:COLUMN stand alone, so that editors find the place.
    var isDiagnostics = false

    init(code: UInt8 = ExitCode.failed, _ message: String) {
        self.code = code
        self.message = message
    }

    static func usage(_ message: String) -> Failure { Failure(code: ExitCode.usage, message) }

    static func diagnostics(_ text: String) -> Failure {
        var failure = Failure(code: ExitCode.configurationInvalid, text)
        failure.isDiagnostics = true
        return failure
    }

    init(_ error: HostError) {
        let code =
            switch error.kind {
            case .noPermission: ExitCode.noPermission
            case .busy, .other: ExitCode.failed
            }
        self.init(code: code, error.description)
    }
}

/// Asks the host something; its errors become ours.
func asking<Value: ~Copyable>(_ body: () throws(HostError) -> Value) throws(Failure) -> Value {
    do throws(HostError) {
        return try body()
    } catch {
        throw Failure(error)
    }
}

/// Printable and on one line, whatever it holds: for messages about arguments.
func quoted(_ text: String) -> String { text.debugDescription }

/// A word that a POSIX shell reads back as `text`: for commands to copy out of messages.
func shellQuoted(_ text: String) -> String {
    let isPlain =
        !text.isEmpty
        && text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: "/._=+-:@%,".utf8.contains(byte)
            }
        }
    guard !isPlain else { return text }
    return "'"
        + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
        + "'"
}
