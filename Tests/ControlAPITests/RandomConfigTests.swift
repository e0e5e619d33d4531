// SPDX-License-Identifier: Apache-2.0
// Random configurations survive their way and keep their hash; random damage is refused or is
// another valid configuration, and nothing worse.
import ControlAPI
import TestSupport
import Testing
import WireGuard

extension SeededRandom {
    mutating func key() -> String { base64(bytes(32)) }

    /// Groups of zeros are as likely as others: they are what the text forms are about.
    mutating func address() -> IPAddress {
        if oneIn(2) { return .v4(UInt32(truncatingIfNeeded: next())) }
        var words: [UInt64] = [0, 0]
        for index in 0..<8 {
            words[index / 4] = words[index / 4] << 16 | (oneIn(2) ? 0 : next() & 0xFFFF)
        }
        return .v6(high: words[0], low: words[1])
    }

    mutating func list(_ count: Int) -> String {
        (0..<count).map { _ in
            let address = address()
            return "\(address)/\(below(Int(address.bitWidth) + 1))"
        }.joined(separator: ", ")
    }

    mutating func endpoint() -> String {
        let port = 1 + below(65535)
        return switch below(3) {
        case 0: "hub-\(below(9)).example:\(port)"
        default: Endpoint(address: address(), port: UInt16(port))!.description
        }
    }

    mutating func config() -> WireGuardConfig {
        var config = WireGuardConfig(
            deviceId: "device-\(below(1000))", internalIp: list(1 + below(3)), serverPub: key(),
            endpoint: endpoint(), allowedIps: list(below(4)))
        if oneIn(2) { config.presharedKey = SecretText(key()) }
        if oneIn(2) { config.dns = "10.0.0.\(below(256)), lan, ~corp.example" }
        if oneIn(2) { config.serverWgIp = address().description }
        if oneIn(2) { config.mtu = 576 + below(1000) }
        if oneIn(2) { config.persistentKeepalive = below(65536) }
        if oneIn(2) { config.listenPort = below(65536) }
        let peers = (0..<below(4)).map { _ in
            ConfigPeer(
                publicKey: key(), presharedKey: oneIn(2) ? SecretText(key()) : nil,
                endpoint: oneIn(2) ? endpoint() : nil, allowedIps: list(below(4)),
                persistentKeepalive: oneIn(2) ? below(65536) : nil,
                name: oneIn(2) ? ["a", "dépôt / #2", "\"x\\y\"", "🔑"][below(4)] : nil)
        }
        if !peers.isEmpty || oneIn(2) { config.peers = peers }
        return config
    }

    /// The same meaning in other words.
    mutating func reworded(_ config: WireGuardConfig) -> WireGuardConfig {
        var config = config
        config.internalIp = shuffled(config.internalIp)
        config.allowedIps = unmasked(config.allowedIps)
        if config.presharedKey == nil, oneIn(2) { config.presharedKey = SecretText("") }
        if config.serverWgIp == nil, oneIn(2) { config.serverWgIp = "" }
        if config.peers == nil, oneIn(2) { config.peers = [] }
        config.configHash = "\(next())"
        config.privateKey = oneIn(2) ? SecretText(key()) : nil
        config.peers = config.peers?.shuffled(using: &self).map { peer in
            var peer = peer
            peer.allowedIps = unmasked(peer.allowedIps)
            return peer
        }
        return config
    }

    private mutating func shuffled(_ list: String) -> String {
        list.split(separator: ",").map { oneIn(2) ? "\($0) " : $0.drop { $0 == " " } + "" }
            .shuffled(using: &self).joined(separator: oneIn(2) ? "," : " , \t")
    }

    /// A random address within the prefix.
    private mutating func addressWithin(_ prefix: Prefix) -> IPAddress {
        // Swift shifts by more than the width to zero.
        let length = UInt64(prefix.length)
        switch prefix.address {
        case .v4(let bits):
            return .v4(bits | UInt32(truncatingIfNeeded: next()) & (.max >> length))
        case .v6(let high, let low):
            return .v6(
                high: high | next() & (.max >> length),
                low: low | next() & (.max >> (length < 64 ? 0 : length - 64)))
        }
    }

    /// Another address of each prefix.
    private mutating func unmasked(_ list: String) -> String {
        guard !list.isEmpty else { return list }
        let texts = list.split(separator: ", ").map { text in
            let prefix = Prefix(String(text))!
            let host = addressWithin(prefix)
            return "\(host)/\(prefix.length)"
        }
        return shuffled(texts.joined(separator: ", "))
    }
}

@Suite struct RandomConfigTests {
    @Test func what_is_encoded_reads_the_same() throws {
        var random = SeededRandom(seed: 1)
        for round in 0..<1000 {
            let config = random.config()
            let read = try Wire.decode(WireGuardConfig.self, from: Wire.encode(config))
            hold(read == config, "round \(round)")
        }
    }

    @Test func case_C19_other_words_have_the_same_hash_and_meaning() throws {
        var random = SeededRandom(seed: 2)
        var valid = 0
        for round in 0..<1000 {
            let config = random.config()
            // Two random peers may claim one prefix.
            guard let hash = try? configHash(config) else { continue }
            valid += 1
            let other = random.reworded(config)
            hold(try configHash(other) == hash, "round \(round): \(other)")
            let texts = try [config, other].map {
                try $0.validated().configurationText(
                    privateKey: SecretKey(copying: [UInt8](repeating: 64, count: 32).span))
            }
            hold(texts[0] == texts[1], "round \(round)")
            var changed = config
            changed.allowedIps += (changed.allowedIps.isEmpty ? "" : ", ") + "203.0.113.77/32"
            hold(try configHash(changed) != hash, "round \(round)")
        }
        #expect(valid > 900)
    }

    /// What reaches the keeper reads as exactly what was validated.
    @Test func case_C26_the_text_reads_back_as_the_configuration() throws {
        var random = SeededRandom(seed: 3)
        for round in 0..<1000 {
            guard let config = try? random.config().validated() else { continue }
            let key = SecretKey(copying: random.bytes(32).span)
            let file = config.configurationFile(privateKey: key)
            let text = config.configurationText(privateKey: key)
            let parsed = try ConfigurationFile.parse(text.span, file: "f")
            hold(parsed.configuration == file, "round \(round)")
            hold(parsed.configuration.interface.hooks.isEmpty, "round \(round)")
        }
    }

    @Test func case_C69_damage_is_refused_or_harmless() throws {
        var random = SeededRandom(seed: 4)
        let interesting = Array("{}[]\":,\\/#=\n\r\0 9-.e".utf8)
        var refused = 0
        for round in 0..<4000 {
            var json = Wire.encode(random.config())
            for _ in 0...random.below(3) {
                let position = random.below(json.count)
                let byte =
                    random.oneIn(2)
                    ? UInt8(random.below(256)) : interesting[random.below(interesting.count)]
                switch random.below(4) {
                case 0: json[position] = byte
                case 1: json.insert(byte, at: position)
                case 2: json.remove(at: position)
                default: json.removeSubrange(position..<min(json.count, position + 30))
                }
            }
            guard let config = try? Wire.decode(WireGuardConfig.self, from: json),
                let validated = try? config.validated()
            else {
                refused += 1
                continue
            }
            let text = validated.configurationText(
                privateKey: SecretKey(copying: [UInt8](repeating: 64, count: 32).span))
            let parsed = try? ConfigurationFile.parse(text.span, file: "f").configuration
            hold(parsed?.interface.hooks.isEmpty == true, "round \(round)")
            hold(parsed?.interface.unknown.isEmpty == true, "round \(round)")
            hold(parsed?.peers.count == 1 + validated.peers.count, "round \(round)")
        }
        // The damage does damage, and not always.
        #expect(1500...3990 ~= refused)
    }

    @Test func case_C69_any_bytes_are_an_answer_that_decides_nothing() {
        var random = SeededRandom(seed: 6)
        let types = ["application/json", "application/problem+json", "text/html", nil]
        for round in 0..<4000 {
            let answer = ReceivedAnswer(
                status: random.oneIn(2) ? 410 : random.below(1000),
                contentType: types[random.below(4)],
                retryAfter: String(decoding: random.bytes(random.below(12)), as: UTF8.self),
                body: random.bytes(random.below(64)))
            for call in DeviceCall.allCases {
                switch AnswerClass.classify(
                    call, answer, deviceId: "d", now: Timestamp(unixSeconds: 0))
                {
                case .accepted, .transient: break
                case let other: hold(false, "round \(round): \(other)")
                }
            }
        }
    }
}
