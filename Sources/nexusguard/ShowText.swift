// SPDX-License-Identifier: Apache-2.0
// The form of `wg show` for people, byte for byte: what was learnt by watching wg 1.0.20210914.
import WireGuard

/// One tunnel that answered.
struct ShownDevice {
    let name: String
    let device: DeviceSnapshot
}

/// How to print it.
struct ShowStyle {
    var isColoured = false
    var hidesKeys = true
    /// Seconds of the wall clock.
    var now: Int64 = 0
}

/// SGR codes of ECMA-48.
private enum Colour: String {
    case reset = "0"
    case bold = "1"
    case red = "31"
    case green = "32"
    case yellow = "33"
    case cyan = "36"
}

/// Appends to a text that holds keys: the caller gives it room and erases it.
struct ShowText {
    let style: ShowStyle
    private(set) var bytes: [UInt8] = []

    init(_ devices: [ShownDevice], style: ShowStyle) {
        self.style = style
        bytes.reserveCapacity(room(for: devices, perPeer: 1024, perPrefix: 80))
        for (index, shown) in devices.enumerated() {
            if index > 0 { bytes.append("\n") }
            append(shown)
        }
    }

    private mutating func append(_ shown: ShownDevice) {
        let device = shown.device
        colour(.reset)
        header("interface", shown.name, .green)
        if let key = device.publicKey { line("public key") { $0.bytes.append(key.base64) } }
        if let key = device.privateKey, !key.isZero { line("private key") { $0.append(key) } }
        if device.listenPort != 0 { line("listening port") { $0.number(device.listenPort) } }
        if device.fwmark != 0 {
            line("fwmark") { $0.bytes.append("0x" + String(device.fwmark, radix: 16)) }
        }
        for peer in newestFirst(device.peers) {
            bytes.append("\n")
            append(peer)
        }
    }

    private mutating func append(_ peer: PeerSnapshot) {
        header("peer", peer.publicKey.base64, .yellow)
        if let key = peer.presharedKey, !key.isZero { line("preshared key") { $0.append(key) } }
        if let endpoint = peer.endpoint { line("endpoint") { endpoint.append(to: &$0.bytes) } }
        line("allowed ips") { $0.append(peer.prefixes) }
        if peer.lastHandshakeSeconds != 0 {
            line("latest handshake") { $0.appendAge(of: peer.lastHandshakeSeconds) }
        }
        if peer.receivedBytes != 0 || peer.sentBytes != 0 {
            line("transfer") { text in
                text.appendAmount(peer.receivedBytes)
                text.bytes.append(" received, ")
                text.appendAmount(peer.sentBytes)
                text.bytes.append(" sent")
            }
        }
        if peer.keepalive != 0 {
            line("persistent keepalive") { text in
                text.bytes.append("every ")
                text.appendDuration(UInt64(peer.keepalive))
            }
        }
    }

    // MARK: values

    private mutating func append(_ key: some Secret) {
        if style.hidesKeys {
            bytes.append("(hidden)")
        } else {
            key.appendBase64(to: &bytes)
        }
    }

    private mutating func append(_ prefixes: [Prefix]) {
        if prefixes.isEmpty { bytes.append("(none)") }
        for (index, prefix) in prefixes.enumerated() {
            if index > 0 { bytes.append(", ") }
            prefix.address.append(to: &bytes)
            coloured("/", .cyan)
            number(prefix.length)
        }
    }

    private mutating func appendAge(of seconds: Int64) {
        let age = style.now - seconds
        if age == 0 { return bytes.append("Now") }
        if age < 0 {
            bytes.append("(")
            coloured("System clock wound backward; connection problems may ensue.", .red)
            return bytes.append(")")
        }
        appendDuration(UInt64(age))
        bytes.append(" ago")
    }

    private mutating func appendDuration(_ seconds: UInt64) {
        let parts = [
            (seconds / 31_536_000, "year"), (seconds / 86_400 % 365, "day"),
            (seconds / 3600 % 24, "hour"), (seconds / 60 % 60, "minute"), (seconds % 60, "second"),
        ].filter { $0.0 > 0 }
        for (index, (count, unit)) in parts.enumerated() {
            if index > 0 { bytes.append(", ") }
            bytes.append(decimal: count)
            bytes.append(" ")
            coloured(count == 1 ? unit : unit + "s", .cyan)
        }
    }

    private mutating func appendAmount(_ amount: UInt64) {
        guard amount >= 1024 else {
            bytes.append(decimal: amount)
            bytes.append(" ")
            return coloured("B", .cyan)
        }
        let units: [(String, Double)] = [
            ("KiB", 0x1p10), ("MiB", 0x1p20), ("GiB", 0x1p30), ("TiB", 0x1p40),
        ]
        let (unit, size) = units.last { amount >= UInt64($0.1) } ?? units[0]
        bytes.append(twoDecimals(Double(amount) / size))
        bytes.append(" ")
        coloured(unit, .cyan)
    }

    private mutating func number(_ value: some UnsignedInteger) {
        bytes.append(decimal: UInt64(value))
    }

    // MARK: lines and colours

    private mutating func header(_ kind: String, _ name: String, _ first: Colour) {
        colour(first)
        coloured(kind, .bold)
        bytes.append(": ")
        coloured(name, first)
        bytes.append("\n")
    }

    private mutating func line(_ name: String, _ value: (inout ShowText) -> Void) {
        bytes.append("  ")
        coloured(name, .bold)
        bytes.append(": ")
        value(&self)
        bytes.append("\n")
    }

    private mutating func coloured(_ text: String, _ colour: Colour) {
        self.colour(colour)
        bytes.append(text)
        self.colour(.reset)
    }

    private mutating func colour(_ colour: Colour) {
        if style.isColoured { bytes.append("\u{1B}[\(colour.rawValue)m") }
    }
}

/// At least the size of the text: growing would leave copies of keys in freed memory.
func room(for devices: [ShownDevice], perPeer: Int, perPrefix: Int) -> Int {
    devices.reduce(0) { sum, shown in
        shown.device.peers.reduce(sum + 512) { $0 + perPeer + perPrefix * $1.prefixes.count }
    }
}

/// Peers without a handshake come last; equal ones stay in their order.
private func newestFirst(_ peers: [PeerSnapshot]) -> [PeerSnapshot] {
    peers.enumerated().sorted { left, right in
        let times = (left.element.lastHandshakeSeconds, left.element.lastHandshakeNanoseconds)
        let others = (right.element.lastHandshakeSeconds, right.element.lastHandshakeNanoseconds)
        return times == others ? left.offset < right.offset : times > others
    }.map(\.element)
}

/// As printf(3) with `%.2f`: ties go to the even digit. `value` is a multiple of 2^-40 below 2^24,
/// or a whole number: its fraction times 100 is exact.
private func twoDecimals(_ value: Double) -> String {
    let whole = value.rounded(.down)
    let hundredths = UInt64(((value - whole) * 100).rounded(.toNearestOrEven))
    let carried = UInt64(whole) + hundredths / 100
    let digits = String(hundredths % 100)
    return "\(carried)." + (digits.utf8.count == 1 ? "0" : "") + digits
}
