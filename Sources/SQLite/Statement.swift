// SPDX-License-Identifier: Apache-2.0
import CSQLite

/// A prepared statement; finalised at the end of its life, which is before its connection's.
@safe final class Statement {
    private let pointer: OpaquePointer
    private let columns: Row.Columns

    init(owning pointer: OpaquePointer) {
        unsafe self.pointer = pointer
        columns = unsafe Row.Columns(
            (0..<sqlite3_column_count(pointer)).map { index in
                unsafe String(cString: sqlite3_column_name(pointer, index))
            })
    }

    deinit { unsafe sqlite3_finalize(pointer) }

    var parameterCount: Int { unsafe Int(sqlite3_bind_parameter_count(pointer)) }

    /// Runs it to its end, or until `body` wants no more rows. The result is SQLite's code unless all
    /// went well; the statement is ready to be run again, and holds no lock and none of the values.
    func run(_ values: [Value], _ body: (Row) -> Bool) -> Int32? {
        defer {
            unsafe sqlite3_reset(pointer)
            unsafe sqlite3_clear_bindings(pointer)
        }
        for (index, value) in values.enumerated() {
            let status = bind(value, at: Int32(index) + 1)
            guard status == SQLITE_OK else { return status }
        }
        while true {
            switch unsafe sqlite3_step(pointer) {
            case SQLITE_ROW:
                let row = Row(columns: columns, values: columns.names.indices.map(column))
                guard body(row) else { return nil }
            case SQLITE_DONE: return nil
            case let status: return status
            }
        }
    }

    private func bind(_ value: Value, at index: Int32) -> Int32 {
        // SQLITE_TRANSIENT, which the importer does not see: SQLite makes a copy of its own.
        let copied = unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        switch value {
        case .null: return unsafe sqlite3_bind_null(pointer, index)
        case .integer(let number): return unsafe sqlite3_bind_int64(pointer, index, number)
        case .real(let number): return unsafe sqlite3_bind_double(pointer, index, number)
        case .text(let text):
            var text = text
            return text.withUTF8 { bytes in
                // An address even for the empty text: a null pointer would bind NULL.
                unsafe bytes.withMemoryRebound(to: CChar.self) { characters in
                    guard let start = characters.baseAddress else {
                        return unsafe sqlite3_bind_text64(
                            pointer, index, "", 0, copied, UInt8(SQLITE_UTF8))
                    }
                    return unsafe sqlite3_bind_text64(
                        pointer, index, start, UInt64(characters.count), copied,
                        UInt8(SQLITE_UTF8))
                }
            }
        case .blob(let bytes):
            guard !bytes.isEmpty else { return unsafe sqlite3_bind_zeroblob(pointer, index, 0) }
            return unsafe bytes.withUnsafeBytes { buffer in
                unsafe sqlite3_bind_blob64(
                    pointer, index, buffer.baseAddress, UInt64(buffer.count), copied)
            }
        }
    }

    private func column(_ index: Int) -> Value {
        let index = Int32(index)
        switch unsafe sqlite3_column_type(pointer, index) {
        case SQLITE_INTEGER: return unsafe .integer(sqlite3_column_int64(pointer, index))
        case SQLITE_FLOAT: return unsafe .real(sqlite3_column_double(pointer, index))
        case SQLITE_TEXT:
            // The text first, then its length (sqlite.org/c3ref/column_blob.html).
            guard let start = unsafe sqlite3_column_text(pointer, index) else { return .text("") }
            let count = unsafe Int(sqlite3_column_bytes(pointer, index))
            return unsafe .text(
                String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self))
        case SQLITE_BLOB:
            guard let start = unsafe sqlite3_column_blob(pointer, index) else { return .blob([]) }
            let count = unsafe Int(sqlite3_column_bytes(pointer, index))
            return unsafe .blob(Array(UnsafeRawBufferPointer(start: start, count: count)))
        default: return .null
        }
    }
}
