// SPDX-License-Identifier: Apache-2.0

/// One thing about a configuration file that its owner should know.
public struct ConfigurationDiagnostic: Equatable, Sendable, CustomStringConvertible {
    public let file: String
    /// From 1.
    public let line: Int
    /// From 1, in Unicode scalars; a byte order mark at the start of the file does not count.
    public let column: Int
    public let cause: Cause
    /// The offending text, made visible and free of secrets; nil where none helps.
    public let text: String?

    public var description: String {
        let quoted = text.map { " \"\($0)\"" } ?? ""
        return "\(file):\(line):\(column): \(cause.message)\(quoted); \(cause.advice)"
    }

    /// What is wrong, and what to do.
    public struct Cause: Equatable, Sendable {
        public let message: String
        public let advice: String

        init(_ message: String, _ advice: String) {
            self.message = message
            self.advice = advice
        }
    }
}

/// Why a file was refused as a whole: nothing of it may be applied.
public struct ConfigurationError: Error, Equatable, Sendable, CustomStringConvertible {
    /// In the order of discovery, at least one.
    public let diagnostics: [ConfigurationDiagnostic]
    /// How many more there were.
    public let omitted: Int

    public var description: String { describe(diagnostics, omitted) }
}

private func describe(_ diagnostics: [ConfigurationDiagnostic], _ omitted: Int) -> String {
    var lines = diagnostics.map(\.description)
    if omitted > 0 { lines.append("and \(omitted) more") }
    return lines.joined(separator: "\n")
}

extension ConfigurationDiagnostic.Cause {
    typealias Cause = Self

    // MARK: the text

    static let tooLarge = Cause(
        "the file is larger than \(ConfigurationFile.sizeLimit >> 20) MiB",
        "divide it among several interfaces")
    static let utf16 = Cause("the file is encoded as UTF-16", "save it as UTF-8")
    static let notUTF8 = Cause("the text is not UTF-8", "save the file as UTF-8")
    static let nul = Cause("a NUL byte", "remove it; the file may be damaged")
    static let nulCut = Cause("a NUL byte hides the rest of the line", "remove it")
    static let control = Cause("a control character", "remove it")
    static let invisible = Cause("a character that is no part of a value", "remove or retype it")
    static let semicolon = Cause("\";\" does not start a comment", "use \"#\"")
    static let notSetting = Cause(
        "neither a section nor a setting", "write NAME = VALUE, or # before a comment")
    static let badName = Cause("not the name of a setting", "retype the name")
    static let outside = Cause(
        "a setting before any section", "put [Interface] or [Peer] in front of it")
    static let unknownSection = Cause("unknown section", "use [Interface] or [Peer]")
    static let unknownName = Cause("unknown setting, kept but not used", "check its name")
    static func misspelled(_ meant: ConfigurationKey) -> Cause {
        Cause("unknown setting", "write \(meant.name) if that is meant")
    }
    static func wrongSection(_ key: ConfigurationKey) -> Cause {
        Cause(
            "\(key.name) does not belong into this section",
            "move it to \(key.isOfPeer ? "[Peer]" : "[Interface]")")
    }

    // MARK: the whole

    static let missingInterface = Cause("there is no [Interface] section", "add one")
    static let empty = Cause(
        "the file holds no section", "check that it was written completely")
    static let missingPrivateKey = Cause(
        "the interface has no private key", "add PrivateKey = …")
    static let missingPublicKey = Cause("the peer has no public key", "add PublicKey = …")
    static func duplicate(_ key: ConfigurationKey, line: Int) -> Cause {
        Cause("\(key.name) again, first on line \(line)", "keep one of them")
    }
    static func duplicateInterface(line: Int) -> Cause {
        Cause("[Interface] again, first on line \(line)", "merge the sections")
    }
    static func duplicatePeer(line: Int) -> Cause {
        Cause(
            "a peer with the public key of the peer on line \(line)",
            "merge the peers; the later would take all prefixes of the earlier")
    }
    static func taken(from line: Int) -> Cause {
        Cause(
            "this peer takes a prefix from the peer on line \(line)",
            "a prefix belongs to one peer only, remove it from the other")
    }

    // MARK: values

    static func emptyValue(_ key: ConfigurationKey) -> Cause {
        Cause("\(key.name) has no value", "give one or remove the line")
    }
    static let emptyElement = Cause("nothing between commas", "remove a comma")
    static let blankInside = Cause("a blank inside a value", "remove it")
    static func key(_ error: KeyError) -> Cause {
        let advice = "copy it again; a key is 44 characters of base64"
        return switch error {
        case .length(let length): Cause("a key of \(length) characters", advice)
        case .character: Cause("a key with a character that is not base64", advice)
        case .notCanonical: Cause("a key whose last character carries stray bits", advice)
        }
    }
    static let zeroKey = Cause("the private key is all zero", "make one with `wg genkey`")
    static let prefix = Cause("not an address or prefix", "write ADDRESS or ADDRESS/LENGTH")
    static let signedPrefix = Cause(
        "a prefix with a sign", "list the prefixes themselves; + and - are for `wg set`")
    static let hostBits = Cause(
        "bits after the prefix length are set", "they are cleared, here and in what follows")
    static let tooManyPrefixes = Cause(
        "more than \(UAPIConnection.prefixLimit) prefixes for one peer", "merge prefixes")
    static let dns = Cause(
        "neither an address nor a search domain", "write addresses and domains with commas")
    static let endpoint = Cause("not an endpoint", "write HOST:PORT or [IPv6]:PORT")
    static let endpointPort = Cause("an endpoint without port", "write HOST:PORT or [IPv6]:PORT")
    static let port = Cause("not a port", "write a number from 0 to 65535")
    static let zeroPort = Cause("port 0 cannot be reached", "write the peer's port")
    static func wrappedPort(_ port: UInt16) -> Cause {
        Cause("a port above 65535", "\(port) is used, as wg does")
    }
    static let fwmark = Cause("not a mark", "write off, a number, or 0x and 1 to 8 digits")
    static let keepalive = Cause("not an interval", "write off or seconds from 0 to 65535")
    static let mtu = Cause("not an MTU", "write a number from 68 to 65535")
    static let smallMTU = Cause(
        "an MTU below 1280 does not carry IPv6", "raise it or remove the IPv6 addresses")
    static let table = Cause("not a routing table", "write off, auto, a number or a name")
    static let boolean = Cause("neither true nor false", "write true or false")
    static let friendlyName = Cause("an unusable name", "remove control characters from it")
}
