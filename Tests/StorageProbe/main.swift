// SPDX-License-Identifier: Apache-2.0
// Lets Tests/netns/storage.sh try storage on a file system that is full, and its records in a
// journal. Prints what happened, a line for each step; errors on standard error, exit code 1.
import Glibc
import HostProcess
import SQLite
import Storage
import Systemd
import TrustedPlatform

func fail(_ message: String, code: UInt8 = 1) -> Never {
    StandardStream.error.write("storage-probe: \(message)\n")
    Host.exit(code)
}

func say(_ text: String) { StandardStream.output.write(text + "\n") }

private let usage = """
    usage: storage-probe VERB [DIRECTORY]
      full DIRECTORY   on a small file system of its own: what stays when it is full
      tpm DIRECTORY ADDRESS [SECRET]   keep SECRET, then open it, by the TPM at ADDRESS
      journal          two records to the journal
      output           where records would go: journal or jsonLines
      machine          the machine's id, as this program sees it
    """

private let words = Array(CommandLine.arguments.dropFirst())
do {
    switch (words.first, words.count) {
    case ("full", 2): try FullDisk(StateDirectory(words[1])).run()
    case ("tpm", 3), ("tpm", 4):
        let store = try SecretStore(
            try StateDirectory(words[1]), machine: String(repeating: "0", count: 32),
            tpm: words[2].isEmpty ? nil : TPM(address: words[2]))
        say("protection: \(store.protection.rawValue)")
        if let remark = store.remark { say("remark: \(remark)") }
        if words.count > 3 { try store.seal("token", Array(words[3].utf8)) }
        let secret = try store.open("token").map { String(decoding: $0, as: UTF8.self) }
        say("secret: \(secret ?? "none")")
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
