// SPDX-License-Identifier: Apache-2.0
import CHostProcess
import Glibc

/// A listening unix socket under a name, made here or taken over.
public struct Listener: ~Copyable {
    private var listener: host_listener

    private init(_ listener: host_listener) { self.listener = listener }

    deinit {
        var copy = listener
        unsafe host_listener_close(&copy)
    }

    /// Throws when somebody answers on `path`; changes nothing.
    public static func probe(_ path: String) throws(HostError) {
        try unsafe withErrorText { text, result in
            result = unsafe host_listener_probe(path, text)
        }
    }

    /// Makes missing directories (0755) and the socket (0600); replaces a socket nobody answers on.
    /// Its name is removed at the end, if it still leads here.
    public static func open(_ path: String) throws(HostError) -> Listener {
        var made = host_listener()
        try unsafe withErrorText { text, result in
            result = unsafe host_listener_open(&made, path, text)
        }
        return Listener(made)
    }

    /// Takes over a descriptor that listens. Its name is watched, but stays.
    public static func adopt(_ descriptor: Int32) throws(HostError) -> Listener {
        var adopted = host_listener()
        try unsafe withErrorText { text, result in
            result = unsafe host_listener_adopt(&adopted, descriptor, text)
        }
        return Listener(adopted)
    }

    /// Readable when a client waits.
    public var descriptor: Int32 { listener.fd }
    /// The socket's name within its directory as it was last found; empty without one.
    public var name: String {
        var path = listener.path
        let bytes = unsafe withUnsafeBytes(of: &path) { unsafe Array($0.prefix { $0 != 0 }) }
        let start = bytes.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
        return String(decoding: bytes[start...], as: UTF8.self)
    }
    /// Readable when something happened to the name; nil without one.
    public var watch: Int32? { listener.watch_fd < 0 ? nil : listener.watch_fd }

    public enum AcceptResult: ~Copyable {
        case client(Descriptor)
        case none
        /// The process or the host has no descriptor or memory to spare.
        case exhausted
    }

    public mutating func accept() -> AcceptResult {
        let accepted = unsafe host_listener_accept(&listener)
        if accepted >= 0 { return .client(Descriptor(owning: accepted)) }
        return [EMFILE, ENFILE, ENOMEM, ENOBUFS].contains(-accepted) ? .exhausted : .none
    }

    /// Whether the name is gone or leads elsewhere (pitfall 62). Call it when `watch` is readable. One
    /// that was changed within its directory is followed.
    public mutating func isNameRemoved() -> Bool { unsafe host_listener_removed(&listener) }
}
