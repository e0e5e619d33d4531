// SPDX-License-Identifier: Apache-2.0
import HostProcess
import TunnelEngine

/// The program's life in order: read the arguments, go to the background, open everything that
/// needs rights, give the rights up, start the threads, tell that it is ready, serve, undo.
enum Program {
    /// How long an engine that is ending may take, in milliseconds.
    private static let endingLimit: Int64 = 2_000

    /// Returns the exit code.
    static func main() -> UInt8 {
        do throws(Failure) {
            var settings = try Settings(arguments: try arguments())
            switch settings.request {
            case .help:
                StandardStream.output.write(helpText())
                return ExitCode.ok
            case .version:
                StandardStream.output.write("\(programName) \(programVersion)\n")
                return ExitCode.ok
            case .bench:
                StandardStream.output.write(try bench(settings))
                return ExitCode.ok
            case .run:
                try takeOverDescriptors(&settings)
                return run(settings, try detach(settings))
            }
        } catch {
            StandardStream.error.write("\(programName): \(error.message)\n")
            return error.code
        }
    }

    /// Without the program's name.
    private static func arguments() throws(Failure) -> [String] {
        // Swift's run-time library reads them from /proc/self/cmdline.
        guard !CommandLine.arguments.isEmpty else {
            throw Failure(
                code: ExitCode.failed,
                "cannot read the command line from /proc/self/cmdline; mount /proc")
        }
        return Array(CommandLine.arguments.dropFirst())
    }

    private static func bench(_ settings: Settings) throws(Failure) -> String {
        do throws(EngineError) {
            return try benchmark(aead: settings.engine.aead, json: settings.json)
        } catch {
            throw Failure(error)
        }
    }

    private static func takeOverDescriptors(_ settings: inout Settings) throws(Failure) {
        let given = [settings.tunDescriptor, settings.uapiDescriptor].compactMap { $0 }
        var moved: ArraySlice<Int32>
        do throws(HostError) {
            moved = try Host.cleanDescriptors(keeping: given)[...]
        } catch {
            throw Failure(error)
        }
        if settings.tunDescriptor != nil { settings.tunDescriptor = moved.popFirst() }
        if settings.uapiDescriptor != nil { settings.uapiDescriptor = moved.popFirst() }
        settings.engine.tunDescriptor = settings.tunDescriptor
    }

    private static func detach(_ settings: Settings) throws(Failure) -> StartReport {
        guard !settings.foreground else { return StartReport.foreground(program: programName) }
        do throws(HostError) {
            return try StartReport.daemonise(program: programName)
        } catch {
            throw Failure(error)
        }
    }

    private static func run(_ settings: Settings, _ report: consuming StartReport) -> UInt8 {
        let manager = ServiceManager()
        Log.open(
            settings.foreground ? .standardError : .system, program: programName,
            subject: settings.engine.name)
        do throws(Failure) {
            var server = try start(settings) { name in
                follow(name, settings)
                manager.notify("STATUS=\(status(of: name, settings))")
            }
            manager.notify("READY=1\nSTATUS=\(status(of: settings.engine.name, settings))")
            guard report.ready() else { return ExitCode.failed }
            let end = server.run()
            manager.notify("STOPPING=1")
            logEnd(end, settings)
            server.end()
            return ExitCode.ok
        } catch {
            report.fail(code: error.code, error.message)
            return error.code
        }
    }

    /// Everything is undone by the owners when this throws.
    private static func start(
        _ given: Settings, renamed: @escaping (String) -> Void
    ) throws(Failure) -> Server {
        var settings = given
        do {
            let signals = try EndingSignals(hangupEnds: settings.foreground)
            try requireNoOther(settings)
            let engine = try makeEngine(settings)
            settings.engine.name = engine.name  // a device handed in has a name of its own
            let control =
                if let given = settings.uapiDescriptor {
                    try Listener.adopt(given)
                } else {
                    try Listener.open(settings.controlPath)
                }
            let state = try Listener.open(settings.statePath)
            let confinement = try Confinement.enter(
                removableDirectories: socketDirectories(settings))
            try engine.start()
            log(confinement, settings)
            return Server(
                engine: engine, control: control, state: state, signals: signals, renamed: renamed)
        } catch let error as HostError {
            throw Failure(error)
        } catch let error as EngineError {
            throw Failure(error)
        } catch let error as Failure {
            throw error
        } catch {
            throw Failure(code: ExitCode.failed, "\(error)")
        }
    }

    /// Throws when an engine of this name runs. One whose control socket was removed is ending and
    /// gets the time: its state socket goes last, after the device.
    private static func requireNoOther(_ settings: Settings) throws(HostError) {
        let deadline = Host.monotonicMilliseconds() + endingLimit
        var pause = Poller()
        while true {
            if settings.uapiDescriptor == nil { try Listener.probe(settings.controlPath) }
            do throws(HostError) {
                return try Listener.probe(settings.statePath)
            } catch {
                guard error.kind == .busy, Host.monotonicMilliseconds() < deadline else {
                    throw error
                }
                pause.wait(milliseconds: 10)
            }
        }
    }

    private static func makeEngine(_ settings: Settings) throws -> Engine {
        guard settings.tunDescriptor != nil || Confinement.hasNetAdmin else {
            throw Failure(
                code: ExitCode.noPermission,
                "cannot make the device \(settings.engine.name): CAP_NET_ADMIN is missing; run as "
                    + "root, or hand in a device by WG_TUN_FD")
        }
        let engine = try Engine(options: settings.engine)
        if let level = settings.logLevel {
            engine.setLog(level: level) { level, line in Log.write(Log.Priority(level), line) }
        }
        return engine
    }

    /// Where names of ours must be removed at the end.
    private static func socketDirectories(_ settings: Settings) -> [String] {
        let made =
            settings.uapiDescriptor == nil
            ? [settings.controlPath, settings.statePath] : [settings.statePath]
        return made.map { path in
            let directory = path[..<(path.lastIndex(of: "/") ?? path.startIndex)]
            return directory.isEmpty ? "/" : String(directory)
        }
    }
}

// MARK: log

private func log(_ confinement: Confinement, _ settings: Settings) {
    guard let level = settings.logLevel, level >= .info else { return }
    let landlock = confinement.landlockABI.map { "Landlock ABI \($0)" } ?? "without Landlock"
    let bounding = confinement.isBoundingSetEmpty ? "" : ", bounding set kept: no CAP_SETPCAP"
    Log.write(.info, "confined: seccomp, \(landlock)\(bounding)")
}

/// The unit of an engine keeps the name that it began with: so its log and its status say which tunnel
/// it is.
private func follow(_ name: String, _ settings: Settings) {
    Log.rename(name)
    guard let level = settings.logLevel, level >= .info else { return }
    Log.write(.info, "the engine that began as \(settings.engine.name) has this tunnel now")
}

/// A line of `systemctl status`.
private func status(of name: String, _ settings: Settings) -> String {
    let first = settings.engine.name
    return name == first ? "tunnel \(name)" : "tunnel \(name), begun as \(first)"
}

private func logEnd(_ end: Server.End, _ settings: Settings) {
    guard let level = settings.logLevel, level >= .info else { return }
    let reason =
        switch end {
        case .signal(let number): "signal \(number)"
        case .deviceGone: "the device is gone"
        case .socketRemoved: "the control socket was removed"
        }
    Log.write(.info, "ending: \(reason)")
}

extension Log.Priority {
    fileprivate init(_ level: LogLevel) {
        self =
            switch level {
            case .error: .error
            case .info: .info
            case .debug: .debug
            }
    }
}

// MARK: exit codes

extension Failure {
    fileprivate init(_ error: HostError) {
        self.init(code: ExitCode.of(error.kind), error.description)
    }

    fileprivate init(_ error: EngineError) {
        self.init(code: ExitCode.of(ErrorKind(errno: error.errno)), error.message)
    }
}

extension ExitCode {
    fileprivate static func of(_ kind: ErrorKind) -> UInt8 {
        switch kind {
        case .noPermission: noPermission
        case .busy: busy
        case .other: failed
        }
    }
}
