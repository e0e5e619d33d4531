// SPDX-License-Identifier: Apache-2.0
import Backends
import HostProcess

let benchVerb = Verb(
    name: "bench", summary: "Measure nexusguard-engine on this machine.",
    details: "Runs `nexusguard-engine --bench` for a few seconds.",
    options: [Option(long: "json", help: "print the result as JSON")], run: bench)

/// Becomes the engine, so that its output and exit code are its own.
private func bench(_ invocation: Invocation) throws(Failure) -> UInt8 {
    let path: String
    do throws(BackendError) {
        path = try UserspaceBackend.programPath()
    } catch {
        throw Failure(error)
    }
    let arguments = ["--bench"] + (invocation.has("json") ? ["--json"] : [])
    try asking { () throws(HostError) in try Host.become(path, arguments: arguments) }
}
