// SPDX-License-Identifier: Apache-2.0

/// Reads arguments as getopt_long(3) does: `--name VALUE`, `--name=VALUE`, unambiguous
/// abbreviations, `-q`, `-qn VALUE`, `-nVALUE`, `--`, operands and options in any order.
struct CommandLineParser {
    let options: [Option]
    let optionsEndAtOperand: Bool
    private var invocation = Invocation()
    private var rest: ArraySlice<String>

    static func parse(_ arguments: [String], for verb: Verb) throws(Failure) -> Invocation {
        var parser = CommandLineParser(
            options: verb.options + commonOptions, optionsEndAtOperand: verb.optionsEndAtOperand,
            rest: arguments[...])
        try parser.parseAll()
        let invocation = parser.invocation
        guard !invocation.has("help") else { return invocation }
        guard invocation.operands.count >= verb.operandCount.lowerBound else {
            throw .usage("\(verb.operands.split(separator: " ").first ?? "an operand") is missing")
        }
        guard invocation.operands.count <= verb.operandCount.upperBound else {
            let extra = invocation.operands[verb.operandCount.upperBound]
            throw .usage("\(quoted(extra)): one operand too many")
        }
        return invocation
    }

    private init(options: [Option], optionsEndAtOperand: Bool, rest: ArraySlice<String>) {
        self.options = options
        self.optionsEndAtOperand = optionsEndAtOperand
        self.rest = rest
    }

    private mutating func parseAll() throws(Failure) {
        while let argument = rest.popFirst() {
            if argument == "--" {
                invocation.operands += rest
                return
            } else if argument.hasPrefix("--") {
                try readLong(argument.dropFirst(2))
            } else if argument.hasPrefix("-"), argument != "-" {
                try readShort(argument.dropFirst())
            } else {
                invocation.operands.append(argument)
                guard optionsEndAtOperand else { continue }
                invocation.operands += rest
                return
            }
        }
    }

    private mutating func readLong(_ text: Substring) throws(Failure) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let option = try option(named: parts[0])
        if option.argument == nil {
            guard parts.count == 1 else { throw .usage("--\(option.long) takes no value") }
            invocation.values[option.long] = ""
        } else if parts.count == 2 {
            invocation.values[option.long] = String(parts[1])
        } else {
            invocation.values[option.long] = try nextValue("--\(option.long)")
        }
    }

    private func option(named name: Substring) throws(Failure) -> Option {
        if let option = options.first(where: { $0.long == name }) { return option }
        let candidates = name.isEmpty ? [] : options.filter { $0.long.hasPrefix(name) }
        guard let option = candidates.first else {
            throw .usage("\(quoted("--" + name)): no such option")
        }
        guard candidates.count == 1 else {
            let names = candidates.map { "--" + $0.long }.joined(separator: " or ")
            throw .usage("\(quoted("--" + name)) could be \(names)")
        }
        return option
    }

    private mutating func readShort(_ text: Substring) throws(Failure) {
        var letters = text
        while let letter = letters.popFirst() {
            guard let option = options.first(where: { $0.short == letter }) else {
                throw .usage("\(quoted("-\(letter)")): no such option")
            }
            guard option.argument != nil else {
                invocation.values[option.long] = ""
                continue
            }
            invocation.values[option.long] =
                letters.isEmpty ? try nextValue("-\(letter)") : String(letters)
            return
        }
    }

    private mutating func nextValue(_ origin: String) throws(Failure) -> String {
        guard let value = rest.popFirst() else { throw .usage("\(origin) needs a value") }
        return value
    }
}

/// Every verb has them.
let commonOptions = [
    Option(long: "quiet", short: "q", help: "no progress and no warnings"),
    Option(long: "help", short: "h", help: "print this text and exit"),
]
