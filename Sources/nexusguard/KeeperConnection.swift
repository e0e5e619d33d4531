// SPDX-License-Identifier: Apache-2.0
import HostProcess
import Keeper
import LiveHost
import TunnelPlan

/// Whether a keeper is started when none answers.
enum KeeperStart {
    case never
    /// Where a keeper that has gone left a tunnel: the next one takes it over.
    case whereLeft
    /// Where nobody asks it for anything, it ends soon.
    case always
    /// It waits for a configuration as long as it takes, and brings up the one that was kept for it.
    case toStay
}

/// How often a keeper is asked that ends before it answers, and the pause between, in milliseconds.
private let attempts = 10
private let pause: Int64 = 50

/// Asks the keeper of `name`. One that answered `down` to somebody else ends, and may take a
/// connection with it; one may be killed. Its successor is asked then: what is asked says what
/// should be, so it may be asked twice.
func askKeeper<Answer>(
    _ name: InterfaceName, _ start: KeeperStart,
    _ question: (inout KeeperClient) throws(KeeperFailure) -> Answer
) throws(Failure) -> Answer {
    for _ in 1..<attempts {
        do throws(KeeperFailure) {
            return try askOnce(name, start, question)
        } catch {
            guard error.kind == .notRunning, mayStart(name, start) else { throw Failure(error) }
        }
        var nothing = Poller()
        nothing.wait(milliseconds: pause)
    }
    do throws(KeeperFailure) {
        return try askOnce(name, start, question)
    } catch {
        throw Failure(error)
    }
}

private func askOnce<Answer>(
    _ name: InterfaceName, _ start: KeeperStart,
    _ question: (inout KeeperClient) throws(KeeperFailure) -> Answer
) throws(KeeperFailure) -> Answer {
    var client = try connect(name, start)
    return try question(&client)
}

private func connect(
    _ name: InterfaceName, _ start: KeeperStart
) throws(KeeperFailure) -> KeeperClient {
    do throws(KeeperFailure) {
        return try KeeperClient.connect(name)
    } catch {
        guard error.kind == .notRunning, mayStart(name, start) else { throw error }
    }
    try startKeeper(name, waits: start == .toStay)
    return try KeeperClient.connect(name)
}

private func mayStart(_ name: InterfaceName, _ start: KeeperStart) -> Bool {
    start == .always || start == .toStay || start == .whereLeft && isLeft(name)
}

/// Whether a keeper has left a tunnel of that name.
private func isLeft(_ name: InterfaceName) -> Bool {
    let directory = KeeperProgram.Options().directory
    return HostFile.exists("\(directory)/\(name).conf")
        || HostFile.exists("\(directory)/\(name).pending")
}

/// How long it may take to become ready, in milliseconds.
private let startLimit: Int64 = 30_000

/// Returns when it answers. As a unit of systemd, or else it goes to the background by itself; either
/// way it outlives this process.
private func startKeeper(_ name: InterfaceName, waits: Bool) throws(KeeperFailure) {
    guard Confinement.hasNetAdmin else {
        throw KeeperFailure(
            .permission,
            "cannot start the keeper of \(name): CAP_NET_ADMIN is missing; run as root, or add the "
                + "capability to the unit or container")
    }
    // Tests and developers choose their programs.
    if Host.environment("NEXUSGUARD_ENGINE") == nil, try KeeperUnit.start(name, limit: startLimit) {
        return
    }
    guard let program = Host.programPath else {
        throw KeeperFailure(.failed, "cannot start the keeper of \(name): mount /proc")
    }
    let (end, output) = try run(
        program, ["keep"] + (waits ? [] : ["--brief"]) + [name.description])
    switch end {
    // 8: another one was faster. It is asked then.
    case .exited(ExitCode.ok)?, .exited(ExitCode.busy)?: return
    case .exited(let code)?:
        let kind: KeeperFailure.Kind = code == ExitCode.noPermission ? .permission : .failed
        throw KeeperFailure(kind, "the keeper of \(name) did not start: \(reason(output))")
    case .killed(let signal)?:
        throw KeeperFailure(
            .failed, "the keeper of \(name) was ended by signal \(signal) at its start")
    case nil:
        throw KeeperFailure(
            .failed, "the keeper of \(name) was not ready in \(startLimit / 1000) s; see its log")
    }
}

/// The last line that it said, without its own name.
private func reason(_ output: String) -> String {
    guard let line = output.split(separator: "\n").last else { return "see its log" }
    let name = programName + ": "
    return String(line.hasPrefix(name) ? line.dropFirst(name.count) : line)
}

/// nil: it did not end in time, and was ended.
private func run(
    _ program: String, _ arguments: [String]
) throws(KeeperFailure) -> (ChildProcess.End?, output: String) {
    do throws(HostError) {
        var child = try ChildProcess.start(
            program, arguments: arguments, environment: keeperEnvironment())
        let end = child.wait(milliseconds: startLimit)
        if end == nil { child.kill() }
        return (end, child.output())
    } catch {
        throw KeeperFailure(.failed, error.description)
    }
}

/// What the keeper needs of ours: where programs are.
private func keeperEnvironment() -> [String] {
    ["PATH", "NEXUSGUARD_ENGINE"].compactMap { name in
        Host.environment(name).map { "\(name)=\($0)" }
    }
}

extension Failure {
    init(_ error: KeeperFailure) { self.init(code: error.exitCode, error.message) }
}
