// SPDX-License-Identifier: Apache-2.0
import Glibc
import SQLite
import Testing

func permissions(_ path: String) -> UInt32 {
    var status = stat()
    return unsafe stat(path, &status) == 0 ? status.st_mode & 0o7777 : 0
}

/// The kind of the error that `body` throws.
func kind(of body: () throws(SQLiteError) -> Void) -> SQLiteError.Kind? {
    do throws(SQLiteError) {
        try body()
        return nil
    } catch {
        return error.kind
    }
}

struct NoFile: Error {}

func bytes(of path: String) throws -> [UInt8] {
    guard let file = unsafe fopen(path, "r") else { throw NoFile() }
    defer { unsafe fclose(file) }
    var content = [UInt8](repeating: 0, count: 1 << 22)
    let count = unsafe fread(&content, 1, content.count, file)
    return Array(content.prefix(count))
}

func write(_ content: [UInt8], to path: String) throws {
    guard let file = unsafe fopen(path, "w") else { throw NoFile() }
    unsafe fwrite(content, 1, content.count, file)
    unsafe fclose(file)
}
