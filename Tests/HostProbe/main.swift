// SPDX-License-Identifier: Apache-2.0
// Lets the scripts of Tests/netns call HostNetwork. Prints the answer; errors on standard error,
// exit code 1.
import Glibc
import HostNetwork
import TunnelPlan
import WireGuard

func fail(_ message: String, code: Int32 = 1) -> Never {
    FileOutput.write("host-probe: \(message)\n", to: STDERR_FILENO)
    exit(code)
}

enum FileOutput {
    static func write(_ text: String, to descriptor: Int32) {
        let bytes = Array(text.utf8)
        _ = unsafe Glibc.write(descriptor, bytes, bytes.count)
    }
}

func say(_ text: String) { FileOutput.write(text + "\n", to: STDOUT_FILENO) }

let words = Array(CommandLine.arguments.dropFirst())
do {
    switch words.first {
    case "firewall": try firewall(Array(words.dropFirst()))
    case "resolver": try resolver(Array(words.dropFirst()))
    default:
        fail(
            """
            usage:
              host-probe firewall apply IFNAME [clamp] [mark=NUMBER] [protect=ADDRESS/LENGTH]…
                  [own=ADDRESS/LENGTH]… [forward=tcp,8443-8443,10.0.0.2,443,masquerade]… [masquerade] [answer=NUMBER]
              host-probe firewall current|remove|watch IFNAME
              host-probe resolver DIRECTORY BUS apply|current|revert IFNAME INDEX [SERVER|DOMAIN]…
            """, code: 2)
    }
} catch let error as NetworkError {
    fail("\(error.kind): \(error)")
}
