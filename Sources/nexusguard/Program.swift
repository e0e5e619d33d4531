// SPDX-License-Identifier: Apache-2.0
import HostProcess
import WireGuard

/// From the command line to a verb, and from its end to an exit code.
enum Program {
    static func main() -> UInt8 {
        Host.ignoreBrokenPipes()
        // Swift's run-time library reads them from /proc/self/cmdline.
        guard !CommandLine.arguments.isEmpty else {
            StandardStream.error.write(
                "\(programName): cannot read the command line from /proc/self/cmdline; "
                    + "mount /proc\n")
            return ExitCode.failed
        }
        return run(Array(CommandLine.arguments.dropFirst()))
    }

    private static func run(_ arguments: [String]) -> UInt8 {
        guard let word = arguments.first else {
            StandardStream.error.write(helpText())
            return ExitCode.usage
        }
        switch word {
        case "--help", "-h": return print(helpText())
        case "--version": return print("\(programName) \(programVersion)\n")
        case "help" where arguments.count == 1: return print(helpText())
        case "help": return run([arguments[1], "--help"])
        default: break
        }
        guard let verb = verbs.first(where: { $0.name == word }) else {
            let what = word.hasPrefix("-") ? "no such option" : "no such verb"
            return end(.usage("\(quoted(word)): \(what)"), context: programName, hint: programName)
        }
        return run(verb, Array(arguments.dropFirst()))
    }

    private static func run(_ verb: Verb, _ arguments: [String]) -> UInt8 {
        do throws(Failure) {
            let invocation = try CommandLineParser.parse(arguments, for: verb)
            if invocation.has("help") { return print(helpText(verb)) }
            return try verb.run(invocation)
        } catch {
            return end(
                error, context: "\(programName) \(verb.name)", hint: "\(programName) \(verb.name)")
        }
    }

    private static func print(_ text: String) -> UInt8 {
        do throws(HostError) {
            try StandardStream.output.write(bytes: Array(text.utf8))
            return ExitCode.ok
        } catch {
            return end(Failure(error), context: programName, hint: programName)
        }
    }

    private static func end(_ failure: Failure, context: String, hint: String) -> UInt8 {
        let prefix = failure.isDiagnostics ? "" : "\(context): "
        StandardStream.error.write("\(prefix)\(failure.message)\n")
        if failure.code == ExitCode.usage { StandardStream.error.write("try \(hint) --help\n") }
        return failure.code
    }
}

/// What a verb has to say.
enum Output {
    /// The result, to standard output.
    static func write(_ text: String) throws(Failure) { try write(bytes: Array(text.utf8)) }

    static func write(bytes: [UInt8]) throws(Failure) {
        try asking { () throws(HostError) in try StandardStream.output.write(bytes: bytes) }
    }

    /// A result with keys in it: erased afterwards, and a warning when anybody may read it.
    static func write(secret bytes: inout [UInt8], _ invocation: Invocation) throws(Failure) {
        defer { erase(&bytes) }
        if StandardStream.output.isFileOpenToAll {
            note(
                "warning: standard output is a file that everybody may read; "
                    + "run chmod 600 on it, and umask 077 next time", invocation)
        }
        try write(bytes: bytes)
    }

    /// Progress or a warning, to standard error; not with --quiet.
    static func note(_ text: String, _ invocation: Invocation) {
        guard !invocation.has("quiet") else { return }
        StandardStream.error.write("\(text)\n")
    }
}
