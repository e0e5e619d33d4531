// SPDX-License-Identifier: Apache-2.0
import HostProcess
import TunnelPlan

/// The program that moves packets outside the kernel: found and started here. It goes to the
/// background by itself, in a session of its own, and outlives whoever started it.
struct EngineProgram: Sendable {
    static let name = "nexusguard-engine"
    /// What else it needs. wireguard-go warns where it is missing and then cannot start.
    static let tunDevice = "/dev/net/tun"
    private static let searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    /// Exit codes of nexusguard-engine(8).
    private static let noPermission: UInt8 = 4
    private static let busy: UInt8 = 8

    let path: String

    /// Somebody says which program it is.
    static var isChosen: Bool { Host.environment("NEXUSGUARD_ENGINE") != nil }

    /// $NEXUSGUARD_ENGINE, else beside the running program, else in $PATH. Throws where it was
    /// looked for.
    static func find() throws(BackendError) -> EngineProgram {
        if let path = Host.environment("NEXUSGUARD_ENGINE") {
            guard Host.isExecutable(path) else {
                throw BackendError(
                    .unavailable, "NEXUSGUARD_ENGINE: there is no program at \(path)")
            }
            return EngineProgram(path: path)
        }
        let beside = Host.programPath.flatMap { path in
            path.lastIndex(of: "/").map { String(path[..<$0]) }
        }
        let directories = [beside].compactMap { $0 } + searchDirectories()
        for directory in directories {
            let path = "\(directory)/\(name)"
            if Host.isExecutable(path) { return EngineProgram(path: path) }
        }
        throw BackendError(
            .unavailable,
            "there is no \(name) beside this program or in PATH; install it, or set NEXUSGUARD_ENGINE"
        )
    }

    /// A relative entry would mean another program in another directory.
    private static func searchDirectories() -> [String] {
        (Host.environment("PATH") ?? searchPath).split(separator: ":").map(String.init)
            .filter { $0.hasPrefix("/") }
    }

    /// Returns when the device exists and its socket answers. `limit` in milliseconds.
    func start(_ interface: InterfaceName, limit: Int64) throws(BackendError) {
        var child: ChildProcess
        do throws(HostError) {
            // Nothing of ours: a NOTIFY_SOCKET or LOG_LEVEL is not meant for it.
            child = try ChildProcess.start(
                path, arguments: [interface.description],
                environment: ["PATH=\(Self.searchPath)"])
        } catch {
            throw BackendError(.unavailable, "cannot make \(interface): \(error)")
        }
        switch child.wait(milliseconds: limit) {
        case .exited(0): return
        case .exited(let code): throw failure(interface, code, child.output())
        case .killed(let signal):
            throw BackendError(
                .other, "cannot make \(interface): \(path) was ended by signal \(signal)")
        case nil:
            // Its background half sees that nobody waits any more and undoes what it made.
            child.kill()
            throw BackendError(
                .timeout, "cannot make \(interface): \(path) was not ready after \(limit) ms")
        }
    }

    private func failure(
        _ interface: InterfaceName, _ code: UInt8, _ output: String
    ) -> BackendError {
        let kind: BackendError.Kind =
            switch code {
            case Self.noPermission: .permission
            case Self.busy: .taken
            default: .other
            }
        let why = output.split(separator: "\n").last.map(String.init) ?? "it gave no reason"
        return BackendError(kind, "cannot make \(interface): \(why) (exit code \(code) of \(path))")
    }
}

extension UserspaceBackend {
    /// Where the engine is; throws where it was looked for.
    public static func programPath() throws(BackendError) -> String {
        try EngineProgram.find().path
    }
}
