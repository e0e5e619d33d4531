// SPDX-License-Identifier: Apache-2.0
// The keeper's socket, from the client: one JSON object on one line is one request. docs/keeper.md
// describes it.
import TunnelPlan
import WireGuard

public let keeperSchemaVersion: UInt64 = 1

/// Bytes of a request with its newline: a configuration of 16 MiB, its newlines escaped.
let requestLimit = 17 << 20

/// Forwards of one tunnel.
let forwardLimit = 4096

struct ApplyRequest: Sendable {
    /// As in a file. Erased once it is parsed.
    var configuration: [UInt8] = []
    var options = ApplyOptions()
    var backend: BackendKind?
    var hooks = HookPolicy.refuse
    var isLenient = false
    var gateway = Gateway()
    var isPersistent = false
}

enum Request: Sendable {
    case apply(ApplyRequest)
    case confirm
    case status
    case device
    case down(DownOptions)
    case events
}

extension Request {
    /// Reads one line without its newline, and erases it.
    static func parse(_ line: consuming [UInt8]) throws(KeeperFailure) -> Request {
        var fields = Fields()
        defer { erase(&fields.apply.configuration) }
        var reader = JSONReader(line)
        defer { reader.eraseText() }
        do throws(JSONError) {
            try fields.read(&reader)
        } catch {
            throw KeeperFailure(
                .configurationInvalid,
                "cannot read the request: byte \(error.offset): \(error.reason)")
        }
        return try fields.request()
    }

    private struct Fields {
        var schemaVersion: UInt64?
        var verb = ""
        var apply = ApplyRequest()
        var down = DownOptions()
        var hasConfiguration = false
        /// The first thing that is not understood.
        var problem: String?
        private var seen: Set<String> = []

        mutating func read(_ reader: inout JSONReader) throws(JSONError) {
            try reader.beginObject()
            while let key = try reader.nextKey() {
                note(key)
                switch key {
                case "schemaVersion": schemaVersion = try reader.number()
                case "verb": verb = String(decoding: try reader.string(), as: UTF8.self)
                case "configuration":
                    erase(&apply.configuration)
                    apply.configuration = try reader.string()
                    hasConfiguration = true
                case "options": try readOptions(&reader)
                default: try refuse(key, &reader)
                }
            }
            try reader.end()
        }

        private mutating func readOptions(_ reader: inout JSONReader) throws(JSONError) {
            try reader.beginObject()
            while let key = try reader.nextKey() {
                note("options.\(key)")
                switch key {
                case "dryRun": apply.options.isDryRun = try reader.bool()
                case "confirmSeconds": readConfirm(try reader.number())
                case "allowHooks": if try reader.bool() { apply.hooks = .allow }
                case "ignoreHooks": if try reader.bool() { apply.hooks = .ignore }
                case "renewsLink": apply.options.renewsLink = try reader.bool()
                case "lenient": apply.isLenient = try reader.bool()
                case "staysPersistent": down.staysPersistent = try reader.bool()
                case "persistent": apply.isPersistent = try reader.bool()
                case "masquerades": apply.gateway.masquerades = try reader.bool()
                case "forwardsBetweenPeers":
                    apply.gateway.forwardsBetweenPeers = try reader.bool()
                case "answersThroughTunnel":
                    apply.gateway.answersThroughTunnel = try reader.bool()
                case "forwards": try readForwards(&reader)
                case "backend":
                    readBackend(String(decoding: try reader.string(), as: UTF8.self))
                default: try refuse("options.\(key)", &reader)
                }
            }
        }

        /// A name twice has no meaning (RFC 8259 section 4).
        private mutating func note(_ key: String) {
            if !seen.insert(key).inserted { problem = problem ?? "\(named(key)) is given twice" }
        }

        /// What this keeper does not know could be what matters.
        private mutating func refuse(
            _ key: String, _ reader: inout JSONReader
        ) throws(JSONError) {
            problem = problem ?? "\(named(key)) is unknown"
            try reader.skip()
        }

        /// Where a client confuses name and value, the name may be a key.
        private func named(_ key: String) -> String {
            let isPlain = key.utf8.count <= 24 && key.utf8.allSatisfy { 0x21..<0x7F ~= $0 }
            return isPlain ? "\"\(key)\"" : "a member"
        }

        private mutating func readConfirm(_ seconds: UInt64) {
            if 1...86400 ~= seconds {
                apply.options.confirmSeconds = UInt32(seconds)
            } else {
                problem = problem ?? "\"options.confirmSeconds\" is not from 1 to 86400"
            }
        }

        private mutating func readForwards(_ reader: inout JSONReader) throws(JSONError) {
            try reader.beginArray()
            while try reader.nextElement() {
                let count = apply.gateway.forwards.count
                guard let forward = try reader.forward(), count < forwardLimit else {
                    problem =
                        problem
                        ?? "\"options.forwards\": number \(count + 1) is no forward"
                    continue
                }
                apply.gateway.forwards.append(forward)
            }
        }

        private mutating func readBackend(_ text: String) {
            apply.backend = BackendKind(rawValue: text)
            if apply.backend == nil, text != "auto" {
                problem = problem ?? "\"options.backend\" is not auto, kernel or userspace"
            }
        }

        func request() throws(KeeperFailure) -> Request {
            guard schemaVersion == keeperSchemaVersion else {
                let given = schemaVersion.map { "\($0)" } ?? "missing"
                throw refusal(
                    "schemaVersion is \(given), this keeper speaks \(keeperSchemaVersion); use "
                        + "programs of one version")
            }
            if let problem { throw refusal(problem) }
            guard hasConfiguration == (verb == "apply" || verb == "plan") else {
                throw refusal(
                    "\"configuration\" belongs to the verbs apply and plan, and to no other")
            }
            switch verb {
            case "apply": return .apply(apply)
            case "plan":
                var plan = apply
                plan.options.isDryRun = true
                return .apply(plan)
            case "confirm": return .confirm
            case "status": return .status
            case "device": return .device
            case "down": return .down(down)
            case "events": return .events
            default:
                throw refusal(
                    "\"verb\" is none of apply, plan, confirm, status, device, down, events")
            }
        }

        private func refusal(_ reason: String) -> KeeperFailure {
            KeeperFailure(.configurationInvalid, "the request is refused: \(reason)")
        }
    }
}

extension ApplyRequest {
    /// What the reconciler takes, and what is to be said about the text. `isRoot`: root asks.
    /// Erases the text.
    mutating func intent(
        name: InterfaceName, isRoot: Bool
    ) throws(KeeperFailure) -> (Intent, warnings: [String]) {
        defer { erase(&configuration) }
        if hooks == .allow, !isRoot {
            throw KeeperFailure(
                .permission,
                "only root may allow the commands of a configuration: they run as root; run as "
                    + "root, or ignore them")
        }
        let parsed: ConfigurationFile.Parsed
        do throws(ConfigurationError) {
            parsed = try ConfigurationFile.parse(
                configuration.span, file: "\(name).conf", lenient: isLenient)
        } catch {
            throw KeeperFailure(.configurationInvalid, error.description)
        }
        if hooks == .refuse, !parsed.configuration.interface.hooks.isEmpty {
            throw KeeperFailure(
                .configurationInvalid,
                "the configuration of \(name) has commands for a shell: "
                    + hookLines(in: configuration).joined(separator: ", ")
                    + "; read them, then allow them (--allow-hooks) or leave them out (--no-hooks)")
        }
        var intent = Intent(parsed.configuration, backend: backend, hooks: hooks)
        intent.gateway = gateway
        intent.isPersistent = isPersistent
        return (intent, parsed.warnings.map(\.description))
    }
}

/// "line 7 (PostUp)" for each line that is a hook's.
func hookLines(in text: [UInt8]) -> [String] {
    var found: [String] = []
    for (index, line) in text.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated()
    {
        guard let equals = line.firstIndex(of: UInt8(ascii: "=")) else { continue }
        let key = line[..<equals].filter { $0 > 0x20 }
        guard key.count <= 8 else { continue }
        let name = String(decoding: key, as: UTF8.self)
        guard ["preup", "postup", "predown", "postdown"].contains(name.lowercased()) else {
            continue
        }
        found.append("line \(index + 1) (\(name))")
    }
    return found
}
