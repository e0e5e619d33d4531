// SPDX-License-Identifier: Apache-2.0
// What a client of the configuration protocol is told. The server may be anybody's: the bytes are
// hostile until they have been read.

/// Why an answer cannot be believed. Carries nothing of it but the name of a key.
public enum UAPIAnswerError: Error, Equatable, Sendable, CustomStringConvertible {
    /// More bytes than the reader was given as a limit.
    case tooLong(limit: Int)
    /// The server closed before its answer was whole.
    case incomplete
    /// A line without `=`, a blank one before `errno`, or anything after it.
    case malformed
    /// A value that the key cannot have.
    case value(key: String)
    /// A peer's key before the first `public_key`, a device's after it, or one said twice.
    case misplaced(key: String)

    public var description: String {
        switch self {
        case .tooLong(let limit): "its answer has more than \(limit) bytes"
        case .incomplete: "it closed before its answer was whole"
        case .malformed: "its answer is not of the configuration protocol"
        case .value(let key): "its answer has a bad value for \(key)"
        case .misplaced(let key): "its answer has \(key) in a place where it means nothing"
        }
    }
}

/// A whole answer.
public struct UAPIAnswer: Equatable, Sendable {
    /// As the server wrote it: 0, or an errno of Linux, positive from some servers and negative
    /// from others (C100).
    public var errno: Int32
    /// Its `publicKey`, `mtu` and `isUp` are not in the protocol and stay empty.
    public var device: DeviceSnapshot

    /// nil: it was done.
    public var failure: UAPIError? { errno == 0 ? nil : UAPIError(errno: abs(errno)) }
}

/// Reads the answer to one operation, however the stream is cut. Unknown keys are skipped, so that
/// newer servers can say more; known ones must be right.
public struct UAPIAnswerReader: Sendable {
    /// Bytes; 128 MiB are a million prefixes and a hundred thousand peers.
    public static let defaultLimit = 128 << 20

    private var limit: Int
    private var received = 0
    private var lines = LineAssembler()
    private var device = DeviceSnapshot()
    private var seen = DeviceKeys()
    private var known: Set<PublicKey> = []
    private var errno: Int32?
    private var isWhole = false

    /// `limit`: the most bytes an answer may have.
    public init(limit: Int = defaultLimit) { self.limit = limit }

    /// The answer, once it is whole.
    public var answer: UAPIAnswer? {
        guard isWhole, let errno else { return nil }
        return UAPIAnswer(errno: errno, device: device)
    }

    /// Takes the next bytes of the stream; the caller erases them. After it has thrown, or when
    /// there is an answer, nothing more may come.
    public mutating func receive(_ bytes: Span<UInt8>) throws(UAPIAnswerError) {
        guard bytes.count <= limit - received else { throw .tooLong(limit: limit) }
        received += bytes.count
        var position = 0
        while true {
            switch lines.next(in: bytes, at: &position) {
            case .incomplete: return
            case .within(let range): try read(bytes.extracting(range))
            case .assembled(let line):
                // Erased also when it was bad.
                defer { lines.recycle(line) }
                try read(line.span)
            case .tooLong: throw .malformed
            }
        }
    }

    /// The stream has ended.
    public mutating func finish() throws(UAPIAnswerError) -> UAPIAnswer {
        lines.reset()
        guard let answer else { throw .incomplete }
        return answer
    }

    // MARK: lines

    private mutating func read(_ line: Span<UInt8>) throws(UAPIAnswerError) {
        if line.isEmpty {
            guard errno != nil, !isWhole else { throw .malformed }
            isWhole = true
            return
        }
        guard errno == nil, let equals = line.firstIndex(of: UInt8(ascii: "=")) else {
            throw .malformed
        }
        let value = line.extracting((equals + 1)...)
        switch AnswerKey(line.extracting(..<equals)) {
        case nil: return
        case .errno: errno = try readErrno(value)
        case .device(let key): try readDevice(key, value)
        case .publicKey: try begin(value)
        case .peer(let key): try readPeer(key, value)
        }
    }

    private func readErrno(_ value: Span<UInt8>) throws(UAPIAnswerError) -> Int32 {
        let isNegative = !value.isEmpty && value[0] == UInt8(ascii: "-")
        let digits = value.extracting((isNegative ? 1 : 0)...)
        // MAX_ERRNO of linux/err.h.
        guard let number = parseDecimal(digits, maximum: 4095) else { throw .value(key: "errno") }
        return isNegative ? -Int32(number) : Int32(number)
    }

    private mutating func readDevice(
        _ key: DeviceKey, _ value: Span<UInt8>
    ) throws(UAPIAnswerError) {
        guard device.peers.isEmpty, seen.insert(key) else { throw .misplaced(key: key.rawValue) }
        switch key {
        case .privateKey:
            let secret = try parse(key.rawValue) { () throws(KeyError) in
                try SecretKey(hex: value)
            }
            device.privateKey = secret.isZero ? nil : secret
        case .listenPort:
            device.listenPort = UInt16(try number(value, 65535, key.rawValue))
        case .fwmark:
            device.fwmark = UInt32(try number(value, UInt64(UInt32.max), key.rawValue))
        }
    }

    private mutating func begin(_ value: Span<UInt8>) throws(UAPIAnswerError) {
        let key = try parse("public_key") { () throws(KeyError) in try PublicKey(hex: value) }
        guard known.insert(key).inserted else { throw .misplaced(key: "public_key") }
        device.peers.append(PeerSnapshot(publicKey: key))
    }

    private mutating func readPeer(_ key: PeerKey, _ value: Span<UInt8>) throws(UAPIAnswerError) {
        guard !device.peers.isEmpty else { throw .misplaced(key: key.rawValue) }
        let last = device.peers.count - 1
        let name = key.rawValue
        switch key {
        case .presharedKey:
            let secret = try parse(name) { () throws(KeyError) in try PresharedKey(hex: value) }
            device.peers[last].presharedKey = secret.isZero ? nil : secret
        case .protocolVersion:
            guard try number(value, 1, name) == 1 else { throw .value(key: name) }
        case .endpoint:
            guard let endpoint = Endpoint(value) else { throw .value(key: name) }
            device.peers[last].endpoint = endpoint
        case .handshakeSeconds:
            let seconds = try number(value, UInt64(Int64.max), name)
            device.peers[last].lastHandshakeSeconds = Int64(seconds)
        case .handshakeNanoseconds:
            let nanoseconds = try number(value, 999_999_999, name)
            device.peers[last].lastHandshakeNanoseconds = UInt32(nanoseconds)
        case .sentBytes: device.peers[last].sentBytes = try number(value, .max, name)
        case .receivedBytes: device.peers[last].receivedBytes = try number(value, .max, name)
        case .keepalive: device.peers[last].keepalive = UInt16(try number(value, 65535, name))
        case .allowedIP:
            // `wg` refuses a prefix without its length too.
            guard value.firstIndex(of: UInt8(ascii: "/")) != nil, let prefix = Prefix(value) else {
                throw .value(key: name)
            }
            device.peers[last].prefixes.append(prefix)
        }
    }
}

// MARK: values

private func number(
    _ value: Span<UInt8>, _ maximum: UInt64, _ key: String
) throws(UAPIAnswerError) -> UInt64 {
    guard let number = parseDecimal(value, maximum: maximum) else { throw .value(key: key) }
    return number
}

private func parse<Key>(
    _ name: String, _ body: () throws(KeyError) -> Key
) throws(UAPIAnswerError) -> Key {
    do throws(KeyError) { return try body() } catch { throw .value(key: name) }
}

// MARK: keys

private enum DeviceKey: String {
    case privateKey = "private_key"
    case listenPort = "listen_port"
    case fwmark
}

/// Which keys the device has had.
private struct DeviceKeys: Sendable {
    private var keys: [DeviceKey] = []

    mutating func insert(_ key: DeviceKey) -> Bool {
        guard !keys.contains(key) else { return false }
        keys.append(key)
        return true
    }
}

private enum PeerKey: String {
    case presharedKey = "preshared_key"
    case protocolVersion = "protocol_version"
    case endpoint
    case handshakeSeconds = "last_handshake_time_sec"
    case handshakeNanoseconds = "last_handshake_time_nsec"
    case sentBytes = "tx_bytes"
    case receivedBytes = "rx_bytes"
    case keepalive = "persistent_keepalive_interval"
    case allowedIP = "allowed_ip"
}

private enum AnswerKey {
    case device(DeviceKey)
    case publicKey
    case peer(PeerKey)
    case errno

    /// The most frequent first.
    private static let names: [(name: [UInt8], key: AnswerKey)] = [
        entry(.allowedIP), ([UInt8]("public_key".utf8), .publicKey), entry(.presharedKey),
        entry(.protocolVersion), entry(.endpoint), entry(.handshakeSeconds),
        entry(.handshakeNanoseconds), entry(.sentBytes), entry(.receivedBytes), entry(.keepalive),
        entry(.privateKey), entry(.listenPort), entry(.fwmark),
        ([UInt8]("errno".utf8), .errno),
    ]

    private static func entry(_ key: PeerKey) -> (name: [UInt8], key: AnswerKey) {
        ([UInt8](key.rawValue.utf8), .peer(key))
    }

    private static func entry(_ key: DeviceKey) -> (name: [UInt8], key: AnswerKey) {
        ([UInt8](key.rawValue.utf8), .device(key))
    }

    init?(_ name: Span<UInt8>) {
        for entry in Self.names where name.elementsEqual(entry.name) {
            self = entry.key
            return
        }
        return nil
    }
}
