// SPDX-License-Identifier: Apache-2.0
// For the targets whose input is text: whole lines are inserted, repeated, moved and damaged, which
// byte mutations hardly ever do, and the lines of all inputs are counted. A target gives `lineSamples`.

import Glibc

nonisolated(unsafe) private var linesSoFar = 0

private let printsAtExit: Bool = {
    atexit { unsafe print("fuzz: \(linesSoFar) lines") }
    return true
}()

func countLines(_ bytes: some Collection<UInt8>) {
    precondition(printsAtExit)
    unsafe linesSoFar +=
        bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).count
}

@_silgen_name("LLVMFuzzerMutate")
private func mutateBytes(_ data: UnsafeMutablePointer<UInt8>, _ size: Int, _ capacity: Int) -> Int

/// The same choices for the same seed.
private struct Choices: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {  // SplitMix64: Steele, Lea and Flood, OOPSLA 2014
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}

private let lineBytes = lineSamples.map { ArraySlice($0.utf8) }

private func insertedLine(from lines: [ArraySlice<UInt8>], with choices: inout Choices)
    -> ArraySlice<UInt8>
{
    let sample = Bool.random(using: &choices) || lines.isEmpty
    var line =
        sample
        ? lineBytes.randomElement(using: &choices)!
        : lines.randomElement(using: &choices)!
    for _ in 0..<Int.random(in: 0...2, using: &choices) where !line.isEmpty {
        let at = Int.random(in: line.indices, using: &choices)
        switch line[at] {
        case UInt8(ascii: "0")...UInt8(ascii: "9"):
            line[at] = UInt8.random(in: UInt8(ascii: "0")...UInt8(ascii: "9"), using: &choices)
        case UInt8(ascii: "a")...UInt8(ascii: "f"):
            line[at] = UInt8.random(in: UInt8(ascii: "a")...UInt8(ascii: "f"), using: &choices)
        default:
            if Int.random(in: 0..<16, using: &choices) == 0 {
                line[at] = UInt8.random(in: 0...255, using: &choices)
            }
        }
    }
    return line
}

private func changeLines(_ lines: inout [ArraySlice<UInt8>], with choices: inout Choices) {
    for _ in 0..<Int.random(in: 1...24, using: &choices) {
        let at = Int.random(in: 0...lines.count, using: &choices)
        switch Int.random(in: 0..<8, using: &choices) {
        case 0 where at < lines.count:
            lines.remove(at: at)
        case 1 where at < lines.count:
            lines.swapAt(at, Int.random(in: lines.indices, using: &choices))
        default:
            lines.insert(insertedLine(from: lines, with: &choices), at: at)
        }
    }
}

@_cdecl("LLVMFuzzerCustomMutator")
public func mutateText(
    _ data: UnsafeMutablePointer<UInt8>, _ size: Int, _ capacity: Int, _ seed: UInt32
) -> Int {
    var choices = Choices(state: UInt64(seed))
    if Int.random(in: 0..<3, using: &choices) == 0 {
        return unsafe mutateBytes(data, size, capacity)
    }
    let bytes = unsafe Array(UnsafeBufferPointer(start: data, count: size))
    var lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    changeLines(&lines, with: &choices)
    var text: [UInt8] = []
    for line in lines where text.count + line.count < capacity {
        if !text.isEmpty { text.append(UInt8(ascii: "\n")) }
        text += line
    }
    _ = unsafe UnsafeMutableBufferPointer(start: data, count: capacity).update(fromContentsOf: text)
    return text.count
}
