// SPDX-License-Identifier: Apache-2.0
// The values of a configuration file that no other part of WireGuard has.

/// Text of one line: not empty, no blank at either end, no control character but the tab. It can
/// neither end a line nor steer a terminal.
public struct ConfigurationText: Hashable, Sendable, CustomStringConvertible {
    public let description: String

    public init?(_ text: String) {
        let bytes = [UInt8](text.utf8)
        guard let first = bytes.first, let last = bytes.last, !isBlank(first), !isBlank(last) else {
            return nil
        }
        for scalar in text.unicodeScalars {
            // C0, DEL and C1 (ISO/IEC 6429).
            let isControl = scalar.value < 0x20 || 0x7F...0x9F ~= scalar.value
            guard !isControl || scalar == "\t" else { return nil }
        }
        description = text
    }
}

/// White space as `isspace` of the C locale has it; a carriage return is part of it (C02).
func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || 0x09...0x0D ~= byte }

/// An address of the interface itself: unlike in a `Prefix` all its bits count.
public struct InterfaceAddress: Hashable, Sendable, CustomStringConvertible {
    public let address: IPAddress
    public let length: UInt8

    public init?(address: IPAddress, length: UInt8) {
        guard length <= address.bitWidth else { return nil }
        self.address = address
        self.length = length
    }

    /// The forms of `Prefix`.
    public init?(_ text: Span<UInt8>) {
        guard let prefix = Prefix(text),
            let address = IPAddress(
                text.extracting(..<(text.lastIndex(of: UInt8(ascii: "/")) ?? text.count)))
        else { return nil }
        self.init(address: address, length: prefix.length)
    }

    public func append(to text: inout [UInt8]) {
        address.append(to: &text)
        text.append(UInt8(ascii: "/"))
        text.append(decimal: UInt64(length))
    }

    public var description: String {
        var text: [UInt8] = []
        append(to: &text)
        return String(decoding: text, as: UTF8.self)
    }
}

public struct DNSServer: Hashable, Sendable {
    public let address: IPAddress
    public let zone: Endpoint.Zone?

    /// nil for a zone on an IPv4 address.
    public init?(address: IPAddress, zone: Endpoint.Zone? = nil) {
        if case .v4 = address, zone != nil { return nil }
        self.address = address
        self.zone = zone
    }

    public init?(_ text: Span<UInt8>) {
        guard let percent = text.firstIndex(of: UInt8(ascii: "%")) else {
            guard let address = IPAddress(text) else { return nil }
            self.init(address: address)
            return
        }
        guard let address = IPAddress(text.extracting(..<percent)),
            let zone = Endpoint.Zone(text.extracting((percent + 1)...))
        else { return nil }
        self.init(address: address, zone: zone)
    }

    public func append(to text: inout [UInt8]) {
        address.append(to: &text)
        zone?.append(to: &text)
    }
}

/// The name of a host: labels of letters, digits, `-` and `_` (RFC 1123 section 2.1; `_` is in
/// wide use), 1 to 63 characters each, 253 in all.
public struct HostName: Hashable, Sendable, CustomStringConvertible {
    public let description: String

    /// Refuses a name whose last label is a number: `getaddrinfo` takes `10.1` or `010.0.0.1` for
    /// addresses, and programs disagree for which (C20).
    public init?(_ text: Span<UInt8>) { self.init(text, allowingNumbers: false) }

    public init?(_ text: String) {
        let text = [UInt8](text.utf8)
        self.init(text.span)
    }

    init?(_ text: Span<UInt8>, allowingNumbers: Bool) {
        guard 1...253 ~= text.count else { return nil }
        var characters: [UInt8] = []
        var label = 0..<0
        for index in text.indices {
            let character = text[index]
            characters.append(character)
            if character == UInt8(ascii: ".") {
                guard 1...63 ~= label.count else { return nil }
                // A dot at the end belongs to no label.
                if index + 1 < text.count { label = index + 1..<index + 1 }
            } else {
                guard isNameCharacter(character) else { return nil }
                label = label.lowerBound..<index + 1
            }
        }
        guard 1...63 ~= label.count else { return nil }
        guard allowingNumbers || !isNumber(text.extracting(label)) else { return nil }
        description = String(decoding: characters, as: UTF8.self)
    }
}

private func isNumber(_ label: Span<UInt8>) -> Bool {
    let isHexadecimal = label.count >= 2 && label[0] == 0x30 && label[1] | 0x20 == 0x78
    for index in (isHexadecimal ? 2 : 0)..<label.count {
        guard let digit = hexDigit(label[index]), isHexadecimal || digit < 10 else { return false }
    }
    return true
}

/// A letter, a digit, `-` or `_`.
func isNameCharacter(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"): true
    default: false
    }
}

/// A domain to search, or after `~` one to route only, where `~.` stands for all (the notation of
/// resolved.conf(5)).
public struct SearchDomain: Hashable, Sendable, CustomStringConvertible {
    public let description: String

    public init?(_ text: Span<UInt8>) {
        if text.elementsEqual("~.") {
            description = "~."
            return
        }
        let routesOnly = text.count > 0 && text[0] == UInt8(ascii: "~")
        guard let name = HostName(text.extracting((routesOnly ? 1 : 0)...)) else { return nil }
        description = (routesOnly ? "~" : "") + name.description
    }

    public init?(_ text: String) {
        let text = [UInt8](text.utf8)
        self.init(text.span)
    }
}

/// Where the file says a peer is: a literal, or a name that is yet to be resolved.
public enum PeerEndpoint: Hashable, Sendable {
    case address(Endpoint)
    case host(HostName, port: UInt16)

    public func append(to text: inout [UInt8]) {
        switch self {
        case .address(let endpoint): endpoint.append(to: &text)
        case .host(let name, let port):
            text.append(name.description)
            text.append(UInt8(ascii: ":"))
            text.append(decimal: UInt64(port))
        }
    }
}

/// Where the routes to the allowed prefixes go.
public enum RoutingTable: Hashable, Sendable {
    case auto
    case off
    case number(UInt32)
    /// A name of rt_tables(5).
    case name(Identifier)

    public init?(_ text: Span<UInt8>) {
        guard let identifier = Identifier(text) else { return nil }
        switch identifier.description.lowercased() {
        case "auto": self = .auto
        case "off": self = .off
        default:
            if !(0x30...0x39 ~= text[0]) {
                self = .name(identifier)
            } else {
                // 0 is RT_TABLE_UNSPEC of linux/rtnetlink.h.
                guard let number = parseNumber(text, maximum: UInt64(UInt32.max)), number > 0
                else { return nil }
                self = .number(UInt32(number))
            }
        }
    }

    public func append(to text: inout [UInt8]) {
        switch self {
        case .auto: text.append("auto")
        case .off: text.append("off")
        case .number(let number): text.append(decimal: UInt64(number))
        case .name(let name): text.append(name.description)
        }
    }
}

/// 1 to 64 letters, digits, `-`, `_` and `.`.
public struct Identifier: Hashable, Sendable, CustomStringConvertible {
    public let description: String

    public init?(_ text: Span<UInt8>) {
        guard 1...64 ~= text.count else { return nil }
        var characters: [UInt8] = []
        for index in text.indices {
            let character = text[index]
            guard isNameCharacter(character) || character == UInt8(ascii: ".") else { return nil }
            characters.append(character)
        }
        description = String(decoding: characters, as: UTF8.self)
    }

    public init?(_ text: String) {
        let text = [UInt8](text.utf8)
        self.init(text.span)
    }
}

/// A setting of another program, kept word for word. Its value may be a secret, so it does not
/// print.
public struct UnknownSetting: Equatable, Sendable, CustomStringConvertible, CustomReflectable {
    public let name: Identifier
    /// nil: nothing after the `=`.
    public let value: ConfigurationText?

    /// A line that lost its name or its first `=` may end in that of a key's base64, and the key
    /// must not become a name: names print.
    static let longestName = 24

    /// nil for a name that is one of ours, or nearly, or longer than 24 characters.
    public init?(name: Identifier, value: ConfigurationText?) {
        let text = [UInt8](name.description.utf8)
        guard text.count <= Self.longestName, ConfigurationKey(text.span) == nil,
            ConfigurationKey.nearest(to: text.span) == nil
        else { return nil }
        self.name = name
        self.value = value
    }

    public var description: String { name.description + " = (hidden)" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
