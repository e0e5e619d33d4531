// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import nexusguard

private let verb = Verb(
    name: "test", operands: "A [B]", operandCount: 1...2, summary: "",
    options: [
        Option(long: "number", short: "n", argument: "N", help: ""),
        Option(long: "name", argument: "TEXT", help: ""),
        Option(long: "all", short: "a", help: ""),
    ],
    run: { _ throws(Failure) in 0 })

private func parse(_ arguments: String...) throws(Failure) -> Invocation {
    try CommandLineParser.parse(arguments, for: verb)
}

@Suite struct CommandLineTests {
    @Test func optionsAndOperandsInAnyOrder() throws {
        let given = try parse("-a", "x", "--name", "v", "y", "-n5")
        #expect(given.operands == ["x", "y"])
        #expect(given.values == ["all": "", "name": "v", "number": "5"])
    }

    @Test func shortOptionsCluster() throws {
        #expect(try parse("-an", "5", "x").values == ["all": "", "number": "5"])
        #expect(try parse("-an5", "x").values == ["all": "", "number": "5"])
        #expect(try parse("-na", "x").values == ["number": "a"])
    }

    @Test func afterTwoHyphensAllAreOperands() throws {
        #expect(try parse("--", "-a", "--all").operands == ["-a", "--all"])
        #expect(try parse("-", "-a").operands == ["-"])
    }

    @Test func theLastValueCounts() throws {
        #expect(try parse("--name=a", "x", "--name=", "--name=b=c").values["name"] == "b=c")
    }

    @Test func abbreviationsMustBeUnambiguous() throws {
        #expect(try parse("--nu", "1", "x").values == ["number": "1"])
        #expect(try parse("--al", "x").has("all"))
        let failure = #expect(throws: Failure.self) { try parse("--n", "1", "x") }
        #expect(failure?.message.contains("--number or --name") == true)
    }

    @Test(arguments: [
        ["--none", "x"], ["-z", "x"], ["--all=1", "x"], ["x", "--name"], ["x", "-n"], [],
        ["x", "y", "z"],
        ["--", "x", "y", "-a"], ["--=", "x"],
    ]) func usageErrors(arguments: [String]) {
        let failure = #expect(throws: Failure.self) {
            try CommandLineParser.parse(arguments, for: verb)
        }
        #expect(failure?.code == ExitCode.usage)
    }

    @Test func helpNeedsNoOperands() throws { #expect(try parse("--help").has("help")) }

    @Test func optionsMayEndAtTheFirstOperand() throws {
        var ending = verb
        ending.optionsEndAtOperand = true
        let given = try CommandLineParser.parse(["-a", "x", "-a"], for: ending)
        #expect(given.operands == ["x", "-a"])
    }

    @Test(arguments: [("0", 0), ("10", 10), ("007", 7)]) func numbers(
        text: String, value: UInt64
    ) throws {
        #expect(try parse("-n", text, "x").number("number", 0...10) == value)
    }

    @Test(arguments: ["", "-1", "+1", "11", "1s", "0x1", "99999999999999999999"]) func noNumbers(
        text: String
    ) {
        let failure = #expect(throws: Failure.self) {
            try parse("--number=\(text)", "x").number("number", 0...10)
        }
        #expect(failure?.code == ExitCode.usage)
    }

    @Test func everyVerbIsUsable() {
        #expect(Set(verbs.map(\.name)).count == verbs.count)
        for verb in verbs {
            let options = verb.options + commonOptions
            #expect(Set(options.map(\.long)).count == options.count, "\(verb.name)")
            let letters = options.compactMap(\.short)
            #expect(Set(letters).count == letters.count, "\(verb.name)")
            #expect(!verb.summary.isEmpty && verb.summary.hasSuffix("."))
        }
    }

    @Test(arguments: [
        ("/a/b.conf", "/a/b.conf"), ("a b", "'a b'"), ("", "''"), ("it's", "'it'\\''s'"),
        ("$(x)", "'$(x)'"),
    ]) func wordsForAShell(text: String, word: String) {
        #expect(shellQuoted(text) == word)
    }
}

@Suite struct ConfigurationSourceTests {
    private func source(_ operand: String, existing: Set<String> = []) throws(Failure)
        -> ConfigurationSource
    {
        try ConfigurationSource(operand, directories: ["/n", "/w"]) { existing.contains($0) }
    }

    @Test func pathsAreTakenAsTheyAre() throws {
        #expect(try source("-") == .standardInput)
        #expect(try source("./wg0") == .file("./wg0"))
        #expect(try source("wg0.conf") == .file("wg0.conf"))
    }

    @Test func namesAreLookedUpHereThenInTheDirectoryOfWgQuick() throws {
        #expect(
            try source("wg0", existing: ["/n/wg0.conf", "/w/wg0.conf"]) == .file("/n/wg0.conf"))
        #expect(try source("wg0", existing: ["/w/wg0.conf"]) == .file("/w/wg0.conf"))
        let failure = #expect(throws: Failure.self) { try source("wg0") }
        #expect(failure?.message.contains("/n/wg0.conf and no /w/wg0.conf") == true)
        let noName = #expect(throws: Failure.self) { try source("wg 0") }
        #expect(noName?.code == ExitCode.usage)
    }

    @Test(arguments: [
        ("/etc/wireguard/wg0.conf", "wg0"), ("wg-0.x.conf", "wg-0.x"), ("./wg0", nil),
        ("/a/.conf", nil), ("a-name-that-is-too-long.conf", nil), ("/a/b c.conf", nil),
    ]) func interfaceNames(path: String, name: String?) {
        #expect(ConfigurationSource.file(path).interfaceName?.description == name)
    }
}
