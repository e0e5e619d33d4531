// SPDX-License-Identifier: Apache-2.0
// What goes over the agent's socket: one JSON object on one line is one request, and so is its
// answer. docs/agent.md describes it.
import ControlAPI

struct AgentRequest: Codable, Sendable {
    enum Verb: String, Codable, Sendable {
        case status
        /// What is on disk has changed.
        case reload
        /// Send a heartbeat soon.
        case heartbeat
        /// Leave the hub, take the tunnel down, forget the identity.
        case unenroll
    }

    /// Bytes, with the newline.
    static let limit = 4096

    var schemaVersion = AgentStatus.schemaVersion
    var verb: Verb
    /// `unenroll`: also when the hub does not answer.
    var isForced: Bool?
}

struct AgentAnswer: Codable, Sendable {
    struct Failure: Codable, Equatable, Sendable {
        /// As nexusguard(8) lists them.
        var exitCode: UInt8
        var message: String
    }

    var schemaVersion = AgentStatus.schemaVersion
    var ok: Bool
    var error: Failure?
    var status: AgentStatus?

    static let done = AgentAnswer(ok: true)

    static func failed(_ code: UInt8, _ message: String) -> AgentAnswer {
        AgentAnswer(ok: false, error: Failure(exitCode: code, message: message))
    }
}

/// Why the agent did not do what it was asked.
public struct AgentFailure: Error, Equatable, Sendable, CustomStringConvertible {
    /// As nexusguard(8) lists them.
    public let exitCode: UInt8
    /// One line: what was tried, on what, why it failed, what to do.
    public let message: String

    public init(_ exitCode: UInt8, _ message: String) {
        self.exitCode = exitCode
        self.message = message
    }

    public var description: String { message }
}
