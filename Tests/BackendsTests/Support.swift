// SPDX-License-Identifier: Apache-2.0
import Glibc
import HostProcess
import TestSupport
import TunnelPlan
import WireGuard

extension TemporaryDirectory {
    /// A program that is this shell script.
    func program(_ name: String, _ script: String) throws -> String {
        let path = "\(path)/\(name)"
        try HostFile.write(Array("#!/bin/sh\n\(script)\n".utf8), to: path, replacing: false)
        precondition(unsafe chmod(path, 0o700) == 0)
        return path
    }
}

/// Listens on a socket; a script answers its clients on a thread of its own.
///
/// `@unchecked Sendable`: the listener is used by that thread alone once `serve` was called.
final class FakeServer: @unchecked Sendable {
    let path: String
    private var listener: Listener
    private var thread: pthread_t?
    private var script: (@Sendable (borrowing Descriptor) -> Void)?
    private var clients = 0

    init(_ path: String) throws {
        self.path = path
        listener = try Listener.open(path)
    }

    /// Answers `clients` of them, one after the other; each is closed when `script` returns.
    func serve(_ clients: Int, _ script: @escaping @Sendable (borrowing Descriptor) -> Void) {
        self.clients = clients
        self.script = script
        var made = pthread_t()
        let argument = unsafe Unmanaged.passRetained(self).toOpaque()
        let status = unsafe pthread_create(
            &made, nil,
            { argument in
                unsafe Unmanaged<FakeServer>.fromOpaque(argument!).takeRetainedValue().run()
                return nil
            }, argument)
        precondition(status == 0, "no thread")
        thread = made
    }

    /// All clients were answered.
    func join() { if let thread { pthread_join(thread, nil) } }

    /// Somebody took the name away, as who wants the server to end does.
    func waitForRemoval() {
        var poller = Poller()
        repeat {
            poller.removeAll()
            poller.add(listener.watch!)
            poller.wait(milliseconds: nil)
        } while !listener.isNameRemoved()
    }

    private func run() {
        var poller = Poller()
        var answered = 0
        while answered < clients {
            poller.removeAll()
            poller.add(listener.descriptor)
            poller.wait(milliseconds: nil)
            guard case .client(let client) = listener.accept() else { continue }
            script!(client)
            answered += 1
        }
    }
}

/// Everything up to a blank line; nil when the client has gone before.
func readRequest(_ client: borrowing Descriptor) -> String? {
    var text: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    var poller = Poller()
    while true {
        poller.removeAll()
        poller.add(client.number)
        poller.wait(milliseconds: nil)
        switch client.read(into: &buffer) {
        case .bytes(let count): text += buffer[..<count]
        case .empty: continue
        case .ended: return nil
        }
        if text.suffix(2) == [10, 10] { return String(decoding: text, as: UTF8.self) }
    }
}

/// As much as the client takes; it may go at any time.
func answer(_ client: borrowing Descriptor, _ text: String) {
    let bytes = Array(text.utf8)
    var written = 0
    var poller = Poller()
    while written < bytes.count {
        poller.removeAll()
        poller.add(client.number, read: false, write: true)
        poller.wait(milliseconds: nil)
        guard let count = client.write(bytes, from: written) else { return }
        written += count
    }
}

/// The client closes.
func awaitEnd(_ client: borrowing Descriptor) {
    var buffer = [UInt8](repeating: 0, count: 4096)
    var poller = Poller()
    while true {
        poller.removeAll()
        poller.add(client.number)
        poller.wait(milliseconds: nil)
        if case .ended = client.read(into: &buffer) { return }
    }
}

let wg0 = InterfaceName("wg0")!

func key(_ byte: UInt8) -> PublicKey { PublicKey(bytes: InlineArray(repeating: byte)) }

func prefix(_ text: String) -> Prefix { Prefix(text)! }
