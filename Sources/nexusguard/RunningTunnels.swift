// SPDX-License-Identifier: Apache-2.0
import Backends
import HostProcess
import TunnelPlan
import WireGuard

/// The tunnels that answer on this host, whoever made them.
enum RunningTunnels {
    /// Those of the kernel, then in the order of the directory, as wg prints them. A socket nobody
    /// listens on is left alone.
    static func names() -> [InterfaceName] {
        let userspace = UserspaceBackend()
        let sockets = Host.names(in: UserspaceBackend.socketDirectory)
            .filter { $0.hasSuffix(".sock") }.compactMap { InterfaceName(String($0.dropLast(5))) }
        return kernelNames() + sockets.filter { userspace.isAnswered($0) }
    }

    private static func kernelNames() -> [InterfaceName] { (try? KernelBackend().names()) ?? [] }

    static func snapshot(_ name: InterfaceName) throws(Failure) -> DeviceSnapshot {
        try asking(name) { backend throws(BackendError) in try backend.snapshot(name) }
    }

    static func apply(
        _ device: DeviceChange, _ peers: [PeerChange], to name: InterfaceName
    ) throws(Failure) {
        try asking(name) { backend throws(BackendError) in
            try backend.apply(name, device: device, peers: peers, replacePeers: false)
        }
    }

    private static func asking<Answer>(
        _ name: InterfaceName, _ question: (any Backend) throws(BackendError) -> Answer
    ) throws(Failure) -> Answer {
        let isOfKernel = kernelNames().contains(name)
        do throws(BackendError) {
            return try isOfKernel ? question(KernelBackend()) : question(UserspaceBackend())
        } catch {
            guard error.kind != .notRunning else {
                throw Failure(
                    code: ExitCode.notRunning,
                    "\(name) does not run; \(programName) show interfaces lists what does")
            }
            throw Failure(error)
        }
    }
}

/// A tunnel's name as the command line has it.
func interfaceName(_ text: String) throws(Failure) -> InterfaceName {
    guard let name = InterfaceName(text) else {
        throw .usage("\(quoted(text)) is not the name of an interface")
    }
    return name
}

extension Failure {
    init(_ error: BackendError) {
        let code =
            switch error.kind {
            case .permission: ExitCode.noPermission
            case .notRunning: ExitCode.notRunning
            case .taken: ExitCode.busy
            case .unavailable, .refused, .timeout, .other: ExitCode.failed
            }
        self.init(code: code, error.message)
    }
}
