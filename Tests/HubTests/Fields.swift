// SPDX-License-Identifier: Apache-2.0
import ControlAPI

/// Which fields a type reads from JSON, found out by letting it decode something that has all required
/// fields and none of the others.
struct Fields {
    fileprivate(set) var required: Set<String> = []
    fileprivate(set) var optional: Set<String> = []
    var all: Set<String> { required.union(optional) }

    static func of(_ type: any Decodable.Type) throws -> Fields {
        let decoder = FieldDecoder()
        _ = try type.init(from: decoder)
        return decoder.fields
    }
}

private final class FieldDecoder: Decoder {
    var fields = Fields()
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(FieldContainer<Key>(decoder: self))
    }
    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw notNeeded }
    func singleValueContainer() throws -> any SingleValueDecodingContainer { throw notNeeded }
}

private let notNeeded = DecodingError.dataCorrupted(
    .init(codingPath: [], debugDescription: "not needed here"))

/// Something of that type.
private func sample<T: Decodable>(_ type: T.Type) throws -> T {
    let samples: [Any] = [
        "", false, 0, Int64(0), UInt64(0), [String](), SecretText(""), Timestamp(unixSeconds: 0),
    ]
    if let found = samples.first(where: { $0 is T }) as? T { return found }
    func first<C: CaseIterable>(_ cases: C.Type) -> Any? { cases.allCases.first }
    if let cases = type as? any CaseIterable.Type, let found = first(cases) as? T { return found }
    if let list = try? Wire.decode(type, from: Array("[]".utf8)) { return list }
    return try T(from: FieldDecoder())
}

private struct FieldContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let decoder: FieldDecoder
    let codingPath: [any CodingKey] = []
    let allKeys: [Key] = []

    func contains(_ key: Key) -> Bool {
        decoder.fields.optional.insert(key.stringValue)
        return false
    }

    func decodeNil(forKey key: Key) -> Bool { true }

    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        decoder.fields.required.insert(key.stringValue)
        return try sample(type)
    }

    func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) -> T? {
        decoder.fields.optional.insert(key.stringValue)
        return nil
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> { throw notNeeded }
    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        throw notNeeded
    }
    func superDecoder() throws -> any Decoder { throw notNeeded }
    func superDecoder(forKey key: Key) throws -> any Decoder { throw notNeeded }
}
