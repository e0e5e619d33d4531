// SPDX-License-Identifier: Apache-2.0
// The part of the completion scripts for a verb that has commands, such as `hub token create`: after
// the words that are there the shell offers what may follow them.

/// What may follow some words of a verb.
private struct Continuation {
    /// Words after the verb, each with a blank behind it; " " alone: none yet.
    let after: String
    let words: [String]
    var takesFile = false
}

/// The longest beginnings first, so that the first one that fits is the right one.
private func continuations(_ verb: Verb) -> [Continuation] {
    let commands = verb.commands.map { command in
        Continuation(
            after: command.name + " ", words: optionWords(command),
            takesFile: command.completes.contains(.file))
    }
    let groups = groups(verb).map { Continuation(after: $0.first + " ", words: $0.second) }
    let start = Continuation(after: " ", words: firstWords(verb) + optionWords(verb))
    return commands + groups + [start]
}

private func words(_ command: Verb) -> [String] {
    command.name.split(separator: " ").map(String.init)
}

/// Each once, in the order of the help.
private func firstWords(_ verb: Verb) -> [String] {
    verb.commands.reduce(into: []) { found, command in
        let word = words(command)[0]
        if !found.contains(word) { found.append(word) }
    }
}

/// The second words of the commands that have two, by the first.
private func groups(_ verb: Verb) -> [(first: String, second: [String])] {
    firstWords(verb).compactMap { first in
        let second = verb.commands.map { words($0) }.filter { $0[0] == first && $0.count == 2 }
        return second.isEmpty ? nil : (first, second.map { $0[1] })
    }
}

// MARK: bash

func bashCommands(_ verb: Verb) -> String {
    let cases = continuations(verb).map { next in
        "                \"\(next.after)\"*) words=\"\(next.words.joined(separator: " "))\""
            + (next.takesFile ? " files=yes" : "") + " ;;"
    }
    return """
                \(verb.name))
                    case "${COMP_WORDS[*]:2:COMP_CWORD-2} " in
        \(cases.joined(separator: "\n"))
                    esac
                    ;;
        """
}

// MARK: zsh

/// A function for each verb that has commands. `words` begins with the verb.
func zshCommands(_ verbs: [Verb]) -> [String] {
    verbs.filter { !$0.commands.isEmpty }.map { verb in
        let cases = continuations(verb).map { next in
            "        \"\(next.after)\"*) compadd -- \(next.words.joined(separator: " "))"
                + (next.takesFile ? "; _files" : "") + " ;;"
        }
        return """
            _nexusguard_\(verb.name)() {
                case "${words[2,CURRENT-1]} " in
            \(cases.joined(separator: "\n"))
                esac
            }
            """
    }
}

// MARK: fish

private let seen = "__fish_seen_subcommand_from"

/// Where the verb is not a word of another verb's command (`status`, `hub status`).
func fishCondition(_ verb: Verb) -> String {
    let others = verbs.filter { other in
        other.commands.contains { words($0).contains(verb.name) }
    }
    return (["\(seen) \(verb.name)"] + others.map { "not \(seen) \($0.name)" })
        .joined(separator: "; and ")
}

func fishCommands(_ verb: Verb) -> [String] {
    let first = firstWords(verb)
    var lines = [
        fishLine(
            [verb.name], without: first, "-a \(fishText(first.joined(separator: " ")))")
    ]
    for group in groups(verb) {
        lines.append(
            fishLine(
                [verb.name, group.first], without: group.second,
                "-a \(fishText(group.second.joined(separator: " ")))"))
    }
    for command in verb.commands {
        let condition = [verb.name] + words(command)
        if command.completes.contains(.file) { lines.append(fishLine(condition, "-F")) }
        for option in command.options + commonOptions {
            let short = option.short.map { "-s \($0) " } ?? ""
            let argument = option.argument == nil ? "" : " -r"
            lines.append(
                fishLine(
                    condition,
                    "\(short)-l \(option.long)\(argument) -d \(fishText(option.help))"))
        }
    }
    return lines
}

private func fishLine(_ after: [String], without: [String] = [], _ rest: String) -> String {
    var condition = after.map { "\(seen) \($0)" }
    if !without.isEmpty {
        condition.append("not \(seen) \(without.joined(separator: " "))")
    }
    return "complete -c nexusguard -n '\(condition.joined(separator: "; and "))' \(rest)"
}
