// SPDX-License-Identifier: Apache-2.0

let programName = "nexusguard"
let programVersion = "0.1.0"

/// What `nexusguard --help` prints.
func helpText() -> String {
    let rows = verbs.filter { !$0.isHidden }.map { ($0.name, $0.summary) }
    return """
        Usage: \(programName) VERB [OPTION]... [OPERAND]...

        WireGuard tunnels from the configuration files of wg and wg-quick.

        Verbs:
        \(table(rows))

          \(programName) VERB --help    about one verb
          \(programName) --version      print the version and exit

        Exit codes: \(exitCodes)

        """
}

/// What `nexusguard VERB --help` prints.
func helpText(_ verb: Verb) -> String {
    let options = verb.options + commonOptions
    let rows = options.map { option in
        let short = option.short.map { "-\($0), " } ?? "    "
        return (short + "--\(option.long)" + (option.argument.map { " \($0)" } ?? ""), option.help)
    }
    let operands = verb.operands.isEmpty ? "" : " " + verb.operands
    let details = verb.details.isEmpty ? "" : "\n" + verb.details + "\n"
    return """
        Usage: \(programName) \(verb.name) [OPTION]...\(operands)

        \(verb.summary)
        \(details)
        Options:
        \(table(rows))

        Exit codes: \(exitCodes)

        """
}

private let exitCodes = """
    0 ok, 1 failed, 2 usage, 3 not running, 4 no permission,
                5 configuration invalid, 6 token refused, 7 device revoked,
                8 busy, 69 hub does not answer.
    """

private func table(_ rows: [(String, String)]) -> String {
    let width = rows.map(\.0.count).max() ?? 0
    return rows.map { left, right in
        "  " + left + String(repeating: " ", count: width - left.count + 2) + right
    }.joined(separator: "\n")
}
