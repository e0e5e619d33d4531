// SPDX-License-Identifier: Apache-2.0
import Keeper
import LiveHost
import TunnelPlan

let keepVerb = Verb(
    name: "keep", operands: "IFNAME", operandCount: 1...1, summary: "Be the keeper of a tunnel.",
    details: """
        Goes to the background when it answers. It brings up the tunnel that `up --persist` kept, or
        waits for somebody to ask for one.
        """,
    options: [
        Option(
            long: "foreground", short: "f", help: "stay in the foreground, log to standard error"),
        Option(
            long: "brief", help: "as `up` starts it: bring nothing up, end when nobody asks"),
        Option(
            long: "state", argument: "DIR",
            help: "keep persistent tunnels in DIR/tunnels instead of below /var/lib/nexusguard"),
    ],
    isHidden: true, run: keep)

private func keep(_ invocation: Invocation) throws(Failure) -> UInt8 {
    let name = try interfaceName(invocation.operands[0])
    var options = KeeperProgram.Options()
    options.isForeground = invocation.has("foreground")
    options.waits = !invocation.has("brief")
    if let directory = invocation.values["state"] { options.persistentDirectory = directory }
    return KeeperProgram.run(name: name, options: options) { () throws(KeeperFailure) in
        try LiveHost(name)
    }
}
