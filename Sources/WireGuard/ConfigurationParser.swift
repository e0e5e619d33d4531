// SPDX-License-Identifier: Apache-2.0
// From the bytes of a configuration file to lines, sections and settings. What the values mean is
// in ConfigurationFields.swift. The time taken is linear in the size of the file.

extension ConfigurationFile {
    /// Larger files are refused. 10,000 peers need about 2 MiB.
    public static let sizeLimit = 16 << 20

    public struct Parsed: Equatable, Sendable {
        public let configuration: ConfigurationFile
        public let warnings: [ConfigurationDiagnostic]
        /// How many more there were.
        public let omittedWarnings: Int
    }

    /// The whole of `text`, or nothing of it. `file` is the name that diagnostics carry. `lenient`
    /// accepts what `wg` accepts; docs/configuration.md lists the differences. The caller erases
    /// `text`.
    public static func parse(
        _ text: Span<UInt8>, file: String, lenient: Bool = false
    ) throws(ConfigurationError) -> Parsed {
        var parser = ConfigurationParser(file: file, lenient: lenient)
        parser.parse(text)
        return try parser.finish()
    }
}

enum ConfigurationSection: Sendable {
    case interface, peer

    init?(_ name: Span<UInt8>) {
        guard name.count <= 9 else { return nil }
        switch String(decoding: lowercased(name), as: UTF8.self) {
        case "interface": self = .interface
        case "peer": self = .peer
        default: return nil
        }
    }
}

struct ConfigurationParser {
    static let errorLimit = 32
    static let warningLimit = 100

    enum Section {
        case none, interface, peer
        /// What is refused as a whole is not examined line by line.
        case skipped
    }

    let fileName: String
    let lenient: Bool
    var configuration = ConfigurationFile()
    var line = 0
    private var section = Section.none
    private var interfaceLine: Int?
    /// The line of each single-valued setting in this section.
    private var seen: [ConfigurationKey: Int] = [:]
    private var interfaceSeen: [ConfigurationKey: Int] = [:]
    /// The peer whose section is being read; its key is not valid before `seen` has it.
    var peer = ConfigurationFile.Peer(publicKey: PublicKey(bytes: KeyBytes(repeating: 0)))
    private var peerLine = 0
    private var peerLines: [PublicKey: Int] = [:]
    private var prefixOwners: [Prefix: (peer: PublicKey, line: Int)] = [:]
    var saidHostBits = false
    var mtuPlace: (line: Int, column: Int)?

    private var errors: [ConfigurationDiagnostic] = []
    private var warnings: [ConfigurationDiagnostic] = []
    private var omittedErrors = 0
    private var omittedWarnings = 0

    init(file: String, lenient: Bool) {
        fileName = file
        self.lenient = lenient
    }

    mutating func parse(_ text: Span<UInt8>) {
        guard text.count <= ConfigurationFile.sizeLimit else { return refuse(.tooLarge) }
        if text.count >= 2 {
            let mark = UInt16(text[0]) << 8 | UInt16(text[1])
            if mark == 0xFEFF || mark == 0xFFFE { return refuse(.utf16) }
        }
        var start = 0
        if text.count >= 3, text[0] == 0xEF, text[1] == 0xBB, text[2] == 0xBF { start = 3 }
        var end = start
        while start < text.count {
            while end < text.count, text[end] != UInt8(ascii: "\n") { end += 1 }
            line += 1
            read(text.extracting(start..<end))
            end += 1
            start = end
        }
        endPeer()
        checkWhole()
    }

    private mutating func checkWhole() {
        if let place = mtuPlace, let mtu = configuration.interface.mtu, mtu < 1280,
            configuration.interface.addresses.contains(where: { $0.address.bitWidth == 128 })
        {
            // RFC 8200 section 5 (C51).
            line = place.line
            warn(.smallMTU, place.column)
        }
        line = 1
        if section == .none, errors.isEmpty {
            refuse(.empty)
        } else if interfaceLine == nil, !lenient, errors.isEmpty {
            refuse(.missingInterface)
        } else if let interfaceLine, interfaceSeen[.privateKey] == nil {
            line = interfaceLine
            complain(.missingPrivateKey)
        }
    }

    consuming func finish() throws(ConfigurationError) -> ConfigurationFile.Parsed {
        guard errors.isEmpty else {
            throw ConfigurationError(diagnostics: errors, omitted: omittedErrors)
        }
        return ConfigurationFile.Parsed(
            configuration: configuration, warnings: warnings, omittedWarnings: omittedWarnings)
    }

    // MARK: lines

    private mutating func read(_ whole: Span<UInt8>) {
        var line = whole
        if let nul = line.firstIndex(of: 0) {
            guard lenient else { return refuse(.nul, column(of: nul, in: line)) }
            warn(.nulCut, column(of: nul, in: line))
            line = line.extracting(..<nul)
        }
        let comment = line.firstIndex(of: UInt8(ascii: "#")) ?? line.count
        let content = trimmed(line, 0..<comment)
        guard !content.isEmpty else {
            if comment < line.count { readComment(line, comment + 1) }
            return
        }
        switch line[content.lowerBound] {
        case UInt8(ascii: "["): readHeader(line, content)
        case UInt8(ascii: ";"): refuse(.semicolon, column(of: content.lowerBound, in: line))
        default: readSetting(line, content, isCut: line.count < whole.count)
        }
    }

    private mutating func readComment(_ line: Span<UInt8>, _ start: Int) {
        // Above the key only: what follows it may be meant for the next peer.
        guard section == .peer, seen[.publicKey] == nil else { return }
        let comment = line.extracting(start...)
        guard let equals = comment.firstIndex(of: UInt8(ascii: "=")) else { return }
        let name = comment.extracting(trimmed(comment, 0..<equals))
        let isName = name.elementsEqual("friendly_name")
        guard isName || name.elementsEqual("friendly_json") else { return }
        let range = trimmed(comment, equals + 1..<comment.count)
        guard !range.isEmpty else { return }
        guard case .text(let text) = decode(comment.extracting(range)) else {
            return warn(.friendlyName, column(of: start + range.lowerBound, in: line))
        }
        if isName { peer.friendlyName = text } else { peer.friendlyJSON = text }
    }

    private mutating func readHeader(_ line: Span<UInt8>, _ content: Range<Int>) {
        endPeer()
        let column = column(of: content.lowerBound, in: line)
        let name = copy(
            line.extracting(
                trimmed(
                    line,
                    content.lowerBound + 1..<max(content.lowerBound + 1, content.upperBound - 1))),
            blanks: !lenient)
        guard line[content.upperBound - 1] == UInt8(ascii: "]"),
            let header = ConfigurationSection(name.span)
        else {
            section = .skipped
            return refuse(
                .unknownSection, column,
                VisibleText.make(line.extracting(content), understood: false))
        }
        switch header {
        case .peer:
            section = .peer
            seen.removeAll(keepingCapacity: true)
            peerLine = self.line
        case .interface:
            section = .interface
            if let interfaceLine {
                complain(.duplicateInterface(line: interfaceLine), column)
                if !lenient { section = .skipped }
            }
            seen = interfaceSeen
            interfaceLine = interfaceLine ?? self.line
        }
    }

    private mutating func readSetting(_ line: Span<UInt8>, _ content: Range<Int>, isCut: Bool) {
        guard section != .skipped else { return }
        let start = column(of: content.lowerBound, in: line)
        let shown = { (span: Span<UInt8>) in VisibleText.make(span, understood: false) }
        guard let equals = line.extracting(content).firstIndex(of: UInt8(ascii: "=")) else {
            return refuse(.notSetting, start, shown(line.extracting(content)))
        }
        let position = content.lowerBound + equals
        let name = copy(
            line.extracting(trimmed(line, content.lowerBound..<position)), blanks: !lenient)
        let value = trimmed(line, position + 1..<content.upperBound)
        guard let key = ConfigurationKey(name.span) else {
            let raw = trimmed(line, position + 1..<line.count)
            return readUnknown(line, content, name, raw, isCut: isCut)
        }
        guard section != .none else { return refuse(.outside, start, key.name) }
        guard key.isOfPeer == (section == .peer) else { return refuse(.wrongSection(key), start) }
        if !key.isRepeatable {
            if let first = seen[key] {
                complain(.duplicate(key, line: first), start)
                guard lenient else { return }
            }
            note(key)
        }
        if let event = key.hookEvent {
            return readHook(event, line, trimmed(line, position + 1..<line.count), isCut: isCut)
        }
        readField(key, line, value)
    }

    private mutating func note(_ key: ConfigurationKey) {
        seen[key] = line
        if section == .interface { interfaceSeen[key] = line }
    }

    private mutating func readHook(
        _ event: ConfigurationFile.Hook.Event, _ line: Span<UInt8>, _ range: Range<Int>, isCut: Bool
    ) {
        // Generators write a hook without command; it does nothing.
        guard !range.isEmpty || isCut else { return }
        let column = column(of: range.lowerBound, in: line)
        // Half a command is another command.
        guard !isCut else { return refuse(.nul, column) }
        switch decode(line.extracting(range)) {
        case .text(let command): configuration.interface.hooks.append(.init(event, command))
        case .invalid(let cause): refuse(cause, column)
        }
    }

    private mutating func readUnknown(
        _ line: Span<UInt8>, _ content: Range<Int>, _ name: [UInt8], _ range: Range<Int>,
        isCut: Bool
    ) {
        let start = column(of: content.lowerBound, in: line)
        let shown = VisibleText.make(line.extracting(content), understood: false)
        if let meant = ConfigurationKey.nearest(to: name.span) {
            return refuse(.misspelled(meant), start, shown)
        }
        guard name.count <= UnknownSetting.longestName, let identifier = Identifier(name.span)
        else { return refuse(.badName, start, shown) }
        guard section != .none else { return refuse(.outside, start, shown) }
        var value: ConfigurationText?
        if !range.isEmpty || isCut {
            let column = column(of: range.lowerBound, in: line)
            guard !isCut else { return refuse(.nul, column) }
            switch decode(line.extracting(range)) {
            case .text(let text): value = text
            case .invalid(let cause): return refuse(cause, column)
            }
        }
        guard let setting = UnknownSetting(name: identifier, value: value) else { return }
        warn(.unknownName, start, shown)
        if section == .peer {
            peer.unknown.append(setting)
        } else {
            configuration.interface.unknown.append(setting)
        }
    }

    // MARK: peers

    private mutating func endPeer() {
        guard section == .peer else { return }
        let ended = peer
        peer = ConfigurationFile.Peer(publicKey: PublicKey(bytes: KeyBytes(repeating: 0)))
        let current = line
        line = peerLine
        defer { line = current }
        guard seen[.publicKey] != nil else { return refuse(.missingPublicKey) }
        if let first = peerLines[ended.publicKey] {
            complain(.duplicatePeer(line: first))
        } else {
            peerLines[ended.publicKey] = line
        }
        for prefix in ended.allowedIPs {
            if let owner = prefixOwners[prefix], owner.peer != ended.publicKey {
                warn(.taken(from: owner.line), 1, prefix.description)
            }
            prefixOwners[prefix] = (ended.publicKey, line)
        }
        configuration.peers.append(ended)
    }

    // MARK: diagnostics

    mutating func refuse(
        _ cause: ConfigurationDiagnostic.Cause, _ column: Int = 1, _ text: String? = nil
    ) {
        guard errors.count < Self.errorLimit else {
            omittedErrors += 1
            return
        }
        errors.append(diagnostic(cause, column, text))
    }

    mutating func warn(
        _ cause: ConfigurationDiagnostic.Cause, _ column: Int = 1, _ text: String? = nil
    ) {
        guard warnings.count < Self.warningLimit else {
            omittedWarnings += 1
            return
        }
        warnings.append(diagnostic(cause, column, text))
    }

    /// Refuses what only `wg` accepts.
    mutating func complain(
        _ cause: ConfigurationDiagnostic.Cause, _ column: Int = 1, _ text: String? = nil
    ) {
        if lenient { warn(cause, column, text) } else { refuse(cause, column, text) }
    }

    private func diagnostic(
        _ cause: ConfigurationDiagnostic.Cause, _ column: Int, _ text: String?
    ) -> ConfigurationDiagnostic {
        ConfigurationDiagnostic(
            file: fileName, line: max(line, 1), column: column, cause: cause, text: text)
    }
}

/// The column of a byte of `line`.
func column(of offset: Int, in line: Span<UInt8>) -> Int {
    var column = 1
    for index in 0..<offset where line[index] & 0xC0 != 0x80 { column += 1 }
    return column
}

func trimmed(_ line: Span<UInt8>, _ range: Range<Int>) -> Range<Int> {
    var (start, end) = (range.lowerBound, range.upperBound)
    while start < end, isBlank(line[start]) { start += 1 }
    while end > start, isBlank(line[end - 1]) { end -= 1 }
    return start..<end
}

func copy(_ text: Span<UInt8>, blanks: Bool) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count)
    for index in text.indices where blanks || !isBlank(text[index]) { bytes.append(text[index]) }
    return bytes
}

private enum Decoded {
    case text(ConfigurationText)
    case invalid(ConfigurationDiagnostic.Cause)
}

/// Text that is kept as it is; nothing of it is repaired.
private func decode(_ text: Span<UInt8>) -> Decoded {
    guard let string = String(validating: copy(text, blanks: true), as: UTF8.self) else {
        return .invalid(.notUTF8)
    }
    guard let text = ConfigurationText(string) else { return .invalid(.control) }
    return .text(text)
}
