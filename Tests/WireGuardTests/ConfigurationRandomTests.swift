// SPDX-License-Identifier: Apache-2.0
// Random configurations survive writing and reading; random damage never does worse than an error
// with a position.
import TestSupport
import Testing

@testable import WireGuard

extension SeededRandom {
    mutating func text() -> ConfigurationText {
        let pieces = ["a", "#", " ", "=", "%i", "é", "\t", "[Peer]", ";", ",", "\u{A0}", "\"", "🔑"]
        while true {
            let text = (0...below(12)).map { _ in pieces[below(pieces.count)] }.joined()
            if let text = ConfigurationText(text) { return text }
        }
    }

    mutating func hostName() -> HostName {
        HostName(
            ["vpn.example", "a", "xn--e1afmkfd.example.", "1.2.3.4.example", "_x-y"][below(5)])!
    }

    mutating func unknown() -> [UnknownSetting] {
        (0..<(oneIn(4) ? 1 + below(2) : 0)).map { _ in
            UnknownSetting(
                name: Identifier(["Jc", "S1", "x.y", "Colour_of-it"][below(4)])!,
                value: oneIn(4) ? nil : text())!
        }
    }

    mutating func interface() -> ConfigurationFile.Interface {
        var interface = ConfigurationFile.Interface()
        let key = key()
        interface.privateKey = SecretKey(copying: key.span)
        if oneIn(2) { interface.listenPort = UInt16(below(65536)) }
        if oneIn(2) { interface.fwmark = oneIn(3) ? 0 : UInt32(truncatingIfNeeded: next()) }
        for _ in 0..<below(3) {
            let address = address()
            let length = UInt8(below(Int(address.bitWidth) + 1))
            interface.addresses.append(InterfaceAddress(address: address, length: length)!)
            let zone: Endpoint.Zone? = address.bitWidth == 128 && oneIn(4) ? .name("eth0") : nil
            interface.dnsServers.append(DNSServer(address: address, zone: zone)!)
            interface.searchDomains.append(
                SearchDomain(["lan", "~.", "~corp.example"][below(3)])!)
        }
        if oneIn(2) { interface.mtu = UInt16(68 + below(65536 - 68)) }
        switch below(5) {
        case 0: interface.table = .off
        case 1: interface.table = .auto
        case 2: interface.table = .number(UInt32(1 + below(1 << 32 - 1)))
        case 3: interface.table = .name(Identifier("vpn-table")!)
        default: break
        }
        for _ in 0..<below(4) { interface.hooks.append(.init(.allCases[below(4)], text())) }
        if oneIn(2) { interface.saveConfig = oneIn(2) }
        interface.unknown = unknown()
        return interface
    }

    mutating func peer() -> ConfigurationFile.Peer {
        var peer = ConfigurationFile.Peer(publicKey: PublicKey(bytes: key()))
        let key = key()
        if oneIn(2) { peer.presharedKey = PresharedKey(copying: key.span) }
        if oneIn(8) { peer.presharedKey = PresharedKey(filledWith: 0) }
        for _ in 0..<below(4) {
            let address = address()
            let length = UInt8(below(Int(address.bitWidth) + 1))
            peer.allowedIPs.append(Prefix(address: address, length: length)!)
        }
        let port = UInt16(1 + below(65535))
        switch below(4) {
        case 0: peer.endpoint = .host(hostName(), port: port)
        case 1: peer.endpoint = .address(Endpoint(address: address(), port: port)!)
        case 2:
            let zone: Endpoint.Zone = oneIn(2) ? .index(7) : .name("eth0")
            let address = IPAddress.v6(high: 0xFE80 << 48, low: next())
            peer.endpoint = .address(Endpoint(address: address, port: port, zone: zone)!)
        default: break
        }
        if oneIn(2) { peer.keepalive = UInt16(below(65536)) }
        if oneIn(3) { peer.friendlyName = text() }
        if oneIn(3) { peer.friendlyJSON = text() }
        peer.unknown = unknown()
        return peer
    }

    mutating func configuration() -> ConfigurationFile {
        var configuration = ConfigurationFile()
        configuration.interface = interface()
        for _ in 0..<below(5) { configuration.peers.append(peer()) }
        return configuration
    }
}

@Suite struct ConfigurationRandomTests {
    @Test func what_is_written_reads_the_same() throws {
        var random = SeededRandom(seed: 1)
        for round in 0..<3000 {
            let configuration = random.configuration()
            let text = configuration.write()
            for lenient in [false, true] {
                let parsed = try ConfigurationFile.parse(text.span, file: "f", lenient: lenient)
                hold(parsed.configuration == configuration, "round \(round)")
            }
        }
    }

    @Test func c10_c26_what_is_stripped_reads_as_the_same_without_wg_quicks_settings() throws {
        var random = SeededRandom(seed: 2)
        for round in 0..<1000 {
            var configuration = random.configuration()
            let text = configuration.strip()
            var interface = ConfigurationFile.Interface()
            interface.privateKey = configuration.interface.privateKey
            interface.listenPort = configuration.interface.listenPort
            interface.fwmark = configuration.interface.fwmark
            configuration.interface = interface
            for index in configuration.peers.indices {
                configuration.peers[index].friendlyName = nil
                configuration.peers[index].friendlyJSON = nil
                configuration.peers[index].unknown = []
            }
            let parsed = try ConfigurationFile.parse(text.span, file: "f")
            hold(parsed.configuration == configuration, "round \(round)")
            hold(!text.contains(UInt8(ascii: "#")), "round \(round)")
        }
    }

    @Test func c14_c93_damage_gives_a_position_within_the_text_and_shows_no_key() {
        var random = SeededRandom(seed: 3)
        var refused = 0
        for round in 0..<2500 {
            let configuration = random.configuration()
            var text = configuration.write()
            var secret: [UInt8] = []
            configuration.interface.privateKey?.appendBase64(to: &secret)
            for _ in 0...random.below(2) { random.damage(&text) }
            let lines = text.split(separator: 0x0A, omittingEmptySubsequences: false)
            for lenient in [false, true] {
                var notes: [ConfigurationDiagnostic] = []
                do throws(ConfigurationError) {
                    notes = try ConfigurationFile.parse(text.span, file: "f", lenient: lenient)
                        .warnings
                } catch {
                    refused += 1
                    hold(!error.diagnostics.isEmpty, "round \(round)")
                    notes = error.diagnostics
                }
                for note in notes {
                    hold(1...lines.count ~= note.line, "round \(round): \(note)")
                    let length = lines[note.line - 1].count
                    hold(1...length + 1 ~= note.column, "round \(round): \(note)")
                    let key = String(decoding: secret, as: UTF8.self)
                    hold(!sharesRun(note.description, with: key, of: 16), "round \(round): \(note)")
                }
            }
        }
        // The damage does damage, and not always.
        #expect(1000...4900 ~= refused)
    }

    @Test func c23_every_beginning_of_a_file_is_read_or_refused() {
        var random = SeededRandom(seed: 4)
        let text = random.configuration().write()
        for length in 0..<text.count {
            let error = thrown { () throws(ConfigurationError) in
                try ConfigurationFile.parse(text.span.extracting(..<length), file: "f")
            }
            // Without the private key in full nothing is accepted.
            if length < 12 + 13 + 44 { hold(error != nil, "\(length)") }
        }
    }
}

extension SeededRandom {
    fileprivate mutating func damage(_ text: inout [UInt8]) {
        let position = below(text.count + 1)
        let interesting = [UInt8]("=\n\r#,;[]:/% \t\0\u{A0}\u{FEFF}0A".utf8)
        let byte = oneIn(2) ? UInt8(below(256)) : interesting[below(interesting.count)]
        switch below(5) {
        case 0: text.insert(byte, at: position)
        case 1: if position < text.count { text[position] = byte }
        case 2: if position < text.count { text.remove(at: position) }
        case 3: text.removeSubrange(position..<min(text.count, position + below(40)))
        default:
            let end = min(text.count, position + below(60))
            text.insert(contentsOf: Array(text[position..<end]), at: below(text.count + 1))
        }
    }
}
