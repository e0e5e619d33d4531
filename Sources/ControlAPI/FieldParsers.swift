// SPDX-License-Identifier: Apache-2.0
// From the words of JSON to the types of WireGuard. Every value is parsed here and printed by our own
// writer later, so that no text of a server can become another line of a configuration (C26).

import WireGuard

/// The elements of a comma-separated list without the blanks round them. Empty for an empty text;
/// an element may be empty, which its parser refuses.
func listElements(_ text: String) -> [String] {
    let text = withoutBlanks(text)
    guard !text.isEmpty else { return [] }
    return text.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
        .map { withoutBlanks(String(decoding: $0, as: UTF8.self)) }
}

/// Without blanks and tabs at either end. Line ends stay, and are refused by the parsers.
func withoutBlanks(_ text: String) -> String {
    func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
    let rest = text.utf8.drop(while: isBlank)
    let end = rest.lastIndex { !isBlank($0) }.map { rest.index(after: $0) } ?? rest.startIndex
    return String(decoding: rest[..<end], as: UTF8.self)
}

func parsePublicKey(_ text: String, _ field: String) throws(ConfigRefusal) -> PublicKey {
    do throws(KeyError) {
        return try PublicKey(base64: text)
    } catch {
        throw ConfigRefusal(.keyInvalid, field, "no public key of 44 characters in base64")
    }
}

/// nil for an absent or empty text, and for the key of zeros that stands for none.
func parseSecret<Key: Secret>(
    _ text: SecretText?, _ field: String
) throws(ConfigRefusal) -> Key? {
    guard let text, !text.isEmpty else { return nil }
    var bytes = Array(text.exposed.utf8)
    defer { erase(&bytes) }
    do throws(KeyError) {
        let key = try Key(base64: bytes.span)
        return key.isZero ? nil : key
    } catch {
        throw ConfigRefusal(.keyInvalid, field, "no key of 44 characters in base64")
    }
}

func parseAddresses(_ text: String, _ field: String) throws(ConfigRefusal) -> [InterfaceAddress] {
    var addresses: [InterfaceAddress] = []
    for element in listElements(text) {
        guard let address = InterfaceAddress(Array(element.utf8).span) else {
            throw ConfigRefusal(
                .addressInvalid, field, "is no address with prefix length", shown: element)
        }
        if !addresses.contains(address) { addresses.append(address) }
    }
    guard !addresses.isEmpty else {
        throw ConfigRefusal(.addressInvalid, field, "the interface needs an address")
    }
    return addresses.sorted { precedes($0.description, $1.description) }
}

func parsePrefixes(_ text: String, _ field: String) throws(ConfigRefusal) -> [Prefix] {
    var prefixes: Set<Prefix> = []
    for element in listElements(text) {
        guard let prefix = Prefix(element) else {
            throw ConfigRefusal(.prefixInvalid, field, "is no prefix", shown: element)
        }
        prefixes.insert(prefix)
    }
    guard prefixes.count <= UAPIConnection.prefixLimit else {
        throw ConfigRefusal(
            .prefixInvalid, field, "more than \(UAPIConnection.prefixLimit) prefixes")
    }
    return prefixes.map { (text: $0.description, prefix: $0) }
        .sorted { precedes($0.text, $1.text) }.map(\.prefix)
}

/// The order of all lists that have none of their own: by the bytes of their text.
func precedes(_ left: String, _ right: String) -> Bool {
    left.utf8.lexicographicallyPrecedes(right.utf8)
}

/// nil for an absent or empty text. A zone is refused: it names an interface of the device, which no
/// server knows.
func parseEndpoint(
    _ text: String?, _ field: String
) throws(ConfigRefusal) -> PeerEndpoint? {
    guard let text, !text.isEmpty else { return nil }
    if let endpoint = Endpoint(text) {
        guard endpoint.port > 0, endpoint.zone == nil else {
            throw ConfigRefusal(
                .endpointInvalid, field, "has port 0 or a zone", shown: text)
        }
        return .address(endpoint)
    }
    let parts = text.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    let digits = parts.last.map { Array($0) } ?? []
    let port = parseDecimal(digits.span, maximum: 65535) ?? 0
    guard parts.count == 2, port > 0, let name = HostName(asciiLowercased(parts[0])) else {
        throw ConfigRefusal(
            .endpointInvalid, field, "is not host:port or [IPv6]:port", shown: text)
    }
    return .host(name, port: UInt16(port))
}

/// Names of hosts compare without case (RFC 4343).
private func asciiLowercased(_ text: some Sequence<UInt8>) -> String {
    String(decoding: text.map { 0x41...0x5A ~= $0 ? $0 | 0x20 : $0 }, as: UTF8.self)
}

/// Addresses are servers, other words are search domains, as in wg-quick(8).
func parseDNS(
    _ text: String, _ field: String
) throws(ConfigRefusal) -> (servers: [DNSServer], domains: [SearchDomain]) {
    var servers: [DNSServer] = []
    var domains: [SearchDomain] = []
    for element in listElements(text) {
        if let address = IPAddress(element), let server = DNSServer(address: address) {
            servers.append(server)
        } else if let domain = SearchDomain(asciiLowercased(element.utf8)) {
            domains.append(domain)
        } else {
            throw ConfigRefusal(
                .dnsInvalid, field, "is neither an address nor a domain", shown: element)
        }
    }
    return (servers, domains)
}

func parseNumber(
    _ number: Int?, in range: ClosedRange<UInt16>, _ field: String
) throws(ConfigRefusal) -> UInt16? {
    guard let number else { return nil }
    guard let value = UInt16(exactly: number), range.contains(value) else {
        throw ConfigRefusal(
            .numberInvalid, field,
            "\(number) is not from \(range.lowerBound) to \(range.upperBound)")
    }
    return value
}

/// Text of one line for people; nil for an absent or empty one.
func parseName(_ text: String?, _ field: String) throws(ConfigRefusal) -> ConfigurationText? {
    guard let text else { return nil }
    let trimmed = withoutBlanks(text)
    guard !trimmed.isEmpty else { return nil }
    guard let name = ConfigurationText(trimmed), trimmed.unicodeScalars.count <= 256 else {
        throw ConfigRefusal(
            .nameInvalid, field, "is no single line of at most 256 characters", shown: text)
    }
    return name
}

/// 1 to 64 letters, digits, `-` and `_`: safe as the name of a file and in a log.
func parseIdentifier(_ text: String, _ field: String) throws(ConfigRefusal) -> String {
    guard Identifier(text) != nil, !text.utf8.contains(UInt8(ascii: ".")) else {
        throw ConfigRefusal(
            .idInvalid, field, "is not 1 to 64 letters, digits, - and _", shown: text)
    }
    return text
}
