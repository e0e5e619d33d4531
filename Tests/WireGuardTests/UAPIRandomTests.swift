// SPDX-License-Identifier: Apache-2.0
// Random conversations: cut anywhere they mean the same, and a slow reader of whole texts that is
// written for plainness only agrees with the connection on every one.
import TestSupport
import Testing

@testable import WireGuard

/// Makes lines that are mostly right, about few enough keys and prefixes that they meet.
private struct Conversation {
    var random: SeededRandom

    mutating func deviceLine() -> String {
        switch random.below(6) {
        case 0: "private_key=" + hex(UInt8(random.below(3)))
        case 1: "listen_port=\(random.below(70_000))"
        case 2: "fwmark=" + (random.oneIn(2) ? "0x" : "") + "\(random.below(5000))"
        default: "replace_peers=true"
        }
    }

    mutating func peerLine() -> String {
        switch random.below(12) {
        case 0: "preshared_key=" + hex(UInt8(random.below(3)))
        case 1:
            "endpoint="
                + Endpoint(address: random.address(), port: UInt16(random.below(65536)))!
                .description
        case 2: "persistent_keepalive_interval=\(random.below(70_000))"
        case 3: "replace_allowed_ips=true"
        case 4: random.oneIn(3) ? "remove=true" : "update_only=true"
        case 5: "protocol_version=1"
        default:
            "allowed_ip=" + (random.oneIn(4) ? "-" : "")
                + "10.\(random.below(4)).0.\(random.below(3))/\(random.below(34))"
        }
    }

    mutating func operation() -> [String] {
        if random.oneIn(5) { return ["get=1", ""] }
        var lines = ["set=1"]
        for _ in 0..<random.below(3) { lines.append(deviceLine()) }
        for _ in 0..<random.below(5) {
            lines.append("public_key=" + hex(UInt8(random.below(6))))
            for _ in 0..<random.below(6) { lines.append(peerLine()) }
        }
        return lines + [""]
    }

    mutating func mutate(_ line: String) -> [UInt8] {
        var bytes = [UInt8](line.utf8)
        for _ in 0...random.below(2) {
            let position = random.below(bytes.count + 1)
            let byte =
                random.oneIn(3)
                ? UInt8(random.below(256)) : [UInt8]("=\n\r-/.:%0x1 ".utf8)[random.below(12)]
            switch random.below(4) {
            case 0: bytes.insert(byte, at: position)
            case 1: if position < bytes.count { bytes[position] = byte }
            case 2: if position < bytes.count { bytes.remove(at: position) }
            default: bytes.removeLast(bytes.count - position)
            }
        }
        return bytes
    }

    /// Some operations; each line is mutated with a chance of one in `rarity`.
    mutating func text(mutatingOneIn rarity: Int) -> (bytes: [UInt8], mutated: Int) {
        var bytes: [UInt8] = []
        var mutated = 0
        for _ in 0...random.below(4) {
            for line in operation() {
                let isMutated = random.oneIn(rarity)
                mutated += isMutated ? 1 : 0
                bytes += (isMutated ? mutate(line) : [UInt8](line.utf8)) + [UInt8(ascii: "\n")]
            }
        }
        if random.oneIn(10) { bytes.removeLast(random.below(bytes.count)) }
        return (bytes, mutated)
    }

    mutating func cut(_ bytes: [UInt8]) -> [[UInt8]] {
        var fragments: [[UInt8]] = []
        let longest = [1, 5, 60, 1000][random.below(4)]
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start + random.below(longest + 1))
            fragments.append([UInt8](bytes[start..<end]))
            start = end
        }
        return fragments
    }
}

/// The protocol once more, over whole lines in memory and without regard to cost. Shares only the
/// parsers of single values with the connection.
private struct SlowReader {
    let device: MemoryDevice
    var output = ""
    var mustClose = false

    mutating func read(_ bytes: [UInt8]) {
        var lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            .map { [UInt8]($0) }
        lines.removeLast()  // what follows the last newline is no line
        var next = lines.startIndex
        while next < lines.endIndex, !mustClose {
            let first = lines[next]
            next += 1
            if first == [UInt8]("set=1".utf8) {
                next = set(lines, from: next)
            } else if first == [UInt8]("get=1".utf8) {
                next = get(lines, from: next)
            } else {
                output += "errno=-71\n\n"
                next = first.isEmpty ? close(next) : skip(lines, from: next)
            }
        }
    }

    private mutating func close(_ next: Int) -> Int {
        mustClose = true
        return next
    }

    private mutating func skip(_ lines: [[UInt8]], from start: Int) -> Int {
        let blank = lines[start...].firstIndex { $0.isEmpty || $0 == [UInt8(ascii: "\r")] }
        return blank == nil ? lines.endIndex : close(blank! + 1)
    }

    private mutating func get(_ lines: [[UInt8]], from start: Int) -> Int {
        guard start < lines.endIndex else { return start }
        guard lines[start].isEmpty else {
            output += "errno=22\n\n"
            // The line after get=1 is refused whatever it is; a later blank one ends it.
            return skip(lines, from: start + 1)
        }
        var text: [UInt8] = []
        appendUAPI(device.state, to: &text)
        output += String(decoding: text, as: UTF8.self) + "errno=0\n\n"
        return start + 1
    }

    private mutating func set(_ lines: [[UInt8]], from start: Int) -> Int {
        var peer: PeerChange?
        var replacing = false
        for position in start..<lines.endIndex {
            var line = lines[position]
            if line.last == UInt8(ascii: "\r") { line.removeLast() }
            let errno = line.isEmpty ? flush(&peer) : apply(line, &peer, &replacing)
            if errno == 0, line.isEmpty {
                if replacing { try? device.commitReplacePeers() }
                output += "errno=0\n\n"
                return position + 1
            }
            if errno != 0 {
                _ = flush(&peer)
                if replacing { device.abortReplacePeers() }
                output += "errno=-\(errno)\n\n"
                return line.isEmpty ? position + 1 : skip(lines, from: position + 1)
            }
        }
        if replacing { device.abortReplacePeers() }
        return lines.endIndex
    }

    private func flush(_ peer: inout PeerChange?) -> Int32 {
        guard let change = peer else { return 0 }
        peer = nil
        return thrown { () throws(UAPIError) in try device.set(peer: change) }?.errno ?? 0
    }

    private func apply(_ line: [UInt8], _ peer: inout PeerChange?, _ replacing: inout Bool) -> Int32
    {
        guard let equals = line.firstIndex(of: UInt8(ascii: "=")) else { return 71 }
        let key = String(decoding: line[..<equals], as: UTF8.self)
        let value = String(decoding: line[(equals + 1)...], as: UTF8.self)
        // Bytes that are no UTF-8 are valid in no value.
        guard [UInt8](value.utf8) == [UInt8](line[(equals + 1)...]) else {
            return key == "public_key" ? max(flush(&peer), 22) : 22
        }
        if key == "public_key" {
            let errno = flush(&peer)
            guard errno == 0 else { return errno }
            guard let name = try? PublicKey(hex: value) else { return 22 }
            peer = PeerChange(publicKey: name)
            return 0
        }
        guard peer != nil else { return applyToDevice(key, value, &replacing) }
        return applyToPeer(key, value, &peer!) ? 0 : 22
    }

    private func applyToDevice(_ key: String, _ value: String, _ replacing: inout Bool) -> Int32 {
        var change = DeviceChange()
        switch key {
        case "private_key":
            guard let key = try? SecretKey(hex: [UInt8](value.utf8).span) else { return 22 }
            change.privateKey = key
        case "listen_port":
            guard isDigits(value), let port = UInt16(value) else { return 22 }
            change.listenPort = port
        case "fwmark":
            let hexadecimal =
                value.lowercased().hasPrefix("0x") && !value.dropFirst(2).hasPrefix("+")
            let digits = hexadecimal ? String(value.dropFirst(2)) : value
            guard hexadecimal ? !digits.hasPrefix("-") : isDigits(digits),
                let mark = UInt32(digits, radix: hexadecimal ? 16 : 10)
            else { return 22 }
            change.fwmark = mark
        case "replace_peers":
            guard value == "true" else { return 22 }
            if !replacing { try? device.beginReplacePeers() }
            replacing = true
            return 0
        default: return 22
        }
        return thrown { () throws(UAPIError) in try device.set(device: change) }?.errno ?? 0
    }

    private func applyToPeer(_ key: String, _ value: String, _ peer: inout PeerChange) -> Bool {
        switch (key, value) {
        case ("remove", "true"): peer.remove = true
        case ("update_only", "true"): peer.updateOnly = true
        case ("protocol_version", "1"): break
        case ("replace_allowed_ips", "true"):
            peer.replaceAllowedIPs = true
            peer.prefixes = []
        case ("preshared_key", _):
            guard let key = try? PresharedKey(hex: [UInt8](value.utf8).span) else { return false }
            peer.presharedKey = key
        case ("endpoint", _):
            guard let endpoint = Endpoint(value) else { return false }
            peer.endpoint = endpoint
        case ("persistent_keepalive_interval", _):
            guard isDigits(value), let seconds = UInt16(value) else { return false }
            peer.keepalive = seconds
        case ("allowed_ip", _):
            let remove = value.hasPrefix("-")
            let text = remove ? String(value.dropFirst()) : value
            guard text.contains("/"), let prefix = Prefix(text) else { return false }
            peer.prefixes.append(PrefixChange(prefix, remove: remove))
        default: return false
        }
        return true
    }

    private func isDigits(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { 0x30...0x39 ~= $0 }
    }
}

@Suite struct UAPIRandomTests {
    /// Everything that a conversation leaves behind.
    private func expectEqual(_ left: MemoryDevice, _ right: MemoryDevice, _ round: Int) {
        hold(left.state == right.state, "round \(round)")
        hold(left.peerChanges == right.peerChanges, "round \(round)")
        hold(left.deviceChanges == right.deviceChanges, "round \(round)")
        hold((left.commits, left.aborts) == (right.commits, right.aborts), "round \(round)")
        hold(!left.isReplacingPeers && !right.isReplacingPeers, "round \(round)")
    }

    @Test func however_the_input_is_cut_the_result_is_the_same() {
        var conversation = Conversation(random: SeededRandom(seed: 6))
        for round in 0..<2000 {
            let (bytes, _) = conversation.text(mutatingOneIn: 40)
            let whole = MemoryDevice()
            let cut = MemoryDevice()
            let expected = converse([bytes], with: whole)
            let actual = converse(conversation.cut(bytes), with: cut)
            hold(actual == expected, "round \(round)")
            expectEqual(cut, whole, round)
        }
    }

    @Test func a_hundred_thousand_mutated_lines_are_read_as_the_slow_reader_reads_them() {
        var conversation = Conversation(random: SeededRandom(seed: 7))
        var mutated = 0
        var closed = 0
        var rounds = 0
        while mutated < 100_000 {
            // Few mutations reach deep, many reach odd combinations.
            let (bytes, count) = conversation.text(mutatingOneIn: [2, 3, 8][rounds % 3])
            mutated += count
            rounds += 1
            let device = MemoryDevice()
            let actual = converse([bytes], with: device)
            var reader = SlowReader(device: MemoryDevice())
            reader.read(bytes)
            hold(actual == (reader.output, reader.mustClose), "round \(rounds)")
            expectEqual(device, reader.device, rounds)
            closed += actual.mustClose ? 1 : 0
        }
        // Both kinds of ending were seen often.
        #expect(closed > 1000 && rounds - closed > 1000)
    }

    @Test func random_bytes_never_trap_and_every_answer_ends_with_errno_and_a_blank_line() {
        var random = SeededRandom(seed: 8)
        for _ in 0..<20_000 {
            let bytes = (0..<random.below(200)).map { _ in UInt8(random.below(256)) }
            let start: [UInt8] = [[], [UInt8]("set=1\n".utf8), [UInt8]("get=1\n".utf8)][
                random.below(3)]
            let device = MemoryDevice()
            let (output, _) = converse([start, bytes], with: device)
            hold(output.isEmpty || output.hasPrefix("errno=") && output.hasSuffix("\n\n"))
            hold(device.peerChanges.isEmpty && device.deviceChanges.isEmpty)
        }
    }
}
