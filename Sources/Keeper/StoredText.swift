// SPDX-License-Identifier: Apache-2.0
// The text of a keeper's file: a configuration file, and before it comments with the rest.
//
//   # nexusguard-keeper 1 good auto refuse        phase, back-end, hooks
//   # nexusguard-keeper: sum 1a2b3c               of all that follows this line
//   # nexusguard-keeper: persistent               and so on
import TunnelPlan
import WireGuard

/// Why a text is none of a keeper's.
struct StoredTextError: Error { let reason: String }

enum StoredText {
    private static let mark = "# nexusguard-keeper 1 "
    private static let noteMark = "# nexusguard-keeper: "
    private static let sumWord = "sum "

    // MARK: writing

    /// The caller erases it.
    static func write(_ intent: Intent?, _ phase: Stored.Phase?) -> [UInt8] {
        var configuration = intent?.configuration.write() ?? []
        defer { erase(&configuration) }
        let notes = (intent.map(notes) ?? []).map { "\(noteMark)\($0)\n" }.joined()
        let sum = fingerprint(of: notes.utf8, then: configuration)
        let head = "\(mark)\(describe(intent, phase))\n\(noteMark)\(sumWord)\(hex(sum))\n\(notes)"
        var text: [UInt8] = []
        text.reserveCapacity(head.utf8.count + configuration.count)
        text += Array(head.utf8)
        text += configuration
        return text
    }

    private static func describe(_ intent: Intent?, _ phase: Stored.Phase?) -> String {
        let state =
            switch phase {
            case nil: "good"
            case .applying: "applying"
            case .unconfirmed(let deadline): "unconfirmed:\(deadline)"
            case .ending: "ending"
            }
        guard let intent else { return "\(state) none refuse" }
        return "\(state) \(intent.backend?.rawValue ?? "auto") \(intent.hooks.rawValue)"
    }

    private static func notes(_ intent: Intent) -> [String] {
        var notes: [String] = []
        if intent.isPersistent { notes.append("persistent") }
        if intent.gateway.masquerades { notes.append("masquerades") }
        if intent.gateway.forwardsBetweenPeers { notes.append("forwards-between-peers") }
        if intent.gateway.answersThroughTunnel { notes.append("answers-through-tunnel") }
        return notes + intent.gateway.forwards.map { "forward \($0.words)" }
    }

    // MARK: reading

    /// An intent of nil: nothing was running. `needsSum`: a text without one is refused.
    static func read(
        _ bytes: [UInt8], file: String, needsSum: Bool
    ) throws(StoredTextError) -> (Intent?, Stored.Phase?) {
        var lines = Lines(bytes)
        guard let head = lines.next(), head.hasPrefix(mark),
            let (phase, hasIntent, backend, hooks) = parse(
                head.dropFirst(mark.count).split(separator: " "))
        else { throw StoredTextError(reason: "its first line is not one of this program's") }
        try checkSum(&lines, isNeeded: needsSum)
        guard hasIntent else { return (nil, phase) }
        let configuration: ConfigurationFile
        do throws(ConfigurationError) {
            // What the lenient reader let in, it must let in again.
            configuration = try ConfigurationFile.parse(bytes.span, file: file, lenient: true)
                .configuration
        } catch {
            throw StoredTextError(reason: error.description)
        }
        var intent = Intent(configuration, backend: backend, hooks: hooks)
        while let note = lines.next(after: noteMark) { try take(note, into: &intent) }
        return (intent, phase)
    }

    /// What was written by a keeper before there was a sum has none.
    private static func checkSum(
        _ lines: inout Lines, isNeeded: Bool
    ) throws(StoredTextError) {
        guard let sum = lines.next(after: noteMark + sumWord) else {
            if isNeeded { throw StoredTextError(reason: "it has no sum: it was cut off") }
            return
        }
        guard sum == hex(fingerprint(of: lines.rest)) else {
            throw StoredTextError(reason: "its sum is another: it was changed, cut off or damaged")
        }
    }

    private static func take(_ note: String, into intent: inout Intent) throws(StoredTextError) {
        switch note {
        case "persistent": intent.isPersistent = true
        case "masquerades": intent.gateway.masquerades = true
        case "forwards-between-peers": intent.gateway.forwardsBetweenPeers = true
        case "answers-through-tunnel": intent.gateway.answersThroughTunnel = true
        default:
            let word = "forward "
            guard note.hasPrefix(word),
                let forward = PortForward(words: String(note.dropFirst(word.count)))
            else { throw StoredTextError(reason: "it is of a newer version of this program") }
            intent.gateway.forwards.append(forward)
        }
    }

    private static func parse(
        _ words: [Substring]
    ) -> (Stored.Phase?, hasIntent: Bool, BackendKind?, HookPolicy)? {
        guard words.count == 3, let hooks = HookPolicy(rawValue: String(words[2])) else {
            return nil
        }
        let backend = BackendKind(rawValue: String(words[1]))
        guard backend != nil || words[1] == "auto" || words[1] == "none" else { return nil }
        let phase: Stored.Phase?
        switch words[0] {
        case "good": phase = nil
        case "applying": phase = .applying
        case "ending": phase = .ending
        default:
            let parts = words[0].split(separator: ":")
            guard parts.count == 2, parts[0] == "unconfirmed", let deadline = Int64(parts[1])
            else { return nil }
            phase = .unconfirmed(deadline: deadline)
        }
        return (phase, words[1] != "none", backend, hooks)
    }
}

// MARK: lines and sum

/// The lines of the head. The rest holds keys: no part of it becomes a String.
private struct Lines {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var rest: ArraySlice<UInt8> { bytes[position...] }

    /// nil at the end, and where no comment follows.
    mutating func next() -> String? {
        guard rest.first == UInt8(ascii: "#") else { return nil }
        let end = rest.firstIndex(of: 0x0A) ?? bytes.endIndex
        defer { position = min(end + 1, bytes.endIndex) }
        return String(decoding: bytes[position..<end], as: UTF8.self)
    }

    /// The rest of a line that begins with `mark`; nil, and nothing is read, for another line.
    mutating func next(after mark: String) -> String? {
        guard rest.starts(with: Array(mark.utf8)) else { return nil }
        return next().map { String($0.dropFirst(mark.count)) }
    }
}

/// FNV-1a of 64 bits (draft-eastlake-fnv): it finds damage, it stops nobody who wants to deceive; who
/// can write here is root.
private func fingerprint(
    of first: some Sequence<UInt8>, then second: [UInt8] = []
) -> UInt64 {
    var sum: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in first { sum = (sum ^ UInt64(byte)) &* 0x100_0000_01B3 }
    for byte in second { sum = (sum ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return sum
}

private func hex(_ number: UInt64) -> String { String(number, radix: 16) }
