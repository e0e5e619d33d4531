// SPDX-License-Identifier: Apache-2.0
import Keeper
import LiveHost
import TunnelPlan

let keepVerb = Verb(
    name: "keep", operands: "IFNAME", operandCount: 1...1, summary: "Be the keeper of a tunnel.",
    details: "`\(programName) up` starts it; it goes to the background when it answers.",
    options: [
        Option(
            long: "foreground", short: "f", help: "stay in the foreground, log to standard error")
    ],
    isHidden: true, run: keep)

private func keep(_ invocation: Invocation) throws(Failure) -> UInt8 {
    let name = try interfaceName(invocation.operands[0])
    var options = KeeperProgram.Options()
    options.isForeground = invocation.has("foreground")
    return KeeperProgram.run(name: name, options: options) { () throws(KeeperFailure) in
        try LiveHost(name)
    }
}
