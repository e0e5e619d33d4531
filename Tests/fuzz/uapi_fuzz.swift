// SPDX-License-Identifier: Apache-2.0
// The configuration protocol under any bytes a client may send: nothing crashes, the answer does not
// depend on how the stream is cut, and memory stays bounded. Compiled into one module with
// Sources/WireGuard and the tests' memory device.

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
    let whole = MemoryDevice()
    let pieces = MemoryDevice()
    let answers = converse(stream, pieces: max(1, stream.count), with: whole)
    precondition(answers == converse(stream, pieces: 1 + Int(first % 61), with: pieces))
    precondition(whole.state.peers.count == pieces.state.peers.count)
    precondition(!whole.isReplacingPeers, "a connection that ended leaves no replacement open")
    return 0
}
