// SPDX-License-Identifier: Apache-2.0
// The client of the configuration protocol under any bytes a server may answer: nothing crashes,
// the outcome does not depend on how the stream is cut, and what was believed says the same again
// when a server of ours writes it.

@testable import WireGuard

private let sampleKey = String(repeating: "61", count: 32)

let lineSamples = [
    "", "private_key=\(sampleKey)", "listen_port=51820", "fwmark=16", "public_key=\(sampleKey)",
    "preshared_key=\(sampleKey)", "protocol_version=1", "endpoint=192.0.2.1:51820",
    "endpoint=[fe80::1%2]:5", "last_handshake_time_sec=1700000000", "last_handshake_time_nsec=5",
    "tx_bytes=1", "rx_bytes=2", "persistent_keepalive_interval=25", "allowed_ip=10.0.0.0/8",
    "allowed_ip=fd00::/64", "errno=0", "errno=-22",
]

private enum Outcome: Equatable {
    case answer(UAPIAnswer)
    case refused(UAPIAnswerError)
}

private func read(_ stream: [UInt8], pieces size: Int, limit: Int) -> Outcome {
    var reader = UAPIAnswerReader(limit: limit)
    var rest = stream[...]
    do throws(UAPIAnswerError) {
        while !rest.isEmpty {
            let piece = Array(rest.prefix(size))
            rest = rest.dropFirst(size)
            try reader.receive(piece.span)
        }
        return .answer(try reader.finish())
    } catch {
        return .refused(error)
    }
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzUAPIAnswer(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = unsafe Array(UnsafeBufferPointer(start: data, count: count))
    guard let first = bytes.first else { return 0 }
    let stream = Array(bytes.dropFirst())
    let whole = read(stream, pieces: max(1, stream.count), limit: stream.count)
    precondition(whole == read(stream, pieces: 1 + Int(first % 61), limit: stream.count))
    guard case .answer(let answer) = whole else { return 0 }
    var text: [UInt8] = []
    appendUAPI(answer.device, to: &text)
    text.append("errno=\(answer.errno)\n\n")
    precondition(read(text, pieces: text.count, limit: text.count) == whole)
    return 0
}
