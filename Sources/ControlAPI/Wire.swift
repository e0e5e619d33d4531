// SPDX-License-Identifier: Apache-2.0
import FoundationEssentials

/// Why bytes are not what they should be. Carries nothing of them: they may hold secrets.
public enum WireError: Error, Equatable, Sendable, CustomStringConvertible {
    /// More bytes than allowed; the number found.
    case tooLarge(Int)
    /// No JSON, cut off, or a number that its field cannot hold.
    case notJSON
    /// JSON, but a field is missing or is of another type; its path.
    case field(String)

    public var description: String {
        switch self {
        case .tooLarge(let count): "\(count) bytes are more than \(Wire.limit) are allowed"
        case .notJSON: "it is no JSON, only a part of it, or has a number out of range"
        case .field(let path): "the field \(path) is missing or has another type"
        }
    }
}

/// JSON (RFC 8259) in and out. Callable from any thread.
public enum Wire {
    /// Bytes of a request or an answer, 1 MiB.
    public static let limit = 1 << 20
    public static let contentType = "application/json"

    /// Unknown fields are ignored. Throws `.tooLarge`, `.notJSON`, `.field`.
    public static func decode<T: Decodable>(
        _ type: T.Type, from bytes: [UInt8], limit: Int = limit
    ) throws(WireError) -> T {
        guard bytes.count <= limit else { throw .tooLarge(bytes.count) }
        // The decoder takes UTF-16 and UTF-32 as well, which others on the way read otherwise; RFC
        // 8259 section 8.1 knows UTF-8 only. They have a NUL in each ASCII character.
        guard !bytes.contains(0) else { throw .notJSON }
        do {
            return try JSONDecoder().decode(type, from: Data(bytes))
        } catch DecodingError.keyNotFound(let key, let context) {
            throw .field(path(context.codingPath + [key]))
        } catch DecodingError.typeMismatch(_, let context),
            DecodingError.valueNotFound(_, let context)
        {
            throw .field(path(context.codingPath))
        } catch DecodingError.dataCorrupted(let context) where !context.codingPath.isEmpty {
            throw .field(path(context.codingPath))
        } catch {
            throw .notJSON
        }
    }

    /// One line, fields sorted by name, `/` not escaped.
    public static func encode(_ value: some Encodable) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Fails for numbers that are not finite only, which no type of ours has.
        guard let data = try? encoder.encode(value) else {
            preconditionFailure("a value of \(type(of: value)) has no JSON")
        }
        return Array(data)
    }

    /// `peers[2].publicKey`.
    private static func path(_ keys: [any CodingKey]) -> String {
        var path = ""
        for key in keys {
            if let index = key.intValue {
                path += "[\(index)]"
            } else {
                path += (path.isEmpty ? "" : ".") + key.stringValue
            }
        }
        return path.isEmpty ? "(the whole)" : path
    }
}
