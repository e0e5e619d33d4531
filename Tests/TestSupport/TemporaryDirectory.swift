// SPDX-License-Identifier: Apache-2.0
import Glibc
import HostProcess

/// A directory of this test's own below /tmp, removed with what is in it when the last reference
/// goes.
public final class TemporaryDirectory: Sendable {
    public let path: String

    public init() {
        var template = Array("/tmp/nexusguard-test.XXXXXX".utf8CString)
        path = unsafe template.withUnsafeMutableBufferPointer { buffer in
            unsafe String(cString: mkdtemp(buffer.baseAddress!))
        }
    }

    deinit { unsafe _ = system("rm -rf '\(path)'") }

    public func file(_ name: String) -> String { "\(path)/\(name)" }
    /// What is in it, in order.
    public var names: [String] { Host.names(in: path).sorted() }
}
