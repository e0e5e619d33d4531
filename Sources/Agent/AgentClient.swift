// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import HostProcess

/// Asks the agent of this host, one request for each connection; each call waits for its answer.
public struct AgentClient: Sendable {
    public static let defaultSocket = "/run/nexusguard/agent/agent.sock"
    private static let answerLimit = 4 << 20

    public let path: String

    public init(path: String = AgentClient.defaultSocket) { self.path = path }

    /// Throws with exit code 3 when no agent runs, 4 when this user may not ask.
    public func status() throws(AgentFailure) -> AgentStatus {
        let answer = try ask(AgentRequest(verb: .status), seconds: 10)
        guard let status = answer.status else { throw incomprehensible("it has no status") }
        return status
    }

    /// It reads again what is on disk.
    public func reload() throws(AgentFailure) {
        _ = try ask(AgentRequest(verb: .reload), seconds: 10)
    }

    /// It sends a heartbeat soon.
    public func requestHeartbeat() throws(AgentFailure) {
        _ = try ask(AgentRequest(verb: .heartbeat), seconds: 10)
    }

    /// It leaves the hub; returns when the tunnel is down. `isForced`: also without the hub.
    public func unenroll(isForced: Bool) throws(AgentFailure) {
        _ = try ask(AgentRequest(verb: .unenroll, isForced: isForced), seconds: 120)
    }

    private func ask(_ request: AgentRequest, seconds: Int64) throws(AgentFailure) -> AgentAnswer {
        let line = try exchange(Wire.encode(request) + [0x0A], seconds: seconds)
        let answer: AgentAnswer
        do throws(WireError) {
            answer = try Wire.decode(AgentAnswer.self, from: line, limit: Self.answerLimit)
        } catch {
            throw incomprehensible("\(error)")
        }
        guard answer.ok else {
            throw AgentFailure(
                answer.error?.exitCode ?? 1, answer.error?.message ?? "the agent gave no reason")
        }
        return answer
    }

    private func exchange(_ request: [UInt8], seconds: Int64) throws(AgentFailure) -> [UInt8] {
        let deadline = Host.monotonicMilliseconds() + 1000 * seconds
        let connection = try connect()
        // A request is smaller than any socket's buffer (unix(7)).
        guard connection.write(request, from: 0) == request.count else { throw ended }
        var received: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65536)
        var poller = Poller()
        while true {
            switch connection.read(into: &buffer) {
            case .bytes(let count):
                received += buffer[..<count]
                if received.last == 0x0A { return received.dropLast() }
                guard received.count < Self.answerLimit else {
                    throw incomprehensible("it has no end")
                }
            case .ended: throw ended
            case .empty:
                let rest = deadline - Host.monotonicMilliseconds()
                guard rest > 0 else {
                    throw AgentFailure(1, "the agent gave no answer in \(seconds) s; see its log")
                }
                poller.removeAll()
                poller.add(connection.number)
                poller.wait(milliseconds: rest)
            }
        }
    }

    private func connect() throws(AgentFailure) -> Descriptor {
        do throws(HostError) {
            return try Descriptor.connect(path)
        } catch {
            if error.isNobodyListening {
                throw AgentFailure(
                    3,
                    "the agent is not running: nobody answers on \(path); run nexusguard agent, or "
                        + "see in nexusguard logs why it ended")
            }
            guard error.kind == .noPermission else { throw AgentFailure(1, error.description) }
            throw AgentFailure(
                4, "\(error.description); run this as root or as a member of the group nexusguard")
        }
    }

    private var ended: AgentFailure {
        AgentFailure(3, "the agent has ended meanwhile; see its log and start it again")
    }

    private func incomprehensible(_ why: String) -> AgentFailure {
        AgentFailure(1, "cannot understand the agent: \(why); use programs of one version")
    }
}
