// SPDX-License-Identifier: Apache-2.0
import HostProcess
import TunnelEngine

/// One row of the option table. A row without `argument` is a switch: the command line turns it on,
/// the environment says 1 or 0.
struct Option: Sendable {
    let long: String
    var short: Character?
    var argument: String?
    var environment: String?
    /// Works whatever else the command line or the environment says.
    var standsAlone = false
    let help: String
    /// Switches get "1" or "0". The second text names where the value comes from.
    let apply: @Sendable (inout Settings, _ value: String, _ origin: String) throws(Failure) -> Void
}

let options: [Option] = [
    Option(
        long: "foreground", short: "f", environment: "WG_PROCESS_FOREGROUND",
        help: "stay in the foreground, log to standard error"
    ) { settings, value, origin throws(Failure) in
        settings.foreground = try flag(value, origin)
    },
    Option(
        long: "workers", argument: "N", environment: "NEXUSGUARD_WORKERS",
        help: "worker pairs, 1 to 64; 0 (default): half the CPUs"
    ) { settings, value, origin throws(Failure) in
        settings.engine.workers = try number(value, 0...64, origin)
    },
    Option(
        long: "mtu", argument: "N", environment: "NEXUSGUARD_MTU",
        help: "MTU of the device, 68 to 65535; default 1420"
    ) { settings, value, origin throws(Failure) in
        settings.engine.mtu = try number(value, 68...65535, origin)
    },
    Option(
        long: "aead", argument: "NAME", environment: "NEXUSGUARD_AEAD",
        help: "\(aeadNames); default: the fastest"
    ) { settings, value, origin throws(Failure) in
        guard EngineOptions.aeadNames.contains(value) else {
            throw .usage("\(origin): \(quoted(value)) is not \(aeadNames)")
        }
        settings.engine.aead = value
    },
    Option(
        long: "spin", argument: "MICROSECONDS", environment: "NEXUSGUARD_SPIN",
        help: "wait so long without sleep after a packet, at most 100000; default 0"
    ) { settings, value, origin throws(Failure) in
        settings.engine.spin = try number(value, 0...EngineOptions.maximumSpin, origin)
    },
    ladderSwitch("no-vnet-hdr", .noVnetHeader, "no TUN offloads at all"),
    ladderSwitch("no-tun-gso", .noTunGSO, "no super-packets from the TUN device"),
    ladderSwitch("no-tun-uso", .noTunUSO, "no UDP super-packets from the TUN device"),
    ladderSwitch("no-tun-merge", .noTunMerge, "write every packet to the TUN device by itself"),
    ladderSwitch("no-tun-udp-merge", .noTunUDPMerge, "merge TCP only"),
    ladderSwitch("no-udp-gso", .noUDPGSO, "no segmentation offload when sending"),
    ladderSwitch("no-udp-gro", .noUDPGRO, "no receive offload"),
    ladderSwitch("no-sendmmsg", .noSendmmsg, "one system call per packet sent"),
    ladderSwitch("no-steering", .noSteering, "no steering of flows to workers"),
    Option(
        long: "state-socket", argument: "PATH", environment: "NEXUSGUARD_STATE_SOCKET",
        help: "default /run/nexusguard/IFNAME.engine"
    ) { settings, value, origin throws(Failure) in
        guard value.hasPrefix("/") else {
            throw .usage("\(origin): \(quoted(value)) is not an absolute path")
        }
        settings.stateSocket = value
    },
    Option(long: "bench", help: "measure the engine on this machine for a few seconds and exit") {
        settings, _, _ throws(Failure) in
        settings.request = .bench
    },
    Option(long: "json", help: "with --bench: as JSON") { settings, _, _ throws(Failure) in
        settings.json = true
    },
    Option(long: "version", standsAlone: true, help: "print the version and exit") {
        settings, _, _ throws(Failure) in
        settings.request = .version
    },
    Option(long: "help", short: "h", standsAlone: true, help: "print this text and exit") {
        settings, _, _ throws(Failure) in
        settings.request = .help
    },
]

/// Variables of the reference implementation that have no option.
private struct Variable: Sendable {
    let name: String
    let argument: String
    let help: String
    let apply: @Sendable (inout Settings, _ value: String) throws(Failure) -> Void
}

private let variables: [Variable] = [
    Variable(
        name: "LOG_LEVEL", argument: "LEVEL", help: "verbose, debug, info (default), error, silent"
    ) {
        settings, value throws(Failure) in
        switch value {
        case "verbose", "debug": settings.logLevel = .debug
        case "info": settings.logLevel = .info
        case "error": settings.logLevel = .error
        case "silent": settings.logLevel = nil
        default:
            throw .usage(
                "LOG_LEVEL: \(quoted(value)) is not verbose, debug, info, error or silent")
        }
    },
    Variable(name: "WG_TUN_FD", argument: "FD", help: "take over this TUN descriptor") {
        settings, value throws(Failure) in
        settings.tunDescriptor = try descriptor(value, "WG_TUN_FD")
    },
    Variable(name: "WG_UAPI_FD", argument: "FD", help: "take over this listening UAPI socket") {
        settings, value throws(Failure) in
        settings.uapiDescriptor = try descriptor(value, "WG_UAPI_FD")
    },
]

private let aeadNames =
    EngineOptions.aeadNames.dropLast().joined(separator: ", ") + " or "
    + (EngineOptions.aeadNames.last ?? "")

private func ladderSwitch(
    _ long: String, _ rung: EngineOptions.Switches, _ help: String
) -> Option {
    let environment = "NEXUSGUARD_" + long.uppercased().split(separator: "-").joined(separator: "_")
    return Option(long: long, environment: environment, help: help) {
        settings, value, origin throws(Failure) in
        if try flag(value, origin) {
            settings.engine.switches.insert(rung)
        } else {
            settings.engine.switches.remove(rung)
        }
    }
}

// MARK: values

private func flag(_ value: String, _ origin: String) throws(Failure) -> Bool {
    switch value {
    case "1": true
    case "0": false
    default: throw .usage("\(origin): \(quoted(value)) is not 1 or 0")
    }
}

private func number(
    _ value: String, _ range: ClosedRange<UInt32>, _ origin: String
) throws(Failure) -> UInt32 {
    // UInt32.init takes a sign; a plain number has none.
    guard value.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
        let number = UInt32(value), range.contains(number)
    else {
        throw .usage(
            "\(origin): \(quoted(value)) is not a number from \(range.lowerBound) to "
                + "\(range.upperBound)")
    }
    return number
}

private func descriptor(_ value: String, _ name: String) throws(Failure) -> Int32 {
    let number = Int32(try number(value, 0...UInt32(Int32.max), name))
    guard Host.isOpen(number) else { throw .usage("\(name): descriptor \(number) is not open") }
    return number
}

// MARK: the command line

extension Settings {
    /// The environment first, so that the command line has the last word.
    init(arguments: [String]) throws(Failure) {
        let (given, names) = try split(arguments)
        for (option, _, _) in given where option.standsAlone {
            try option.apply(&self, "1", "")
            return
        }
        for option in options {
            guard let name = option.environment, let value = Host.environment(name) else {
                continue
            }
            try option.apply(&self, value, name)
        }
        for variable in variables {
            guard let value = Host.environment(variable.name) else { continue }
            try variable.apply(&self, value)
        }
        for (option, value, origin) in given { try option.apply(&self, value, origin) }

        if request == .bench {
            guard names.isEmpty else {
                throw .usage("\(quoted(names[0])): --bench has no interface")
            }
            return
        }
        guard !json else { throw .usage("--json goes with --bench") }
        guard let name = names.first else { throw .usage("the interface's name is missing") }
        guard names.count == 1 else { throw .usage("\(quoted(names[1])): one interface is enough") }
        guard isInterfaceName(name) else {
            throw .usage(
                "\(quoted(name)) is not an interface name: 1 to 15 characters of a-zA-Z0-9_=+.-")
        }
        engine.name = name
        engine.version = programVersion
    }
}

private typealias GivenOption = (option: Option, value: String, origin: String)

/// As getopt_long(3) reads it, abbreviations aside: `--name VALUE`, `--name=VALUE`, `-f`, `--`;
/// options may follow the name.
private func split(
    _ arguments: [String]
) throws(Failure) -> (options: [GivenOption], names: [String]) {
    var given: [GivenOption] = []
    var names: [String] = []
    var rest = arguments[...]
    while let argument = rest.popFirst() {
        if argument == "--" {
            names.append(contentsOf: rest)
            break
        } else if argument.hasPrefix("--") {
            given.append(try longOption(argument, &rest))
        } else if argument.hasPrefix("-") && argument != "-" {
            for letter in argument.dropFirst() { given.append(try shortOption(letter)) }
        } else {
            names.append(argument)
        }
    }
    return (given, names)
}

private func longOption(
    _ argument: String, _ rest: inout ArraySlice<String>
) throws(Failure) -> GivenOption {
    let parts = argument.dropFirst(2).split(
        separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard let option = options.first(where: { $0.long == parts[0] }) else {
        throw .usage("\(quoted(argument)): no such option")
    }
    let origin = "--\(option.long)"
    if option.argument == nil {
        guard parts.count == 1 else { throw .usage("\(origin) takes no value") }
        return (option, "1", origin)
    }
    if parts.count == 2 { return (option, String(parts[1]), origin) }
    guard let value = rest.popFirst() else { throw .usage("\(origin) needs a value") }
    return (option, value, origin)
}

private func shortOption(_ letter: Character) throws(Failure) -> GivenOption {
    guard let option = options.first(where: { $0.short == letter }) else {
        throw .usage("\(quoted("-\(letter)")): no such option")
    }
    return (option, "1", "-\(letter)")
}

// MARK: help

func helpText() -> String {
    let rows = options.map { option in
        let short = option.short.map { "-\($0), " } ?? "    "
        return (short + "--\(option.long)" + (option.argument.map { " \($0)" } ?? ""), option.help)
    }
    let optionVariables = options.compactMap { option in
        option.environment.map { ("\($0)=\(option.argument ?? "1")", "as --\(option.long)") }
    }
    let otherVariables = variables.map { ("\($0.name)=\($0.argument)", $0.help) }
    return """
        Usage: \(programName) [OPTION]... IFNAME
               \(programName) --bench [--json] [--aead NAME]

        A WireGuard tunnel in userspace: makes the device IFNAME, listens for wg(8) on
        /var/run/wireguard/IFNAME.sock and goes to the background.

        Options:
        \(table(rows))

        Environment:
        \(table(otherVariables + optionVariables))

        Exit codes: 0 ok, 1 failed, 2 usage, 4 no permission, 8 busy (name taken, already running).

        """
}

private func table(_ rows: [(String, String)]) -> String {
    let width = rows.map(\.0.count).max() ?? 0
    return rows.map { left, right in
        "  " + left + String(repeating: " ", count: width - left.count + 2) + right
    }.joined(separator: "\n")
}
