// SPDX-License-Identifier: Apache-2.0
import Glibc

@testable import HostNetwork

/// A directory of its own for each test; removed at the end.
final class Sandbox: Sendable {
    let path: String

    init() {
        var template = Array("/tmp/nexusguard-test.XXXXXX".utf8CString)
        path = unsafe template.withUnsafeMutableBufferPointer { buffer in
            unsafe String(cString: mkdtemp(buffer.baseAddress!)!)
        }
    }

    deinit {
        // Flat, but for the directories that tests name.
        for directory in [path + "/run", path + "/etc", path] {
            guard let stream = unsafe opendir(directory) else { continue }
            while let entry = unsafe readdir(stream) {
                let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { start in
                    unsafe start.withMemoryRebound(to: CChar.self, capacity: 256) { start in
                        unsafe String(cString: start)
                    }
                }
                unsafe unlink("\(directory)/\(name)")
            }
            unsafe closedir(stream)
            unsafe rmdir(directory)
        }
    }

    func at(_ name: String) -> String { "\(path)/\(name)" }

    func makeDirectory(_ name: String) { unsafe mkdir(at(name), 0o755) }

    func write(_ name: String, _ text: String, mode: UInt32 = 0o644) {
        try! SmallFile.replace(at(name), Array(text.utf8), mode: mode)
    }

    func link(_ name: String, to target: String) { unsafe symlink(target, at(name)) }

    func read(_ name: String) -> String? {
        (try? SmallFile.read(at(name))).map { String(decoding: $0, as: UTF8.self) }
    }

    func remove(_ name: String) { unsafe unlink(at(name)) }

    func exists(_ name: String) -> Bool {
        var status = stat()
        return unsafe lstat(at(name), &status) == 0
    }
}
