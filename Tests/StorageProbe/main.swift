// SPDX-License-Identifier: Apache-2.0
// Lets Tests/netns/storage.sh try storage on a file system that is full, and its records in a
// journal. Prints what happened, a line for each step; errors on standard error, exit code 1.
import Glibc
import HostProcess
import SQLite
import Storage
import Systemd

func fail(_ message: String, code: UInt8 = 1) -> Never {
    StandardStream.error.write("storage-probe: \(message)\n")
    Host.exit(code)
}

func say(_ text: String) { StandardStream.output.write(text + "\n") }

private let usage = """
    usage: storage-probe VERB [DIRECTORY]
      full DIRECTORY   on a small file system of its own: what stays when it is full
      journal          two records to the journal
      output           where records would go: journal or jsonLines
      machine          the machine's id, as this program sees it
    """

private let words = Array(CommandLine.arguments.dropFirst())
do {
    switch (words.first, words.count) {
    case ("full", 2): try FullDisk(StateDirectory(words[1])).run()
    case ("journal", 1):
        let log = Logger(program: "storage-probe", output: .journal)
        log.warn("probe", "two lines\nof text", [LogField("configHash", "abc")])
        log.info("probe", "second", [LogField("count", 2)])
    case ("output", 1):
        switch LogOutput.automatic {
        case .journal: say("journal")
        default: say("jsonLines")
        }
    case ("machine", 1): say(try MachineIdentity.current())
    default: fail(usage, code: 2)
    }
} catch {
    fail("\(error)")
}
