// SPDX-License-Identifier: Apache-2.0
import HostProcess
import TunnelPlan
import WireGuard

/// Speaks to the keeper of one tunnel: one request after the other, each call waits for its answer.
/// Failures are the keeper's own, or `.notRunning` when there is none.
public struct KeeperClient: ~Copyable {
    /// How long an answer may take, in milliseconds: commands of a configuration may take minutes.
    public static let answerLimit: Int64 = 600_000
    /// Bytes of one answer.
    private static let lineLimit = 64 << 20

    private let descriptor: Descriptor
    private let name: InterfaceName
    private var buffer = [UInt8](repeating: 0, count: 65536)
    private var received: [UInt8] = []

    /// Throws `.notRunning` when no keeper answers, `.permission` when this user may not ask.
    public static func connect(
        _ name: InterfaceName, directory: String = KeeperProgram.Options().directory
    ) throws(KeeperFailure) -> KeeperClient {
        let files = StateFiles(directory: directory, name: name)
        let descriptor: Descriptor
        do throws(HostError) {
            descriptor = try Descriptor.connect(files.socketPath)
        } catch {
            guard error.isNobodyListening else { throw KeeperFailure(error) }
            throw KeeperFailure(
                .notRunning, "\(name) is not running: no keeper answers on \(files.socketPath)")
        }
        // Others may make files beside the keepers', and a configuration has keys (C96).
        guard let peer = descriptor.localPeer, peer.isRoot || peer.isSelf else {
            throw KeeperFailure(
                .permission,
                "\(files.socketPath) is not a keeper's: another user than root listens there; "
                    + "remove it")
        }
        return KeeperClient(descriptor, name)
    }

    private init(_ descriptor: consuming Descriptor, _ name: InterfaceName) {
        self.descriptor = descriptor
        self.name = name
    }

    // MARK: requests

    /// What is asked of `apply`.
    public struct ApplyOptions: Sendable {
        /// Only say what would be done.
        public var isDryRun = false
        /// 1 to 86400: without `confirm` in so many seconds the former state comes back.
        public var confirmSeconds: UInt32?
        /// nil: whoever moves the packets now, or the best there is.
        public var backend: BackendKind?
        /// A new link, of a new engine, takes the place of the one there is.
        public var renewsLink = false
        public var hooks = HookPolicy.refuse
        /// Accept what wg(8) accepts.
        public var isLenient = false
        /// Like the configuration, all that is wanted: what is not named any more goes.
        public var forwards: [PortForward] = []
        /// What comes out of the tunnel leaves by other links under their address.
        public var masquerades = false
        /// Peers reach each other through this host: the kernel forwards packets.
        public var forwardsBetweenPeers = false
        /// See `Gateway`.
        public var answersThroughTunnel = false
        /// A keeper that starts with the machine brings it up, before anybody asks. It stays so until
        /// `down`.
        public var isPersistent = false
        public init() {}

        var gateway: Gateway {
            var gateway = Gateway()
            gateway.forwards = forwards
            gateway.masquerades = masquerades
            gateway.forwardsBetweenPeers = forwardsBetweenPeers
            gateway.answersThroughTunnel = answersThroughTunnel
            return gateway
        }
    }

    /// `configuration`: the text of a file. It is erased.
    public mutating func apply(
        _ configuration: consuming [UInt8], options: ApplyOptions = ApplyOptions()
    ) throws(KeeperFailure) -> AppliedReport {
        var configuration = configuration
        var request = RequestText.apply(configuration, options)
        erase(&configuration)
        defer { erase(&request) }
        return try ask(&request).applied
    }

    public mutating func confirm() throws(KeeperFailure) { _ = try ask("confirm") }

    /// Returns when nothing of the tunnel is left. `staysPersistent`: one that comes back with the
    /// machine still does; otherwise that ends too.
    public mutating func down(staysPersistent: Bool = false) throws(KeeperFailure) {
        var request = RequestText.down(staysPersistent: staysPersistent)
        _ = try ask(&request)
    }

    public mutating func status() throws(KeeperFailure) -> KeeperStatus {
        let answer = try ask("status")
        guard let status = answer.status else { throw incomprehensible("it has no status") }
        return status
    }

    /// What `wg show IFNAME dump` tells, without its secrets; nil: there is no device.
    public mutating func deviceState() throws(KeeperFailure) -> DeviceState? {
        try ask("device").device
    }

    /// From now on `nextEvent` gets what the keeper does.
    public mutating func hearEvents() throws(KeeperFailure) { _ = try ask("events") }

    /// nil: none came in `milliseconds`. Throws `.notRunning` when the keeper has ended.
    public mutating func nextEvent(
        milliseconds: Int64
    ) throws(KeeperFailure) -> KeeperEvent? {
        guard let line = try readLine(deadline: Host.monotonicMilliseconds() + milliseconds) else {
            return nil
        }
        let answer = try parse(line)
        guard let event = answer.event else { throw incomprehensible("it is no event") }
        return event
    }

    // MARK: one exchange

    private mutating func ask(_ verb: String) throws(KeeperFailure) -> ReceivedAnswer {
        var request = RequestText.plain(verb)
        return try ask(&request)
    }

    private mutating func ask(_ request: inout [UInt8]) throws(KeeperFailure) -> ReceivedAnswer {
        let deadline = Host.monotonicMilliseconds() + Self.answerLimit
        do throws(KeeperFailure) {
            try write(request, deadline: deadline)
        } catch {
            // Who is not let in is told so before anything is read of it.
            if let line = try? readLine(deadline: 0), let failure = try? parse(line).failure {
                throw failure
            }
            throw error
        }
        guard let line = try readLine(deadline: deadline) else {
            throw KeeperFailure(
                .failed,
                "the keeper of \(name) gave no answer in \(Self.answerLimit / 1000) s; see its log")
        }
        let answer = try parse(line)
        if let failure = answer.failure { throw failure }
        return answer
    }

    private func write(_ bytes: [UInt8], deadline: Int64) throws(KeeperFailure) {
        var written = 0
        var poller = Poller()
        while written < bytes.count {
            guard let count = descriptor.write(bytes, from: written) else { throw ended }
            written += count
            guard count == 0 else { continue }
            let rest = deadline - Host.monotonicMilliseconds()
            guard rest > 0 else {
                throw KeeperFailure(.failed, "the keeper of \(name) takes no request; see its log")
            }
            poller.removeAll()
            poller.add(descriptor.number, read: false, write: true)
            poller.wait(milliseconds: rest)
        }
    }

    /// nil: the time is over.
    private mutating func readLine(deadline: Int64) throws(KeeperFailure) -> [UInt8]? {
        var searched = 0
        var poller = Poller()
        while true {
            if let newline = received[searched...].firstIndex(of: 0x0A) {
                let line = Array(received[..<newline])
                received.removeFirst(newline + 1)
                return line
            }
            searched = received.count
            guard searched < Self.lineLimit else { throw incomprehensible("it has no end") }
            switch descriptor.read(into: &buffer) {
            case .bytes(let count): received += buffer[..<count]
            case .ended: throw ended
            case .empty:
                let rest = deadline - Host.monotonicMilliseconds()
                guard rest > 0 else { return nil }
                poller.removeAll()
                poller.add(descriptor.number)
                poller.wait(milliseconds: rest)
            }
        }
    }

    private func parse(_ line: [UInt8]) throws(KeeperFailure) -> ReceivedAnswer {
        do throws(JSONError) {
            return try ReceivedAnswer(line)
        } catch {
            throw incomprehensible("byte \(error.offset): \(error.reason)")
        }
    }

    private var ended: KeeperFailure {
        KeeperFailure(
            .notRunning,
            "the keeper of \(name) has ended; the tunnel may go on, see its log and start it again")
    }

    private func incomprehensible(_ why: String) -> KeeperFailure {
        KeeperFailure(
            .failed,
            "cannot understand the keeper of \(name): \(why); use programs of one version")
    }
}

/// What `apply` or `plan` led to.
public struct AppliedReport: Equatable, Sendable {
    /// Only planned, not done.
    public var isPlan = false
    /// One line each, in the order of the steps; empty: nothing was to be done.
    public var changes: [String] = []
    public var warnings: [String] = []
    /// Seconds until the former state comes back.
    public var confirmSeconds: UInt64?
    /// The answer as it came: one line of JSON in UTF-8, described in docs/keeper.md.
    public var json: [UInt8] = []
}
