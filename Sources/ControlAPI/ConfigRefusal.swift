// SPDX-License-Identifier: Apache-2.0

/// Why a configuration or a forward from the other side is not used. Nothing of it is applied then.
public struct ConfigRefusal: Error, Equatable, Sendable, CustomStringConvertible {
    /// Travels as `rejectedCode`; never renamed.
    public enum Code: String, Sendable, CaseIterable {
        case idInvalid = "id_invalid"
        case keyInvalid = "key_invalid"
        case addressInvalid = "address_invalid"
        case prefixInvalid = "prefix_invalid"
        case endpointInvalid = "endpoint_invalid"
        case dnsInvalid = "dns_invalid"
        case numberInvalid = "number_invalid"
        case nameInvalid = "name_invalid"
        case protocolInvalid = "protocol_invalid"
        /// Two peers have one public key.
        case duplicatePeer = "duplicate_peer"
        /// Two peers claim one prefix.
        case duplicatePrefix = "duplicate_prefix"
    }

    public let code: Code
    /// The path of the field, as `peers[2].allowedIps`.
    public let field: String
    /// What is wrong with it and what it should be. Free of secrets.
    public let reason: String

    init(_ code: Code, _ field: String, _ reason: String, shown: String? = nil) {
        self.code = code
        self.field = field
        self.reason = (shown.map { "\"\(visible($0, limit: 48))\" " } ?? "") + reason
    }

    public var description: String { "\(field): \(reason)" }
}

/// `text` from the other side, fit to be shown in one line of a terminal or log: printable ASCII stays,
/// all else becomes `?`; at most `limit` characters and a mark that there was more.
public func visible(_ text: String, limit: Int) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
        guard result.unicodeScalars.count < limit else { return result + "…" }
        result.unicodeScalars.append(0x20..<0x7F ~= scalar.value ? scalar : "?")
    }
    return result
}
