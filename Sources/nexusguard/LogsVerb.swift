// SPDX-License-Identifier: Apache-2.0
import HostProcess
import Storage

let logsVerb = Verb(
    name: "logs", operands: "[clear]", operandCount: 0...1,
    summary: "Show what agent or hub has logged, or remove it.",
    details: """
        Reads the history in the state directory: the agent's, or else the hub's, or the one that
        --state names. TIME is a date with or without a time (UTC), or so long ago: 90s, 10m, 2h,
        7d. Times are shown in UTC. NO_COLOR is respected.
        """,
    options: [
        Option(long: "follow", short: "f", help: "go on with what comes"),
        Option(long: "level", short: "l", argument: "LEVEL", help: levelHelp),
        Option(long: "since", short: "s", argument: "TIME", help: "no older records"),
        Option(long: "lines", short: "n", argument: "N", help: "only the newest N records"),
        Option(long: "json", help: "one JSON object a line"),
        Option(long: "state", argument: "DIR", help: "the state directory"),
    ],
    completes: [.words(["clear"])], run: logs)

private let levelHelp =
    "at least " + LogLevel.allCases.map(\.name).joined(separator: ", ") + " (default info)"

/// Where agent and hub keep their state, unless --state says otherwise.
private let stateDirectories = ["/var/lib/nexusguard/agent", "/var/lib/nexusguard/hub"]

private func logs(_ invocation: Invocation) throws(Failure) -> UInt8 {
    let directory = try stateDirectory(invocation)
    if let word = invocation.operands.first {
        guard word == "clear" else { throw .usage("\(quoted(word)): clear, or nothing") }
        for option in ["follow", "level", "since", "lines", "json"] where invocation.has(option) {
            throw .usage("--\(option): clear removes all records")
        }
        try asking { () throws(StorageError) in try LogHistory.clear(directory) }
        return ExitCode.ok
    }
    let printer = LogPrinter(invocation)
    var query = LogHistory.Query()
    query.minimumLevel = try level(invocation)
    query.since = try since(invocation)
    query.limit = try invocation.number("lines", 0...1_000_000).map(Int.init)
    let isFollowing = invocation.has("follow")
    let (records, last) = try asking { () throws(StorageError) in
        try LogHistory.read(directory, query, mayBeMissing: isFollowing)
    }
    try printer.print(records)
    if records.isEmpty, !isFollowing {
        Output.note(
            "no records yet; what is no warning is written each 30 s, and at once while "
                + "\(programName) logs -f looks", invocation)
    }
    guard isFollowing else { return ExitCode.ok }
    return try follow(directory, after: last, query.minimumLevel, printer)
}

private func follow(
    _ directory: StateDirectory, after last: Int64, _ minimum: LogLevel, _ printer: LogPrinter
) throws(Failure) -> UInt8 {
    let signals = try asking { () throws(HostError) in try EndingSignals(hangupEnds: true) }
    var follower = LogFollower(directory, after: last)
    var poller = Poller()
    let ending = poller.add(signals.descriptor)
    let output = poller.add(StandardStream.output.rawValue, read: false)
    let written = follower.descriptor
    if let written { poller.add(written) }
    let pause = written == nil ? LogFollower.shortestPause : LogFollower.longestPause
    while !poller.isReadable(ending), !poller.isHungUp(output) {
        let records = try asking { () throws(StorageError) in try follower.next(minimum: minimum) }
        try printer.print(records)
        poller.wait(milliseconds: pause)
    }
    return ExitCode.ok
}

private func stateDirectory(_ invocation: Invocation) throws(Failure) -> StateDirectory {
    // A package makes both directories; who has never logged is not meant.
    let found = stateDirectories.filter { HostFile.exists("\($0)/log.db") }
    if invocation.values["state"] == nil, found.count > 1 {
        Output.note("the agent's log; see --state \(found[1]) for the hub's", invocation)
    }
    let path = invocation.values["state"] ?? found.first ?? stateDirectories[0]
    return try asking { () throws(StorageError) in try StateDirectory(existing: path) }
}

private func level(_ invocation: Invocation) throws(Failure) -> LogLevel {
    guard let name = invocation.values["level"] else { return .info }
    guard let level = LogLevel(name: name) else {
        let names = LogLevel.allCases.map(\.name).joined(separator: ", ")
        throw .usage("--level: \(quoted(name)) is none of \(names)")
    }
    return level
}

private func since(_ invocation: Invocation) throws(Failure) -> Int64? {
    guard let text = invocation.values["since"] else { return nil }
    if let moment = UniversalTime.parse(text) { return moment }
    let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
    guard let last = text.last, let seconds = units[last], let count = UInt32(text.dropLast()),
        text.first?.isNumber == true
    else {
        throw .usage(
            "--since: \(quoted(text)) is no time; write 2h or 2026-01-31 or 2026-01-31T23:59:59Z")
    }
    return UniversalTime.now() - Int64(count) * seconds * 1000
}

/// Errors of storage as the command's.
private func asking<Value: ~Copyable>(
    _ body: () throws(StorageError) -> Value
) throws(Failure) -> Value {
    do throws(StorageError) {
        return try body()
    } catch {
        let code = error.kind == .noPermission ? ExitCode.noPermission : ExitCode.failed
        throw Failure(code: code, error.description)
    }
}
