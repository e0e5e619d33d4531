// SPDX-License-Identifier: Apache-2.0
import Crypto
import HostProcess
import WireGuard

/// The tunnels that answer on this host, whoever made them.
enum RunningTunnels {
    private static let directory = "/var/run/wireguard"

    /// In the order of the directory, as wg prints them. A socket nobody listens on is left alone.
    static func names() -> [String] {
        let sockets = Host.names(in: directory).filter { $0.hasSuffix(".sock") }
        return sockets.filter { isAnswering("\(directory)/\($0)") }.map { String($0.dropLast(5)) }
    }

    static func snapshot(_ name: String) throws(Failure) -> DeviceSnapshot {
        var device = try exchange(UAPIRequest.get, name).device
        if let key = device.privateKey { device.publicKey = key.publicKey }
        return device
    }

    static func apply(
        _ device: DeviceChange, _ peers: [PeerChange], to name: String
    ) throws(Failure) {
        var request = UAPIRequest.set(device: device, peers: peers, replacePeers: false)
        defer { erase(&request) }
        _ = try exchange(request, name)
    }

    private static func isAnswering(_ path: String) -> Bool {
        do throws(HostError) {
            _ = try Descriptor.connect(path)
            return true
        } catch {
            return error.isQueueFull
        }
    }

    private static func exchange(_ request: [UInt8], _ name: String) throws(Failure) -> UAPIAnswer {
        guard !name.contains("/") else {
            throw .usage("\(quoted(name)) is not the name of an interface")
        }
        let descriptor: Descriptor
        do throws(HostError) {
            descriptor = try Descriptor.connect("\(directory)/\(name).sock")
        } catch  where error.isNobodyListening {
            throw Failure(
                code: ExitCode.notRunning,
                "\(visible(name)) does not run; \(programName) show interfaces lists what does")
        } catch {
            throw Failure(error)
        }
        var exchange = UAPIExchange(descriptor, name: name)
        let answer = try exchange.run(request)
        guard let failure = answer.failure else { return answer }
        throw Failure(HostError(errno: failure.errno, attempt: "\(name) refuses the request"))
    }
}

/// One request and its answer over a connection that may be anybody's: bounded in time and size.
private struct UAPIExchange: ~Copyable {
    /// Without a byte either way for this long it is given up. Milliseconds.
    private static let patience: Int64 = 10_000

    private let descriptor: Descriptor
    private let name: String
    private var buffer = [UInt8](repeating: 0, count: 65536)
    private var poller = Poller()

    init(_ descriptor: consuming Descriptor, name: String) {
        self.descriptor = descriptor
        self.name = name
    }

    mutating func run(_ request: [UInt8]) throws(Failure) -> UAPIAnswer {
        defer { erase(&buffer) }
        var sent = 0
        while sent < request.count {
            guard let count = descriptor.write(request, from: sent) else { throw ended("closed") }
            sent += count
            if count == 0 { try wait(write: true) }
        }
        var reader = UAPIAnswerReader()
        while true {
            if let answer = reader.answer { return answer }
            switch descriptor.read(into: &buffer) {
            case .empty: try wait(write: false)
            case .ended: throw ended("closed before its answer was whole")
            case .bytes(let count): try read(count, &reader)
            }
        }
    }

    private func read(_ count: Int, _ reader: inout UAPIAnswerReader) throws(Failure) {
        do throws(UAPIAnswerError) {
            try reader.receive(buffer.span.extracting(..<count))
        } catch {
            throw Failure("cannot ask \(visible(name)): \(error)")
        }
    }

    private mutating func wait(write: Bool) throws(Failure) {
        poller.removeAll()
        let entry = poller.add(descriptor.number, read: !write, write: write)
        poller.wait(milliseconds: Self.patience)
        guard write ? poller.isWritable(entry) : poller.isReadable(entry) else {
            throw ended("has not answered for \(Self.patience / 1000) s")
        }
    }

    private func ended(_ how: String) -> Failure {
        Failure(
            "cannot ask \(visible(name)): the program behind its socket \(how); look at its log")
    }
}
