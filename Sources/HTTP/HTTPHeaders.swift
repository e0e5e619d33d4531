// SPDX-License-Identifier: Apache-2.0

/// The header fields of a message, in the order they came. Names compare without case
/// (RFC 9110 section 5.1).
public struct HTTPHeaders: Sendable, Equatable, ExpressibleByDictionaryLiteral {
    public struct Field: Sendable, Equatable {
        public var name: String
        public var value: String
    }

    public private(set) var fields: [Field] = []

    public init() {}

    public init(dictionaryLiteral elements: (String, String)...) {
        for (name, value) in elements { append(name, value) }
    }

    /// The first field of that name; setting replaces all of them, nil removes them.
    public subscript(name: String) -> String? {
        get { fields.first { isSameName($0.name, name) }?.value }
        set {
            fields.removeAll { isSameName($0.name, name) }
            if let newValue { append(name, newValue) }
        }
    }

    /// Adds a field beside those of the same name.
    public mutating func append(_ name: String, _ value: String) {
        fields.append(Field(name: name, value: value))
    }

    public func all(_ name: String) -> [String] {
        fields.filter { isSameName($0.name, name) }.map(\.value)
    }

    /// Whether every field is one that may be sent: names of tokens, values without control
    /// characters (RFC 9110 section 5.5), which could end the field and begin another.
    var areWellFormed: Bool {
        areNamesTokens
            && fields.allSatisfy { $0.value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } }
    }

    /// Whether every field is one that may be taken: as `areWellFormed`, but tabs are blanks.
    var areAcceptable: Bool {
        areNamesTokens
            && fields.allSatisfy {
                $0.value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
            }
    }

    private var areNamesTokens: Bool {
        fields.allSatisfy { !$0.name.isEmpty && $0.name.utf8.allSatisfy(isTokenCharacter) }
    }
}

private func isSameName(_ left: String, _ right: String) -> Bool {
    left.utf8.count == right.utf8.count
        && zip(left.utf8, right.utf8).allSatisfy { lowerCase($0) == lowerCase($1) }
}

private func lowerCase(_ character: UInt8) -> UInt8 {
    (0x41...0x5A).contains(character) ? character | 0x20 : character
}

/// `tchar` of RFC 9110 section 5.6.2.
private func isTokenCharacter(_ character: UInt8) -> Bool {
    switch character {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: "!#$%&'*+-.^_`|~".utf8.contains(character)
    }
}
