// SPDX-License-Identifier: Apache-2.0
// Completion scripts, made from the table of verbs. share/ has them; Tests/cli compares.
import HostProcess
import TunnelPlan

let completionVerb = Verb(
    name: "completion", operands: "bash | zsh | fish", operandCount: 1...1,
    summary: "Print a completion script for a shell.", isHidden: true
) { invocation throws(Failure) in
    switch invocation.operands[0] {
    case "bash": try Output.write(bashCompletion())
    case "zsh": try Output.write(zshCompletion())
    case "fish": try Output.write(fishCompletion())
    case "names": try Output.write(configuredNames().map { $0 + "\n" }.joined())
    default: throw .usage("\(quoted(invocation.operands[0])): bash, zsh or fish")
    }
    return ExitCode.ok
}

/// Tunnels that a name alone stands for.
private func configuredNames() -> [String] {
    let files = ConfigurationSource.directories.flatMap { Host.names(in: $0) }
    let names = files.filter { $0.hasSuffix(".conf") }.map { String($0.dropLast(5)) }
    return Set(names.filter { InterfaceName($0) != nil }).sorted()
}

private var shownVerbs: [Verb] { verbs.filter { !$0.isHidden } }

private let head = """
    # SPDX-License-Identifier: Apache-2.0
    # Made by `nexusguard completion`; do not edit.
    """

func optionWords(_ verb: Verb) -> [String] {
    (verb.options + commonOptions).flatMap { option in
        (option.short.map { ["-\($0)"] } ?? []) + ["--\(option.long)"]
    }
}

/// Shell commands that list what an operand may be.
private func source(_ kind: Verb.OperandKind) -> String {
    switch kind {
    case .running: "nexusguard show interfaces 2>/dev/null"
    case .configured: "nexusguard completion names 2>/dev/null"
    case .file, .words: ""
    }
}

// MARK: bash

private func bashCompletion() -> String {
    let cases = shownVerbs.map { verb in
        guard verb.commands.isEmpty else { return bashCommands(verb) }
        var lines = [
            "        \(verb.name))",
            "            words=\"\(optionWords(verb).joined(separator: " "))\"",
        ]
        for kind in verb.completes {
            switch kind {
            case .file: lines.append("            files=yes")
            case .words(let words):
                lines.append("            words+=\" \(words.joined(separator: " "))\"")
            case .running, .configured: lines.append("            words+=\" $(\(source(kind)))\"")
            }
        }
        return (lines + ["            ;;"]).joined(separator: "\n")
    }
    return """
        # shellcheck shell=bash
        \(head)

        _nexusguard() {
            local current=${COMP_WORDS[COMP_CWORD]} words="" files=no
            COMPREPLY=()
            if ((COMP_CWORD == 1)); then
                words="\(shownVerbs.map(\.name).joined(separator: " ")) help --help --version"
            else
                case ${COMP_WORDS[1]} in
        \(cases.joined(separator: "\n"))
                esac
            fi
            mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
            if [[ $files == yes && $current != -* ]]; then
                compopt -o filenames 2>/dev/null
                mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$current")
            fi
        }
        complete -F _nexusguard nexusguard

        """
}

// MARK: zsh

private func zshCompletion() -> String {
    let names = shownVerbs.map { "        '\($0.name):\(zshText($0.summary))'" }
    let cases = shownVerbs.map { verb in
        guard verb.commands.isEmpty else {
            return "        \(verb.name)) _nexusguard_\(verb.name) ;;"
        }
        let options = (verb.options + commonOptions).map { option in
            let spelled =
                option.short.map { "'(-\($0) --\(option.long))'{-\($0),--\(option.long)}'" }
                ?? "'--\(option.long)"
            let argument = option.argument.map { ":\($0):_files" } ?? ""
            return "                \(spelled)[\(zshText(option.help))]\(argument)'"
        }
        let operands =
            verb.completes.isEmpty ? [] : ["                '*:operand:_nexusguard_\(verb.name)'"]
        return "        \(verb.name)) _arguments \\\n"
            + (options + operands).joined(separator: " \\\n") + " ;;"
    }
    let functions = shownVerbs.filter { !$0.completes.isEmpty }.map { verb in
        let lines = verb.completes.map { kind in
            switch kind {
            case .file: "    _files"
            case .words(let words): "    compadd -- \(words.joined(separator: " "))"
            case .running, .configured: "    compadd -- ${(f)\"$(\(zshSource(kind)))\"}"
            }
        }
        return "_nexusguard_\(verb.name)() {\n" + lines.joined(separator: "\n") + "\n}"
    }
    return """
        #compdef nexusguard
        \(head)

        \((functions + zshCommands(shownVerbs)).joined(separator: "\n"))
        _nexusguard() {
            local -a verbs=(
        \(names.joined(separator: "\n"))
            )
            if ((CURRENT == 2)); then
                _describe verb verbs
                return
            fi
            local verb=$words[2]
            shift words
            ((CURRENT--))
            case $verb in
        \(cases.joined(separator: "\n"))
            esac
        }
        _nexusguard "$@"

        """
}

private func zshSource(_ kind: Verb.OperandKind) -> String {
    kind == .running ? source(kind) + " | tr ' ' '\\n'" : source(kind)
}

/// Between square brackets in quotation marks.
private func zshText(_ text: String) -> String {
    text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
        .split(separator: ":", omittingEmptySubsequences: false).joined(separator: "\\:")
}

// MARK: fish

private func fishCompletion() -> String {
    var lines = [head, "", "complete -c nexusguard -f"]
    for verb in shownVerbs {
        lines.append(
            "complete -c nexusguard -n __fish_use_subcommand -a \(verb.name) -d "
                + fishText(verb.summary))
    }
    for verb in shownVerbs where !verb.commands.isEmpty { lines += fishCommands(verb) }
    for verb in shownVerbs where verb.commands.isEmpty {
        let condition = "complete -c nexusguard -n '\(fishCondition(verb))'"
        for option in verb.options + commonOptions {
            let short = option.short.map { " -s \($0)" } ?? ""
            let argument = option.argument == nil ? "" : " -r"
            lines.append(
                "\(condition)\(short) -l \(option.long)\(argument) -d \(fishText(option.help))")
        }
        for kind in verb.completes {
            switch kind {
            case .file: lines.append("\(condition) -F")
            case .words(let words):
                lines.append("\(condition) -a '\(words.joined(separator: " "))'")
            case .running:
                lines.append("\(condition) -a '(\(source(kind)) | string split \" \")'")
            case .configured:
                lines.append("\(condition) -a '(\(source(kind)))'")
            }
        }
    }
    return lines.joined(separator: "\n") + "\n"
}

func fishText(_ text: String) -> String {
    "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "\\'")
        + "'"
}
