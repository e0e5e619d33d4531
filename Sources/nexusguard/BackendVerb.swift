// SPDX-License-Identifier: Apache-2.0
import Backends
import TunnelPlan
import WireGuard

let backendVerb = Verb(
    name: "backend", summary: "Print who can move packets on this host, and who would.",
    options: [Option(long: "json", help: "print the result as JSON")], run: printBackends)

private func printBackends(_ invocation: Invocation) throws(Failure) -> UInt8 {
    let kernel = KernelBackend().availability()
    let userspace = UserspaceBackend().availability()
    let offers = [(BackendKind.kernel, kernel), (BackendKind.userspace, userspace)]
    let choice: BackendKind?
    do throws(BackendError) {
        choice = try BackendSelection.choose(nil, kernel: kernel, userspace: userspace).kind
    } catch {
        choice = nil
    }
    if invocation.has("json") {
        try Output.write(bytes: json(offers, choice))
    } else {
        try Output.write(offers.map { line($0, $1, choice) + "\n" }.joined())
    }
    return choice == nil ? ExitCode.failed : ExitCode.ok
}

private func line(
    _ kind: BackendKind, _ availability: BackendAvailability, _ choice: BackendKind?
) -> String {
    switch availability {
    case .available: "\(kind.rawValue): available" + (kind == choice ? ", taken by auto" : "")
    case .unavailable(let error): "\(kind.rawValue): unavailable: \(error.message)"
    }
}

private func json(
    _ offers: [(BackendKind, BackendAvailability)], _ choice: BackendKind?
) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.number("schemaVersion", 1)
    writer.beginArray("backends")
    for (kind, availability) in offers {
        writer.beginObject()
        writer.string("kind", kind.rawValue)
        writer.bool("available", availability.isAvailable)
        if case .unavailable(let error) = availability { writer.string("reason", error.message) }
        writer.endObject()
    }
    writer.endArray()
    if let choice { writer.string("auto", choice.rawValue) }
    writer.endObject()
    return writer.text + [0x0A]
}
