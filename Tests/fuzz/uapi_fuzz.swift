// SPDX-License-Identifier: Apache-2.0
// The configuration protocol under any bytes a client may send: nothing crashes, the answer does not
// depend on how the stream is cut, and memory stays bounded.

import WireGuard

private let sampleKey = String(repeating: "61", count: 32)

let lineSamples = [
    "", "set=1", "get=1", "private_key=\(sampleKey)", "listen_port=51820", "fwmark=0x10",
    "replace_peers=true",
    "public_key=\(sampleKey)", "preshared_key=\(sampleKey)", "endpoint=192.0.2.1:51820",
    "endpoint=[2001:db8::1]:51820", "endpoint=[fe80::1%lo]:5", "persistent_keepalive_interval=25",
    "replace_allowed_ips=true", "allowed_ip=10.0.0.0/8", "allowed_ip=-10.0.0.0/8",
    "allowed_ip=fd00::/64",
    "protocol_version=1", "update_only=true", "remove=true",
]

/// One client's whole stream, in pieces of `size`; what it was answered.
private func converse(_ stream: ArraySlice<UInt8>, pieces size: Int, with device: MemoryDevice)
    -> [UInt8]
{
    var connection = UAPIConnection()
    var answers: [UInt8] = []
    var rest = stream
    while !rest.isEmpty && !connection.mustClose {
        connection.receive(Array(rest.prefix(size)), device: device)
        rest = rest.dropFirst(size)
        answers += connection.takeOutput()
        while connection.hasHeldInput && !connection.mustClose {
            connection.receive([], device: device)
            answers += connection.takeOutput()
        }
    }
    connection.finish(device: device)
    return answers
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzUAPI(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = unsafe Array(UnsafeBufferPointer(start: data, count: count))
    guard let first = bytes.first else { return 0 }
    let stream = bytes.dropFirst()
    countLines(stream)
    let whole = MemoryDevice()
    let pieces = MemoryDevice()
    let answers = converse(stream, pieces: max(1, stream.count), with: whole)
    precondition(answers == converse(stream, pieces: 1 + Int(first % 61), with: pieces))
    precondition(whole.state.peers.count == pieces.state.peers.count)
    precondition(!whole.isReplacingPeers, "a connection that ended leaves no replacement open")
    return 0
}
