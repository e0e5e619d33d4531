// SPDX-License-Identifier: Apache-2.0
import CHostProcess
import Glibc

/// One line that names what was tried, on what, why it failed and what to do.
public struct HostError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Positive.
    public let errno: Int32
    public let description: String

    init(errno: Int32, _ description: String) {
        self.errno = errno
        self.description = description
    }

    public var kind: ErrorKind { ErrorKind(errno: errno) }
    /// The file system has no room, or the user's share of it is used up.
    public var isFull: Bool { errno == ENOSPC || errno == EDQUOT }
}

/// What an errno means for an exit code.
public enum ErrorKind: Sendable {
    case noPermission
    /// A name or port is taken.
    case busy
    case other

    public init(errno: Int32) {
        self =
            switch errno {
            case EPERM, EACCES: .noPermission
            case EADDRINUSE, EEXIST, EBUSY: .busy
            default: .other
            }
    }
}

/// What strerror(3) says.
public func textOfErrno(_ errno: Int32) -> String {
    guard let text = unsafe strerror(errno) else { return "error \(errno)" }
    return unsafe String(cString: text)
}

/// Runs a C function that returns a negative errno and fills a line.
func withErrorText<Value>(
    _ body: (UnsafeMutablePointer<CChar>, inout Int32) -> Value
) throws(HostError) -> Value {
    var text = [CChar](repeating: 0, count: Int(HOST_ERROR_CAPACITY))
    var result: Int32 = 0
    let value = unsafe text.withUnsafeMutableBufferPointer { buffer in
        unsafe body(buffer.baseAddress!, &result)
    }
    guard result >= 0 else { throw HostError(errno: -result, string(fromC: text)) }
    return value
}

/// The characters up to the first NUL.
func string(fromC characters: [CChar]) -> String {
    String(decoding: characters.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
}
