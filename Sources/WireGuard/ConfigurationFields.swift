// SPDX-License-Identifier: Apache-2.0
// What the settings of a configuration file mean.

/// Where the value of a setting is, for diagnostics.
struct FieldPlace {
    let key: ConfigurationKey
    /// Of the value's first byte. Blanks that `lenient` removed from the value are not counted.
    let column: Int
}

extension ConfigurationParser {
    /// `range` of `line` is the value, without blanks at its ends and without comment.
    mutating func readField(_ key: ConfigurationKey, _ line: Span<UInt8>, _ range: Range<Int>) {
        let place = FieldPlace(key: key, column: column(of: range.lowerBound, in: line))
        let value = line.extracting(range)
        guard !value.isEmpty else {
            // An empty list is a list (C04).
            if !key.isRepeatable { refuse(.emptyValue(key), place.column) }
            return
        }
        guard !key.isRepeatable, let blank = firstBlank(value) else {
            return set(key, value, place)
        }
        guard lenient, key.isOfTool else {
            return refuse(.blankInside, place.column + column(of: blank, in: value) - 1)
        }
        var joined = copy(value, blanks: false)
        set(key, joined.span, place)
        erase(&joined)
    }

    private mutating func set(_ key: ConfigurationKey, _ value: Span<UInt8>, _ place: FieldPlace) {
        switch key {
        case .privateKey: setPrivateKey(value, place)
        case .publicKey:
            if let key = readKey(
                value, place, { text throws(KeyError) in try PublicKey(base64: text) })
            {
                peer.publicKey = key
            }
        case .presharedKey:
            if let key = readKey(
                value, place, { text throws(KeyError) in try PresharedKey(base64: text) })
            {
                peer.presharedKey = key
            }
        case .listenPort: configuration.interface.listenPort = readPort(value, place)
        case .fwmark: configuration.interface.fwmark = readMark(value, place)
        case .keepalive: peer.keepalive = readKeepalive(value, place)
        case .endpoint: setEndpoint(value, place)
        case .allowedIPs: addAllowedIPs(value, place)
        case .address: addAddresses(value, place)
        case .dns: addDNS(value, place)
        case .mtu: setMTU(value, place)
        case .table:
            configuration.interface.table = RoutingTable(value)
            if configuration.interface.table == nil { refuse(.table, value, place) }
        case .saveConfig: setSaveConfig(value, place)
        case .preUp, .postUp, .preDown, .postDown: break
        }
    }

    /// Refuses `shown`, which begins `offset` bytes into the value.
    private mutating func refuse(
        _ cause: ConfigurationDiagnostic.Cause, _ shown: Span<UInt8>, _ place: FieldPlace,
        offset: Int = 0
    ) {
        refuse(cause, place.column + offset, VisibleText.make(shown, understood: true))
    }

    // MARK: keys

    private mutating func setPrivateKey(_ value: Span<UInt8>, _ place: FieldPlace) {
        let key = readKey(value, place) { text throws(KeyError) in try SecretKey(base64: text) }
        guard let key else { return }
        // It would take the key from a working device (C23).
        if key.isZero { complain(.zeroKey, place.column) }
        configuration.interface.privateKey = key
    }

    /// Nothing of a key is shown, but a character that the eye cannot see is.
    private mutating func readKey<Key>(
        _ value: Span<UInt8>, _ place: FieldPlace, _ parse: (Span<UInt8>) throws(KeyError) -> Key
    ) -> Key? {
        do throws(KeyError) {
            return try parse(value)
        } catch {
            for index in value.indices where value[index] >= 0x80 || value[index] < 0x20 {
                var end = index + 1
                while end < value.count, value[end] & 0xC0 == 0x80 { end += 1 }
                refuse(
                    .invisible, value.extracting(index..<end), place,
                    offset: column(of: index, in: value) - 1)
                return nil
            }
            refuse(.key(error), place.column)
            return nil
        }
    }

    // MARK: numbers

    private mutating func readPort(_ value: Span<UInt8>, _ place: FieldPlace) -> UInt16? {
        if let port = parseDecimal(value, maximum: 65535) { return UInt16(port) }
        // As getaddrinfo of glibc does it, which `wg` asks: the number becomes an int, and of one
        // that is not negative the low 16 bits are the port.
        guard lenient, let number = parseDecimal(value, maximum: .max),
            Int32(truncatingIfNeeded: number) >= 0
        else {
            refuse(.port, value, place)
            return nil
        }
        let port = UInt16(truncatingIfNeeded: number)
        warn(.wrappedPort(port), place.column, VisibleText.make(value, understood: true))
        return port
    }

    private mutating func readMark(_ value: Span<UInt8>, _ place: FieldPlace) -> UInt32? {
        if isOff(value) { return 0 }
        if let mark = parseNumber(value, maximum: UInt64(UInt32.max)) { return UInt32(mark) }
        refuse(.fwmark, value, place)
        return nil
    }

    private mutating func readKeepalive(_ value: Span<UInt8>, _ place: FieldPlace) -> UInt16? {
        if isOff(value) { return 0 }
        if let seconds = parseDecimal(value, maximum: 65535) { return UInt16(seconds) }
        refuse(.keepalive, value, place)
        return nil
    }

    private mutating func setMTU(_ value: Span<UInt8>, _ place: FieldPlace) {
        // 68: every IPv4 module forwards that much (RFC 791 section 3.2).
        guard let mtu = parseDecimal(value, maximum: 65535), mtu >= 68 else {
            return refuse(.mtu, value, place)
        }
        configuration.interface.mtu = UInt16(mtu)
        mtuPlace = (line, place.column)
    }

    private mutating func setSaveConfig(_ value: Span<UInt8>, _ place: FieldPlace) {
        switch String(decoding: lowercased(value), as: UTF8.self) {
        case "true": configuration.interface.saveConfig = true
        case "false": configuration.interface.saveConfig = false
        default: refuse(.boolean, value, place)
        }
    }

    // MARK: endpoints

    private mutating func setEndpoint(_ value: Span<UInt8>, _ place: FieldPlace) {
        if let endpoint = Endpoint(value) {
            if endpoint.port == 0 { complain(.zeroPort, place.column) }
            peer.endpoint = .address(endpoint)
            return
        }
        guard let colon = value.lastIndex(of: UInt8(ascii: ":")), colon + 1 < value.count,
            value[value.count - 1] != UInt8(ascii: "]")
        else { return refuse(.endpointPort, value, place) }
        guard let port = readPort(value.extracting((colon + 1)...), place) else { return }
        var host = value.extracting(..<colon)
        if lenient, host.count >= 2, host[0] == UInt8(ascii: "["),
            host[host.count - 1] == UInt8(ascii: "]")
        {
            host = host.extracting(1..<host.count - 1)
        }
        // With a port that was out of range the address is still an address.
        var literal = copy(value.extracting(..<colon), blanks: true)
        literal.append(UInt8(ascii: ":"))
        literal.append(decimal: UInt64(port))
        if let endpoint = Endpoint(literal.span) {
            peer.endpoint = .address(endpoint)
        } else if let address = IPAddress(host),
            let endpoint = Endpoint(address: address, port: port), lenient
        {
            peer.endpoint = .address(endpoint)
        } else if let name = HostName(host, allowingNumbers: lenient) {
            if port == 0 { complain(.zeroPort, place.column) }
            peer.endpoint = .host(name, port: port)
        } else {
            refuse(.endpoint, value, place)
        }
    }

    // MARK: lists

    private mutating func addAllowedIPs(_ value: Span<UInt8>, _ place: FieldPlace) {
        forEachElement(of: value, place) { parser, element, place in
            var joined: [UInt8] = []
            if firstBlank(element) != nil {
                guard parser.lenient else {
                    return parser.refuse(.blankInside, element, place)
                }
                joined = copy(element, blanks: false)
                return parser.addAllowedIP(joined.span, place)
            }
            parser.addAllowedIP(element, place)
        }
    }

    private mutating func addAllowedIP(_ element: Span<UInt8>, _ place: FieldPlace) {
        let text = lenient ? withoutLeadingZeros(element) : copy(element, blanks: true)
        guard let address = InterfaceAddress(text.span),
            let prefix = Prefix(address: address.address, length: address.length)
        else {
            let isSigned = element.count > 0 && (element[0] == 0x2B || element[0] == 0x2D)
            return refuse(isSigned ? .signedPrefix : .prefix, element, place)
        }
        if prefix.address != address.address, !saidHostBits {
            saidHostBits = true
            warn(.hostBits, place.column, address.description)
        }
        guard peer.allowedIPs.count < UAPIConnection.prefixLimit else {
            return refuse(.tooManyPrefixes, place.column)
        }
        peer.allowedIPs.append(prefix)
    }

    private mutating func addAddresses(_ value: Span<UInt8>, _ place: FieldPlace) {
        forEachWord(of: value, place) { parser, word, place in
            guard let address = InterfaceAddress(word) else {
                return parser.refuse(.prefix, word, place)
            }
            parser.configuration.interface.addresses.append(address)
        }
    }

    private mutating func addDNS(_ value: Span<UInt8>, _ place: FieldPlace) {
        forEachWord(of: value, place) { parser, word, place in
            if let server = DNSServer(word) {
                parser.configuration.interface.dnsServers.append(server)
            } else if let domain = SearchDomain(word) {
                parser.configuration.interface.searchDomains.append(domain)
            } else {
                parser.refuse(.dns, word, place)
            }
        }
    }

    private typealias ElementReader = (inout Self, Span<UInt8>, FieldPlace) -> Void

    /// Elements between commas; one that is empty is refused, by `wg` too (C03).
    private mutating func forEachElement(
        of value: Span<UInt8>, _ place: FieldPlace, _ body: ElementReader
    ) {
        var start = 0
        // Counted along, so that a line with many elements takes linear time.
        var column = place.column
        while start <= value.count {
            var end = start
            while end < value.count, value[end] != UInt8(ascii: ",") { end += 1 }
            let range = trimmed(value, start..<end)
            let here = FieldPlace(
                key: place.key,
                column: column + range.lowerBound - start)
            if !range.isEmpty {
                body(&self, value.extracting(range), here)
            } else if !lenient || place.key.isOfTool {
                refuse(.emptyElement, here.column)
            }
            for index in start..<end where value[index] & 0xC0 != 0x80 { column += 1 }
            column += 1
            start = end + 1
        }
    }

    /// The same, blanks separate as well: wg-quick takes them for commas.
    private mutating func forEachWord(
        of value: Span<UInt8>, _ place: FieldPlace, _ body: ElementReader
    ) {
        forEachElement(of: value, place) { parser, element, place in
            var start = 0
            var column = place.column
            while start < element.count {
                var end = start
                while end < element.count, !isBlank(element[end]) { end += 1 }
                if end > start {
                    body(
                        &parser, element.extracting(start..<end),
                        FieldPlace(key: place.key, column: column))
                }
                for index in start..<end where element[index] & 0xC0 != 0x80 { column += 1 }
                column += 1
                start = end + 1
            }
        }
    }
}

private func firstBlank(_ text: Span<UInt8>) -> Int? {
    for index in text.indices where isBlank(text[index]) { return index }
    return nil
}

/// A prefix without the zeros before its length, which `wg` skips.
private func withoutLeadingZeros(_ prefix: Span<UInt8>) -> [UInt8] {
    guard let slash = prefix.lastIndex(of: UInt8(ascii: "/")) else {
        return copy(prefix, blanks: true)
    }
    var digits = slash + 1
    while digits + 1 < prefix.count, prefix[digits] == 0x30 { digits += 1 }
    return copy(prefix.extracting(...slash), blanks: true)
        + copy(prefix.extracting(digits...), blanks: true)
}

private func isOff(_ value: Span<UInt8>) -> Bool { lowercased(value) == [UInt8]("off".utf8) }
