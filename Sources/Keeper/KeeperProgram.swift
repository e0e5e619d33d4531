// SPDX-License-Identifier: Apache-2.0
// The life of `nexusguard keep IFNAME`: go to the background, lock, take over what is there or wait
// for a configuration, serve; on a signal leave everything in place, after `down` leave nothing.
import HostProcess
import TunnelPlan
import WireGuard

public enum KeeperProgram {
    public struct Options: Sendable {
        /// Stays in the foreground and logs to standard error.
        public var isForeground = false
        /// Of the socket, the lock and the last good configuration.
        public var directory = StateFiles.defaultDirectory
        /// Of what comes back with the machine: its `tunnels` directory.
        public var persistentDirectory = StateFiles.defaultPersistentDirectory
        /// Waits for a configuration as long as it takes, and begins with the one that was kept for
        /// it. Otherwise it ends when nobody asks for anything.
        public var waits = true
        /// Its members may speak to the keeper; where there is no such group, only root may.
        public var group = "nexusguard"
        /// What messages call this program.
        public var program = "nexusguard"
        public init() {}
    }

    /// Returns the exit code. Call it before any thread exists. `makeHost` is called in the
    /// process that keeps.
    public static func run<Target: TunnelHost & ~Copyable>(
        name: InterfaceName, options: Options = Options(),
        host makeHost: () throws(KeeperFailure) -> Target
    ) -> UInt8 {
        let report: StartReport
        do throws(HostError) {
            _ = try Host.cleanDescriptors(keeping: [])
            report =
                options.isForeground
                ? StartReport.foreground(program: options.program)
                : try StartReport.daemonise(program: options.program)
        } catch {
            StandardStream.error.write("\(options.program): \(error)\n")
            return KeeperFailure(error).exitCode
        }
        return keep(name, options, report, makeHost)
    }

    private static func keep<Target: TunnelHost & ~Copyable>(
        _ name: InterfaceName, _ options: Options, _ report: consuming StartReport,
        _ makeHost: () throws(KeeperFailure) -> Target
    ) -> UInt8 {
        let manager = ServiceManager()
        Log.open(
            options.isForeground ? .standardError : .system, program: options.program,
            subject: name.description)
        do throws(KeeperFailure) {
            let files = StateFiles(
                directory: options.directory, persistentDirectory: options.persistentDirectory,
                name: name)
            let signals = try asking { () throws(HostError) in
                try EndingSignals(hangupEnds: options.isForeground)
            }
            // It holds private and preshared keys (C94). Commands that it runs are not concerned: execve(2)
            // makes a process dumpable again, see prctl(2).
            try asking { () throws(HostError) in try Host.forbidDumps() }
            let lock = try lock(files)
            files.removeDrafts()
            var loop = try makeLoop(name, options, files, signals, try makeHost())
            try loop.start()
            manager.notify("READY=1")
            // Nobody waits any more: whoever started this gave up, but what is kept is kept.
            _ = report.ready()
            let end = loop.run()
            manager.notify("STOPPING=1")
            log(end, name)
            _ = consume lock
            return 0
        } catch {
            report.fail(code: error.exitCode, error.message)
            return error.exitCode
        }
    }

    private static func lock(_ files: StateFiles) throws(KeeperFailure) -> FileLock {
        try asking { () throws(HostError) in
            try HostFile.makeDirectory(files.directory, permissions: 0o755)
            return try FileLock.take(files.lockPath)
        }
    }

    private static func makeLoop<Target: TunnelHost & ~Copyable>(
        _ name: InterfaceName, _ options: Options, _ files: StateFiles,
        _ signals: consuming EndingSignals, _ target: consuming Target
    ) throws(KeeperFailure) -> KeeperLoop<Target> {
        let group = Host.group(named: options.group)
        let listener = try asking { () throws(HostError) in try Listener.open(files.socketPath) }
        if let group {
            try asking { () throws(HostError) in
                try HostFile.share(files.socketPath, withGroup: group)
            }
        }
        return try KeeperLoop(
            name: name, files: files, group: group, waits: options.waits, target: target,
            listener: listener, signals: signals)
    }

    private static func log<Target: TunnelHost & ~Copyable>(
        _ end: KeeperLoop<Target>.End, _ name: InterfaceName
    ) {
        switch end {
        case .signal(let number):
            Log.write(.info, "ending by signal \(number); \(name) stays as it is")
        case .socketRemoved:
            Log.write(.warning, "the socket was removed: ending; \(name) stays as it is")
        case .done: Log.write(.info, "ending: nothing is left to keep")
        }
    }
}

/// Errors of the host as the keeper's.
func asking<Value: ~Copyable>(
    _ body: () throws(HostError) -> Value
) throws(KeeperFailure) -> Value {
    do throws(HostError) {
        return try body()
    } catch {
        throw KeeperFailure(error)
    }
}
