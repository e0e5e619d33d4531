// SPDX-License-Identifier: Apache-2.0
// Lets the scripts of Tests/netns drive back-ends and the live host. Prints what it found; errors
// on standard error, exit code 1.
import Backends
import Glibc
import HostProcess
import Keeper
import TunnelPlan
import WireGuard

func fail(_ message: String, code: UInt8 = 1) -> Never {
    StandardStream.error.write("backend-probe: \(message)\n")
    Host.exit(code)
}

func say(_ text: String) { StandardStream.output.write(text + "\n") }

func warn(_ text: String) { StandardStream.error.write("backend-probe: \(text)\n") }

private let usage = """
    usage: backend-probe VERB IFNAME PROGRAM DIRECTORY [NUMBER [SEED]]
      PROGRAM is an engine, or kernel for the kernel's WireGuard.
      property   NUMBER random pairs of tunnels, each reached from the other and anew
      many       NUMBER peers in one apply, read back, replaced
      long       lists of up to NUMBER prefixes, set, moved, cut and read back
      cost       milliseconds of CPU that NUMBER peers cost to set and read
      adopt      whose link it is; a second host finds what the first left
      foreign    says why the link IFNAME is not taken
      facts      what the host is to the tunnel of DIRECTORY/IFNAME.conf, a line for each fact
      subnet     two addresses of one subnet, of which the first goes, then all
      replace    the link makes room for one of the other kind, if there can be one
      events     names what it hears until standard input ends
      down       removes the tunnel that adopt left
    """

private let words = Array(CommandLine.arguments.dropFirst())
guard words.count >= 4, let name = InterfaceName(words[1]) else { fail(usage, code: 2) }
private let number = words.count > 4 ? Int(words[4]) ?? 0 : 0
private let seed = words.count > 5 ? UInt64(words[5]) ?? 0 : 0
private let bench = Bench(name: name, program: words[2], directory: words[3])

Log.open(.standardError, program: "backend-probe", subject: name.description)
do {
    switch words[0] {
    case "property": try bench.property(number, seed: seed)
    case "many": try bench.many(number)
    case "long": try bench.long(number)
    case "cost": try bench.cost(number)
    case "adopt": try bench.adopt()
    case "foreign": try bench.foreign()
    case "facts": try bench.printFacts()
    case "subnet": try bench.exchangeAddresses()
    case "replace": try bench.replaceLink()
    case "events": try bench.events()
    case "down": try bench.down()
    default: fail(usage, code: 2)
    }
} catch {
    fail("\(error)")
}
