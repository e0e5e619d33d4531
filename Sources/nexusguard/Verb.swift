// SPDX-License-Identifier: Apache-2.0

/// An option of a verb. Without `argument` it is a switch.
struct Option: Sendable {
    let long: String
    var short: Character?
    var argument: String?
    let help: String
}

/// One row of the table of verbs.
struct Verb: Sendable {
    let name: String
    /// As the synopsis shows them.
    var operands = ""
    var operandCount = 0...0
    /// One line, for the list of verbs.
    let summary: String
    /// Lines below the synopsis of the verb's own help.
    var details = ""
    var options: [Option] = []
    /// What follows the first operand is an operand, even if it begins with `-`.
    var optionsEndAtOperand = false
    /// What a shell may offer for its operands.
    var completes: [OperandKind] = []
    /// Of a verb that has commands of its own; their names have one word or two.
    var commands: [Verb] = []
    /// Not in the list of verbs: started by others, not by people.
    var isHidden = false
    /// Returns the exit code.
    let run: @Sendable (Invocation) throws(Failure) -> UInt8

    enum OperandKind: Equatable, Sendable {
        case file
        /// The name of a tunnel that runs.
        case running
        /// The name of a tunnel that has a configuration.
        case configured
        case words([String])
    }
}

/// A verb with what its command line gave.
struct Invocation: Sendable {
    var operands: [String] = []
    /// By long name; the last one counts. Switches have "".
    var values: [String: String] = [:]

    func has(_ long: String) -> Bool { values[long] != nil }

    /// A whole number of the option's argument, or nil without the option.
    func number(_ long: String, _ range: ClosedRange<UInt64>) throws(Failure) -> UInt64? {
        guard let text = values[long] else { return nil }
        // UInt64.init takes a sign; a plain number has none.
        guard text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }), let number = UInt64(text),
            range.contains(number)
        else {
            throw .usage(
                "--\(long): \(quoted(text)) is not a number from \(range.lowerBound) to "
                    + "\(range.upperBound)")
        }
        return number
    }
}
