// SPDX-License-Identifier: Apache-2.0
import Crypto
import HostProcess
import WireGuard

let keyVerbs = [
    Verb(
        name: "genkey", summary: "Make a private key and print it.",
        details: "The same as `wg genkey`.", run: generatePrivateKey),
    Verb(
        name: "genpsk", summary: "Make a preshared key and print it.",
        details: "The same as `wg genpsk`.", run: generatePresharedKey),
    Verb(
        name: "pubkey", summary: "Print the public key of the private key on standard input.",
        details: "The same as `wg pubkey`.", run: printPublicKey),
]

private func generatePrivateKey(_ invocation: Invocation) throws(Failure) -> UInt8 {
    try printSecret(SecretKey.generate(), invocation)
}

private func generatePresharedKey(_ invocation: Invocation) throws(Failure) -> UInt8 {
    try printSecret(PresharedKey.generate(), invocation)
}

private func printSecret(_ key: some Secret, _ invocation: Invocation) throws(Failure) -> UInt8 {
    var text: [UInt8] = []
    text.reserveCapacity(45)
    key.appendBase64(to: &text)
    text.append(UInt8(ascii: "\n"))
    try Output.write(secret: &text, invocation)
    return ExitCode.ok
}

private func printPublicKey(_ invocation: Invocation) throws(Failure) -> UInt8 {
    // A key is 44 characters; what is longer by more than blanks is refused in any case.
    var input = try asking { () throws(HostError) in try HostFile.readStandardInput(limit: 4096) }
    defer { erase(&input.bytes) }
    let key: SecretKey = try secretKey(input.bytes, "standard input")
    try Output.write(key.publicKey.base64 + "\n")
    return ExitCode.ok
}

/// A key in base64, blanks after it aside. The message tells nothing of the text (C14).
func secretKey<Key: Secret>(_ text: [UInt8], _ origin: String) throws(Failure) -> Key {
    let end = text.lastIndex { !isBlank($0) }.map { $0 + 1 } ?? 0
    do throws(KeyError) {
        return try Key(base64: text.span.extracting(..<end))
    } catch {
        let cause =
            switch error {
            case .length(let length): "it has \(length) characters"
            case .character: "it has a character that is not base64"
            case .notCanonical: "its last character carries stray bits"
            }
        throw Failure(
            "\(origin) is not a key: \(cause); a key is 44 characters of base64, "
                + "make one with \(programName) genkey")
    }
}

/// As isspace(3) in the C locale.
func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || 0x09...0x0D ~= byte }
