// SPDX-License-Identifier: Apache-2.0
// Any bytes as a configuration file: nothing crashes, and what is accepted is written so that it reads
// back the same.

import WireGuard

private let sampleKey = "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE="

let lineSamples = [
    "", "# comment", "[Interface]", "[Peer]", "PrivateKey = \(sampleKey)", "ListenPort = 51820",
    "FwMark = 0x10",
    "PublicKey = \(sampleKey)", "PresharedKey = \(sampleKey)", "AllowedIPs = 10.0.0.0/8, fd00::/64",
    "AllowedIPs =", "Endpoint = vpn.example.com:51820", "Endpoint = [2001:db8::1]:51820",
    "PersistentKeepalive = 25", "PersistentKeepalive = off", "Address = 10.0.0.1/24, fd00::1/64",
    "DNS = 10.0.0.53, example.com", "MTU = 1420", "Table = off", "PreUp = true",
    "PostUp = ip rule add",
    "PreDown = true", "PostDown = true", "SaveConfig = true",
]

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzConfiguration(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = unsafe Array(UnsafeBufferPointer(start: data, count: count))
    countLines(bytes)
    for lenient in [false, true] {
        guard
            let parsed = try? ConfigurationFile.parse(bytes.span, file: "fuzz", lenient: lenient)
        else { continue }
        let written = parsed.configuration.write()
        let again = try? ConfigurationFile.parse(written.span, file: "fuzz", lenient: lenient)
        precondition(again?.configuration == parsed.configuration)
    }
    return 0
}
