// SPDX-License-Identifier: Apache-2.0
import Crypto
import HostNetwork
import HostProcess
import TunnelPlan
import WireGuard

/// `nexusguard-engine`, or another program with its command line and sockets, as wireguard-go.
public struct UserspaceBackend: Backend, Sendable {
    /// Where servers of the configuration protocol listen: IFNAME.sock.
    public static let socketDirectory = "/var/run/wireguard"

    public let kind = BackendKind.userspace
    private let program: String?
    private let directory: String
    private let stateDirectory: String
    private let limits: UAPIClient.Limits

    /// - Parameters:
    ///   - program: path of the engine; nil: see `availability`, which looks for it.
    ///   - directory: of the sockets.
    ///   - stateDirectory: of our engines' state sockets.
    public init(
        program: String? = nil, directory: String = socketDirectory,
        stateDirectory: String = EngineState.socketDirectory,
        limits: UAPIClient.Limits = UAPIClient.Limits()
    ) {
        self.program = program
        self.directory = directory
        self.stateDirectory = stateDirectory
        self.limits = limits
    }

    public func availability() -> BackendAvailability {
        guard Confinement.hasNetAdmin else {
            return .unavailable(
                BackendError(
                    .permission,
                    "this process may not make network devices: it lacks CAP_NET_ADMIN; "
                        + "run it as root, or add the capability to its unit or container"))
        }
        guard HostFile.exists(EngineProgram.tunDevice) else {
            return .unavailable(
                BackendError(
                    .unavailable,
                    "there is no \(EngineProgram.tunDevice); load the module tun, "
                        + "or hand the device to the container"))
        }
        do throws(BackendError) {
            _ = try engine()
            return .available
        } catch {
            return .unavailable(error)
        }
    }

    private func engine() throws(BackendError) -> EngineProgram {
        guard let program else { return try EngineProgram.find() }
        guard Host.isExecutable(program) else {
            throw BackendError(.unavailable, "there is no program at \(program)")
        }
        return EngineProgram(path: program)
    }

    /// Of the sockets somebody answers on.
    public func names() throws(BackendError) -> [InterfaceName] {
        let suffix = ".sock"
        return Host.names(in: directory).filter { $0.hasSuffix(suffix) }
            .compactMap { InterfaceName(String($0.dropLast(suffix.count))) }
            .filter { isAnswered($0) }
            .sorted { $0.description < $1.description }
    }

    /// The unit of an engine whose link was renamed goes on under the name it began with.
    public func isFree(_ name: InterfaceName) -> Bool {
        guard !HostFile.exists(socket(name)), !HostFile.exists(stateSocket(name)) else {
            return false
        }
        guard let unit = ServiceUnits.name(EngineProgram.name, name.description) else {
            return true
        }
        return switch ServiceUnits() {
        case .some(let units): !units.isActive(unit)
        case nil: true
        }
    }

    /// An engine goes on under its socket's new name.
    public func rename(_ name: InterfaceName, to other: InterfaceName) throws(BackendError) {
        do throws(HostError) {
            // Other engines than ours have no second socket.
            for (path, target) in [
                (stateSocket(name), stateSocket(other)), (socket(name), socket(other)),
            ] where HostFile.exists(path) {
                try HostFile.rename(path, to: target)
            }
        } catch {
            throw BackendError(
                error.kind == .noPermission ? .permission : .other,
                "cannot call \(name) \(other): \(error)")
        }
    }

    /// Whether an engine has a tunnel of this name.
    public func isAnswered(_ name: InterfaceName) -> Bool {
        // Nothing is sent: to a server it looks like `wg`, which knocks like this before it speaks.
        (try? Descriptor.connect(socket(name))) != nil
    }

    /// Where systemd runs the machine the engine is a unit: in the control group of whoever asks it
    /// would end with it (C88).
    public func create(_ name: InterfaceName) throws(BackendError) {
        let engine = try engine()
        guard program == nil, !EngineProgram.isChosen, try startUnit(name) else {
            return try engine.start(name, limit: limits.total)
        }
    }

    /// False: there is no such unit here.
    private func startUnit(_ name: InterfaceName) throws(BackendError) -> Bool {
        guard let unit = ServiceUnits.name(EngineProgram.name, name.description) else {
            return false
        }
        switch ServiceUnits() {
        case .some(let units):
            guard units.isKnown(unit) else { return false }
            do throws(NetworkError) {
                try units.start(unit, limit: limits.total)
            } catch {
                throw BackendError(
                    error.kind == .busy ? .timeout : .other,
                    "cannot make \(name): \(error.message)")
            }
            return true
        case nil: return false
        }
    }

    public func snapshot(_ name: InterfaceName) throws(BackendError) -> DeviceSnapshot {
        do throws(UAPIClient.Failure) {
            var device = try client(name).get()
            device.publicKey = device.privateKey?.publicKey
            return device
        } catch {
            throw error.error("read \(name)", path: socket(name))
        }
    }

    /// An engine looks at its link before it says how it is. Other programs have no such socket, and notice
    /// it a moment later.
    public func awaitUp(_ name: InterfaceName) throws(BackendError) {
        do throws(BackendError) {
            _ = try EngineState(name, directory: stateDirectory, milliseconds: limits.idle)
                .document()
        } catch {
            guard error.kind == .notRunning else { throw error }
        }
    }

    /// Servers older than the removal of single prefixes (a leading `-`, 2025) refuse it as invalid:
    /// they are told the prefixes that remain instead.
    public func apply(
        _ name: InterfaceName, device: DeviceChange, peers: [PeerChange], replacePeers: Bool
    ) throws(BackendError) {
        let client = client(name)
        do throws(UAPIClient.Failure) {
            do throws(UAPIClient.Failure) {
                try client.set(device: device, peers: peers, replacePeers: replacePeers)
            } catch {
                guard error == .refused(.invalid), PrefixRemoval.isUsed(in: peers) else {
                    throw error
                }
                let peers = PrefixRemoval.avoided(in: peers, actual: try client.get())
                try client.set(device: device, peers: peers, replacePeers: replacePeers)
            }
        } catch {
            throw error.error("configure \(name)", path: socket(name))
        }
    }

    public func remove(_ name: InterfaceName) throws(BackendError) {
        let client = client(name)
        let deadline = Host.monotonicMilliseconds() + limits.total
        let connection: Descriptor
        do throws(UAPIClient.Failure) {
            connection = try client.connect(deadline)
        } catch {
            if case .connection(let error) = error, error.isNobodyListening { return }
            throw error.error("end \(name)", path: socket(name))
        }
        let process = connection.peerProcess
        do throws(HostError) {
            // Servers end when their socket's name goes (pitfall 62), as wg-quick(8) makes them.
            try HostFile.remove(socket(name))
        } catch {
            throw BackendError(
                error.kind == .noPermission ? .permission : .other, "cannot end \(name): \(error)")
        }
        try awaitEnd(of: connection, name, deadline)
        // What it made goes with its process, after the connection.
        if let process { try wait(for: process, name, deadline) }
    }

    /// The server's end closes the connection that it never read from.
    private func awaitEnd(
        of connection: borrowing Descriptor, _ name: InterfaceName, _ deadline: Int64
    ) throws(BackendError) {
        var buffer = [UInt8](repeating: 0, count: 256)
        while true {
            try wait(for: connection, name, deadline)
            if case .ended = connection.read(into: &buffer) { return }
        }
    }

    /// Until there is something to read.
    private func wait(
        for descriptor: borrowing Descriptor, _ name: InterfaceName, _ deadline: Int64
    ) throws(BackendError) {
        var poller = Poller()
        let entry = poller.add(descriptor.number)
        while !poller.isReadable(entry) {
            let rest = deadline - Host.monotonicMilliseconds()
            guard rest > 0 else {
                throw UAPIClient.Failure.timeout(limits.total)
                    .error("end \(name)", path: socket(name))
            }
            poller.wait(milliseconds: rest)
        }
    }

    /// Of nexusguard-engine(8).
    private func stateSocket(_ name: InterfaceName) -> String { "\(stateDirectory)/\(name).engine" }
    private func socket(_ name: InterfaceName) -> String { "\(directory)/\(name).sock" }
    private func client(_ name: InterfaceName) -> UAPIClient {
        UAPIClient(path: socket(name), limits: limits)
    }
}
