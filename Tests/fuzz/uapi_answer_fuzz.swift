// SPDX-License-Identifier: Apache-2.0
// The client of the configuration protocol under any bytes a server may answer: nothing crashes,
// the outcome does not depend on how the stream is cut, and what was believed says the same again
// when a server of ours writes it. Compiled into one module with Sources/WireGuard.

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
