// SPDX-License-Identifier: Apache-2.0
// `nexusguard enroll`: from a token to a stored identity, without an agent.
import ControlAPI
import HostProcess
import Storage

public struct EnrolProgram {
    public struct Options: Sendable {
        public var stateDirectory = AgentStore.defaultDirectory
        public var socketPath = AgentClient.defaultSocket
        /// Whose the state is when root enrols.
        public var user = "nexusguard"
        public var version: String
        public var machine: String
        /// How long to try while the hub does not answer.
        public var seconds: Int64 = 60
        /// Where there is an identity, or one that cannot be read.
        public var replaces = false

        public init(version: String, machine: String) {
            self.version = version
            self.machine = machine
        }
    }

    /// What people are told.
    public struct Report: Equatable, Sendable {
        public var deviceId: String
        public var hub: String
        public var ipAddress: String
        /// A running agent has taken it up.
        public var isAgentRunning: Bool
    }

    private let options: Options
    private let order: EnrolmentOrder
    private let note: (String) -> Void

    /// `note` gets what is worth telling meanwhile.
    public init(_ options: Options, _ order: EnrolmentOrder, note: @escaping (String) -> Void) {
        self.options = options
        self.order = order
        self.note = note
    }

    /// Gives up all rights on the way. Before any thread exists.
    public func run() throws(AgentFailure) -> Report {
        let user = try AgentRights.user(options.user)
        try AgentRights.makeStateDirectory(options.stateDirectory, for: user)
        try AgentRights.giveUp(becoming: user)
        let enrolled = try enrolAlone()
        return Report(
            deviceId: enrolled.identity.deviceId, hub: order.url.description,
            ipAddress: enrolled.configuration.config.addresses.map(\.description)
                .joined(separator: ", "),
            isAgentRunning: tellAgent())
    }

    /// With the agent's lock, or beside an agent that hears of it: one that does not would go on with
    /// the identity it has.
    private func enrolAlone() throws(AgentFailure) -> Enrolled {
        let lock: FileLock
        do throws(HostError) {
            lock = try FileLock.take(lockPath)
        } catch {
            guard error.kind == .busy else { throw AgentFailure(error) }
            try checkAgentHears(error)
            return try enrol()
        }
        let enrolled = try enrol()
        _ = consume lock
        return enrolled
    }

    private func checkAgentHears(_ busy: HostError) throws(AgentFailure) {
        let what = "cannot enrol in \(options.stateDirectory): \(busy.description)"
        let process: Int32
        do throws(AgentFailure) {
            process = try AgentClient(path: options.socketPath).status().process
        } catch {
            throw AgentFailure(
                8,
                "\(what), and cannot be told: \(error.message); end it, or name its socket with "
                    + "--socket")
        }
        let holder = try? HostFile.read(lockPath, limit: 16).bytes
        guard holder == Array("\(process)\n".utf8) else {
            throw AgentFailure(
                8,
                "\(what), and on \(options.socketPath) answers another one, process \(process); "
                    + "end it, or name its socket with --socket")
        }
    }

    private var lockPath: String { "\(options.stateDirectory)/\(AgentProgram.lockName)" }

    private func enrol() throws(AgentFailure) -> Enrolled {
        let store = try storing { () throws(StoreFault) in
            try AgentStore(options.stateDirectory, machine: options.machine)
        }
        for line in store.remarks { note(line) }
        try checkIsFree(store)
        let key = try storing { () throws(StoreFault) in try store.enrolmentKey() }
        let enrolment = Enrolment(
            order: order, key: key, hwid: options.machine, agentVersion: options.version)
        let enrolled = try ask(enrolment)
        try storing { () throws(StoreFault) in try store.save(enrolled) }
        return enrolled
    }

    /// An identity that works is not replaced by accident, and one that cannot be read is not
    /// thrown away by accident.
    private func checkIsFree(_ store: AgentStore) throws(AgentFailure) {
        guard !options.replaces else { return }
        let present = try storing { () throws(StoreFault) in try store.identity() }
        guard let present, !present.isRevoked else { return }
        throw AgentFailure(
            8,
            "this host is enrolled already, at \(present.url) as \(present.deviceId); run "
                + "nexusguard unenroll first, or enroll --replace")
    }

    /// As often as the time allows.
    private func ask(_ enrolment: Enrolment) throws(AgentFailure) -> Enrolled {
        let deadline = Host.monotonicMilliseconds() + options.seconds * 1000
        var random = SplitMix(seed: Host.randomNumber())
        var backoff = Backoff()
        var nothing = Poller()
        while true {
            let fault: ControlFault
            do throws(ControlFault) {
                return try enrolment.perform(
                    try HubConnection(order.target, agentVersion: options.version))
            } catch {
                fault = error
            }
            let now = Host.monotonicMilliseconds()
            let next = backoff.failed(at: now, retryAfter: fault.retryAfter, random: &random)
            guard fault.kind == .transient, next < deadline else { throw AgentFailure(fault) }
            if backoff.failures == 1 { note("\(fault.reason); trying again") }
            nothing.wait(milliseconds: next - now)
        }
    }

    private func tellAgent() -> Bool {
        do throws(AgentFailure) {
            try AgentClient(path: options.socketPath).reload()
            return true
        } catch {
            if error.exitCode != 3 { note("cannot tell the running agent: \(error.message)") }
            return false
        }
    }
}

private func storing<Value>(_ body: () throws(StoreFault) -> Value) throws(AgentFailure) -> Value {
    do throws(StoreFault) {
        return try body()
    } catch {
        throw AgentFailure(1, error.reason)
    }
}

extension AgentFailure {
    /// Of an enrolment.
    init(_ fault: ControlFault) {
        let code: UInt8 =
            switch fault.kind {
            case .tokenRefused: ExitStatus.tokenRefused
            case .revoked: ExitStatus.revoked
            case .transient: 69
            default: 1
            }
        self.init(code, fault.reason)
    }
}
