// SPDX-License-Identifier: Apache-2.0
// The life of `nexusguard agent`: make what needs rights, give up every right, serve. The tunnel is
// the keeper's: it stays when this program ends, however it ends.
import ControlAPI
import Crypto
import HostProcess
import Storage
import TunnelPlan

public enum AgentProgram {
    public struct Options: Sendable {
        public var interface = InterfaceName("ng0")!
        public var stateDirectory = AgentStore.defaultDirectory
        public var socketPath = AgentClient.defaultSocket
        /// Of the keeper's socket.
        public var keeperDirectory = Options.standardKeeperDirectory
        /// Whom it becomes when root starts it.
        public var user = "nexusguard"
        /// To enrol with when there is no identity.
        public var enrolment: EnrolmentOrder?
        public var settings = InterfaceSettings()
        public var version: String
        /// The application's id of this machine, 32 hexadecimal digits.
        public var machine: String
        public static let standardKeeperDirectory = "/run/nexusguard"
        /// Goes to the background when it is ready.
        public var isBackground = false
        /// What messages call this program.
        public var program = "nexusguard"
        /// Whose members may speak to it.
        var group: UInt32?

        public init(version: String, machine: String) {
            self.version = version
            self.machine = machine
        }
    }

    /// In the state directory; locked while an agent or an enrolment works there.
    static let lockName = "agent.lock"

    /// Returns the exit code. Call it before any thread exists.
    public static func run(_ options: Options) -> UInt8 {
        var options = options
        let report: StartReport
        do throws(HostError) {
            report =
                options.isBackground
                ? try StartReport.daemonise(program: options.program)
                : StartReport.foreground(program: options.program)
        } catch {
            StandardStream.error.write("\(options.program): \(error.description)\n")
            return 1
        }
        do throws(AgentFailure) {
            let loop = try prepare(&options)
            guard report.ready() else { return 1 }
            loop.manager.notify("READY=1")
            let code = loop.run()
            loop.manager.notify("STOPPING=1")
            return code
        } catch {
            report.fail(code: error.exitCode, error.message)
            return error.exitCode
        }
    }

    private static func prepare(_ options: inout Options) throws(AgentFailure) -> AgentLoop {
        let user = try AgentRights.user(options.user)
        options.group = Host.group(named: "nexusguard")
        try AgentRights.makeStateDirectory(options.stateDirectory, for: user)
        try AgentRights.makeSocketDirectory(options.socketPath, for: user)
        let listener = try AgentRights.listener(options.socketPath, group: options.group)
        try AgentRights.giveUp(becoming: user)
        do throws(HostError) {
            let lock = try FileLock.take("\(options.stateDirectory)/\(lockName)")
            let signals = try EndingSignals(hangupEnds: !options.isBackground)
            return try AgentLoop(
                options, lock: lock, listener: listener, signals: signals,
                sessionId: Random.uuid(), logger: logger(options))
        } catch {
            throw AgentFailure(error)
        }
    }

    /// With a history beside the state, that `nexusguard logs` reads.
    private static func logger(_ options: Options) -> Logger {
        Logger(
            program: options.program, output: options.isBackground ? .journal : .automatic,
            directory: try? StateDirectory(options.stateDirectory))
    }
}
