// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Tells when files of a directory are written, by inotify(7). Writes through mmap(2) are not told. One
/// thread uses it.
public final class DirectoryWatch {
    private let source: Descriptor
    private let names: Set<String>
    private var buffer = [UInt8](repeating: 0, count: 4096)

    /// Only `names` in the directory `path` count, whether they are there yet or not. nil: it cannot be
    /// watched; the user has no instance left (fs.inotify.max_user_instances), or may not read it.
    public init?(_ path: String, names: Set<String>) {
        let number = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        guard number >= 0 else { return nil }
        source = Descriptor(owning: number)
        self.names = names
        let events = UInt32(IN_MODIFY | IN_MOVED_TO)
        guard unsafe inotify_add_watch(number, path, events) >= 0 else { return nil }
    }

    /// Readable when something was written; `hasNews` says whether it counts.
    public var descriptor: Int32 { source.number }

    /// Forgets what was told. Never waits.
    public func hasNews() -> Bool {
        var isNews = false
        while case .bytes(let count) = source.read(into: &buffer) {
            isNews = isNews || concerns(count)
        }
        return isNews
    }

    /// Fixed parts of 16 bytes, each followed by a name that is filled up with zeros.
    private func concerns(_ count: Int) -> Bool {
        var start = 0
        while start + MemoryLayout<inotify_event>.size <= count {
            let event = unsafe buffer.withUnsafeBytes { bytes in
                unsafe bytes.loadUnaligned(fromByteOffset: start, as: inotify_event.self)
            }
            let name = start + MemoryLayout<inotify_event>.size
            start = name + Int(event.len)
            guard start <= count else { return true }
            if event.mask & UInt32(IN_Q_OVERFLOW) != 0 { return true }
            let bytes = buffer[name..<start].prefix { $0 != 0 }
            if names.contains(String(decoding: bytes, as: UTF8.self)) { return true }
        }
        return false
    }
}
