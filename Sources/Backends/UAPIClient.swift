// SPDX-License-Identifier: Apache-2.0
import HostProcess
import TunnelPlan
import WireGuard

/// Speaks the configuration protocol to whoever listens on a socket: our engine, wireguard-go or
/// another. The server may stall or lie: every exchange ends within a bound.
public struct UAPIClient: Sendable {
    /// What a server may take.
    public struct Limits: Equatable, Sendable {
        /// Milliseconds without a byte in either direction.
        public var idle: Int64 = 5_000
        /// Milliseconds for one whole exchange.
        public var total: Int64 = 30_000
        /// Bytes of one answer.
        public var answer = UAPIAnswerReader.defaultLimit

        public init() {}
    }

    /// What went wrong, before it is put into words.
    enum Failure: Error, Equatable {
        case connection(HostError)
        case timeout(Int64)
        case answer(UAPIAnswerError)
        case refused(UAPIError)
        /// It said that all was done before it had been told all.
        case answeredEarly
    }

    let path: String
    let limits: Limits

    /// `path` is the socket's.
    public init(path: String, limits: Limits = Limits()) {
        self.path = path
        self.limits = limits
    }

    /// The device's state.
    func get() throws(Failure) -> DeviceSnapshot { try exchange(UAPIRequest.get).device }

    func set(
        device: DeviceChange, peers: [PeerChange], replacePeers: Bool
    ) throws(Failure) {
        var request = UAPIRequest.set(device: device, peers: peers, replacePeers: replacePeers)
        defer { erase(&request) }
        _ = try exchange(request)
    }

    private func exchange(_ request: [UInt8]) throws(Failure) -> UAPIAnswer {
        let deadline = Host.monotonicMilliseconds() + limits.total
        let connection = try connect(deadline)
        var exchange = UAPIExchange(request: request, limits: limits, deadline: deadline)
        let answer = try exchange.run(connection)
        if let failure = answer.failure { throw .refused(failure) }
        return answer
    }

    /// A full queue empties when the server gets to it, and nothing tells us when.
    func connect(_ deadline: Int64) throws(Failure) -> Descriptor {
        while true {
            do throws(HostError) {
                return try Descriptor.connect(path)
            } catch {
                guard error.isQueueFull else { throw .connection(error) }
                guard Host.monotonicMilliseconds() < deadline else {
                    throw .timeout(limits.total)
                }
                var poller = Poller()
                poller.wait(milliseconds: 5)
            }
        }
    }
}

/// One request and its answer over a connection.
private struct UAPIExchange {
    let request: [UInt8]
    let limits: UAPIClient.Limits
    /// Of Host.monotonicMilliseconds.
    let deadline: Int64
    private var written = 0
    /// The other side takes no more; it may have answered before.
    private var isBroken = false
    private var reader: UAPIAnswerReader

    init(request: [UInt8], limits: UAPIClient.Limits, deadline: Int64) {
        self.request = request
        self.limits = limits
        self.deadline = deadline
        reader = UAPIAnswerReader(limit: limits.answer)
    }

    mutating func run(_ connection: borrowing Descriptor) throws(UAPIClient.Failure) -> UAPIAnswer {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        defer { erase(&buffer) }
        var poller = Poller()
        while true {
            let now = Host.monotonicMilliseconds()
            let wait = min(limits.idle, deadline - now)
            guard wait > 0 else { throw .timeout(limits.total) }
            poller.removeAll()
            let isWriting = written < request.count && !isBroken
            let entry = poller.add(connection.number, read: true, write: isWriting)
            poller.wait(milliseconds: wait)
            let canRead = poller.isReadable(entry)
            let canWrite = isWriting && poller.isWritable(entry)
            guard canRead || canWrite || Host.monotonicMilliseconds() - now < wait else {
                throw .timeout(wait)
            }
            if canWrite { write(connection) }
            if canRead, let answer = try read(connection, &buffer) { return answer }
        }
    }

    private mutating func write(_ connection: borrowing Descriptor) {
        if let count = connection.write(request, from: written) {
            written += count
        } else {
            isBroken = true
        }
    }

    /// nil: not whole yet.
    private mutating func read(
        _ connection: borrowing Descriptor, _ buffer: inout [UInt8]
    ) throws(UAPIClient.Failure) -> UAPIAnswer? {
        do throws(UAPIAnswerError) {
            switch connection.read(into: &buffer) {
            case .empty: return nil
            case .ended: return try reader.finish()
            case .bytes(let count): try reader.receive(buffer.span.extracting(first: count))
            }
        } catch {
            throw .answer(error)
        }
        guard let answer = reader.answer else { return nil }
        // A refusal may come before the end of what it refuses.
        guard answer.failure != nil || written == request.count else { throw .answeredEarly }
        return answer
    }
}

extension UAPIClient.Failure {
    /// For people; `purpose` completes "cannot …".
    func error(_ purpose: String, path: String) -> BackendError {
        switch self {
        case .connection(let error) where error.isNobodyListening:
            BackendError(.notRunning, "cannot \(purpose): nobody listens on \(path)")
        case .connection(let error) where error.kind == .noPermission:
            BackendError(.permission, "cannot \(purpose): \(error); run as root")
        case .connection(let error): BackendError(.other, "cannot \(purpose): \(error)")
        case .timeout(let milliseconds):
            BackendError(
                .timeout,
                "cannot \(purpose): who listens on \(path) did not answer for \(milliseconds) ms; "
                    + "see what it does, or end it")
        case .answer(let error):
            BackendError(.other, "cannot \(purpose): who listens on \(path): \(error)")
        case .answeredEarly:
            BackendError(
                .other, "cannot \(purpose): who listens on \(path) answered before it was asked")
        case .refused(let error): refusal(error, purpose)
        }
    }

    private func refusal(_ error: UAPIError, _ purpose: String) -> BackendError {
        let why = textOfErrno(error.errno)
        return switch ErrorKind(errno: error.errno) {
        case .busy:
            BackendError(
                .taken, "cannot \(purpose): \(why); another program has the port or is at work")
        case .noPermission: BackendError(.permission, "cannot \(purpose): \(why)")
        case .other: BackendError(.refused, "cannot \(purpose): the engine refused it: \(why)")
        }
    }
}
