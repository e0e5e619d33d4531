// SPDX-License-Identifier: Apache-2.0

/// What one cell of a table holds, or what stands for a `?` of a statement. SQLite's own five
/// storage classes (sqlite.org/datatype3.html).
public enum Value: Equatable, Sendable {
    case null
    case integer(Int64)
    case real(Double)
    case text(String)
    case blob([UInt8])
}

extension Value {
    /// NULL for nil.
    public init(_ number: Int64?) { self = number.map(Value.integer) ?? .null }
    public init(_ text: String?) { self = text.map(Value.text) ?? .null }
    public init(_ bytes: [UInt8]?) { self = bytes.map(Value.blob) ?? .null }
    /// 0 or 1: SQLite has no type for truth.
    public init(_ flag: Bool) { self = .integer(flag ? 1 : 0) }
}

extension Value: ExpressibleByIntegerLiteral, ExpressibleByStringLiteral, ExpressibleByNilLiteral,
    ExpressibleByBooleanLiteral
{
    public init(integerLiteral value: Int64) { self = .integer(value) }
    public init(stringLiteral value: String) { self = .text(value) }
    public init(nilLiteral: ()) { self = .null }
    public init(booleanLiteral value: Bool) { self.init(value) }
}

/// One row of a result. Columns are asked for by the names that the statement gives them; a name
/// that it does not give is an error of the program and ends it.
public struct Row: Sendable {
    let columns: Columns
    let values: [Value]

    /// Shared by all rows of a result.
    final class Columns: Sendable {
        let names: [String]
        let indices: [String: Int]

        init(_ names: [String]) {
            self.names = names
            indices = Dictionary(
                names.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
        }
    }

    /// In the order of the statement.
    public subscript(_ index: Int) -> Value { values[index] }

    public subscript(_ name: String) -> Value {
        guard let index = columns.indices[name] else {
            preconditionFailure("no column \(name) in \(columns.names)")
        }
        return values[index]
    }

    /// nil for NULL and for another type.
    public func integer(_ name: String) -> Int64? {
        if case .integer(let number) = self[name] { number } else { nil }
    }

    /// nil for NULL and for another type; a whole number counts as real.
    public func real(_ name: String) -> Double? {
        switch self[name] {
        case .real(let number): number
        case .integer(let number): Double(number)
        default: nil
        }
    }

    /// nil for NULL and for another type.
    public func text(_ name: String) -> String? {
        if case .text(let text) = self[name] { text } else { nil }
    }

    /// nil for NULL and for another type.
    public func blob(_ name: String) -> [UInt8]? {
        if case .blob(let bytes) = self[name] { bytes } else { nil }
    }

    /// Not zero and not NULL.
    public func flag(_ name: String) -> Bool { (integer(name) ?? 0) != 0 }
}
