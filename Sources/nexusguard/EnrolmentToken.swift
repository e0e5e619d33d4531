// SPDX-License-Identifier: Apache-2.0
// Where an enrolment token comes from. Never an argument: arguments are in ps(1) and in audit logs
// (C94).
import ControlAPI
import HostProcess
import WireGuard

let tokenOptions = [
    Option(
        long: "token-file", argument: "FILE",
        help: "file that holds the enrolment token; - is standard input"),
    Option(
        long: "token-fd", argument: "NUMBER",
        help: "open descriptor to read the enrolment token from"),
]

/// Longest file of a token, in bytes.
private let tokenLimit = 4096

/// Of the options, or the credential `nexusguard.token` of systemd.exec(5); nil when there is none.
func enrolmentToken(_ invocation: Invocation) throws(Failure) -> SecretText? {
    if invocation.has("token-file"), invocation.has("token-fd") {
        throw .usage("--token-file and --token-fd exclude each other")
    }
    if let number = try invocation.number("token-fd", 0...65535) {
        return try token(
            try asking { () throws(HostError) in
                try HostFile.read(descriptor: Int32(number), limit: tokenLimit)
            }, "descriptor \(number)")
    }
    guard let path = invocation.values["token-file"] ?? credentialPath() else { return nil }
    if path == "-" {
        return try token(
            try asking { () throws(HostError) in
                try HostFile.readStandardInput(limit: tokenLimit)
            }, "standard input")
    }
    let file = try asking { () throws(HostError) in try HostFile.read(path, limit: tokenLimit) }
    guard !file.isOpenToAll else {
        throw Failure(
            code: ExitCode.noPermission,
            "\(visible(path)) holds a token and may be read by everybody; run chmod 600 "
                + shellQuoted(path))
    }
    return try token(file, visible(path))
}

private func credentialPath() -> String? {
    guard let directory = Host.environment("CREDENTIALS_DIRECTORY") else { return nil }
    let path = "\(directory)/nexusguard.token"
    return HostFile.exists(path) ? path : nil
}

private func token(_ file: HostFile, _ name: String) throws(Failure) -> SecretText {
    var bytes = file.bytes
    defer { erase(&bytes) }
    let blanks: [UInt8] = [0x20, 0x09, 0x0A, 0x0D]
    while let last = bytes.last, blanks.contains(last) { bytes.removeLast() }
    let start = bytes.firstIndex { !blanks.contains($0) } ?? bytes.endIndex
    guard start < bytes.endIndex, bytes[start...].allSatisfy({ 0x21..<0x7F ~= $0 }) else {
        throw Failure(
            "\(name) holds no token: one line of printable characters is expected")
    }
    return SecretText(String(decoding: bytes[start...], as: UTF8.self))
}
