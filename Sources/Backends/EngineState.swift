// SPDX-License-Identifier: Apache-2.0
import HostProcess
import TunnelPlan
import WireGuard

/// The state socket of one engine (docs/engine-state.md). The engine may stall: every exchange ends
/// within a bound. Other programs than ours have no such socket.
public struct EngineState: Sendable {
    /// Where it is: IFNAME.engine.
    public static let socketDirectory = "/run/nexusguard"
    private static let answerLimit = 1 << 20

    private let path: String
    private let limit: Int64

    /// `milliseconds`: of one exchange.
    public init(
        _ name: InterfaceName, directory: String = socketDirectory, milliseconds: Int64 = 5_000
    ) {
        path = "\(directory)/\(name).engine"
        limit = milliseconds
    }

    /// One line of JSON, without its newline. Throws `.notRunning` when nobody listens.
    public func document() throws(BackendError) -> [UInt8] {
        try exchange("get=1\n\n", end: [0x0A], "read the state")
    }

    /// From now on no initiation carries a TAI64N label at or below this. Seconds since 1970.
    public func raiseFloor(to seconds: Int64) throws(BackendError) {
        let request = "set=1\ntimestamp_floor=\(max(0, seconds)).000000000\n\n"
        let answer = try exchange(request, end: [0x0A, 0x0A], "set the floor")
        guard answer == Array("errno=0".utf8) else {
            throw failure(.refused, "set the floor", "it answered \"\(text(answer))\"")
        }
    }

    private func exchange(
        _ request: String, end: [UInt8], _ purpose: String
    ) throws(BackendError) -> [UInt8] {
        let deadline = Host.monotonicMilliseconds() + limit
        let connection: Descriptor
        do throws(HostError) {
            connection = try Descriptor.connect(path)
        } catch {
            throw failure(
                error.isNobodyListening ? .notRunning : .other, purpose, error.description)
        }
        // So short that a socket takes it at once.
        let bytes = Array(request.utf8)
        guard connection.write(bytes, from: 0) == bytes.count else {
            throw failure(.other, purpose, "it takes no request")
        }
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        var poller = Poller()
        while !answer.suffix(end.count).elementsEqual(end) {
            let rest = deadline - Host.monotonicMilliseconds()
            guard rest > 0 else {
                throw failure(.timeout, purpose, "no whole answer came in \(limit) ms")
            }
            poller.removeAll()
            poller.add(connection.number)
            poller.wait(milliseconds: rest)
            switch connection.read(into: &buffer) {
            case .empty: continue
            case .ended: throw failure(.other, purpose, "it hung up")
            case .bytes(let count): answer += buffer[..<count]
            }
            guard answer.count <= Self.answerLimit else {
                throw failure(.other, purpose, "its answer has no end")
            }
        }
        return answer.dropLast(end.count)
    }

    private func text(_ bytes: [UInt8]) -> String {
        String(decoding: bytes.prefix(40), as: UTF8.self).split(separator: "\n").joined(
            separator: " ")
    }

    private func failure(
        _ kind: BackendError.Kind, _ purpose: String, _ why: String
    ) -> BackendError {
        BackendError(kind, "cannot \(purpose) of the engine at \(path): \(why)")
    }
}
