// SPDX-License-Identifier: Apache-2.0
// What the verbs of the agent have in common.
import Agent
import ControlAPI
import HostProcess
import TunnelPlan

let socketOption = Option(
    long: "socket", argument: "PATH",
    help: "the agent's socket; default \(AgentClient.defaultSocket)")
let stateOption = Option(
    long: "state", argument: "DIRECTORY",
    help: "where the identity is kept; default "
        + AgentProgram.Options(version: "", machine: "").stateDirectory)
let userOption = Option(
    long: "user", argument: "NAME", help: "whom to become when root starts it; default nexusguard")
let hubOptions = [
    Option(
        long: "pin", argument: "PIN",
        help: "sha256//… of the hub's public key: nothing else is asked of its certificate"),
    Option(long: "ca", argument: "FILE", help: "certificates to trust beside the system's"),
    Option(
        long: "name", argument: "NAME", help: "what the hub's operator sees; default: host name"),
]

func agentClient(_ invocation: Invocation) -> AgentClient {
    AgentClient(path: invocation.values["socket"] ?? AgentClient.defaultSocket)
}

/// From `url` and the options; the token is read here, before rights are given up.
func enrolmentOrder(
    _ url: String, _ token: SecretText, _ invocation: Invocation
) throws(Failure) -> EnrolmentOrder {
    let hub: HubURL
    do throws(HubURL.Refusal) {
        hub = try HubURL(url)
    } catch {
        throw .usage("\(quoted(url)) is no address of a hub: \(error.reason)")
    }
    var order = EnrolmentOrder(url: hub, token: token)
    if let pin = invocation.values["pin"] {
        guard pin.hasPrefix("sha256//"), pin.utf8.count == 52 else {
            throw .usage("--pin: a pin is sha256// and 44 characters of base64")
        }
        order.pins = [pin]
    }
    order.caFile = invocation.values["ca"].map { Host.absolutePath($0) }
    order.name = invocation.values["name"] ?? Host.name
    return order
}

extension Failure {
    init(_ error: AgentFailure) { self.init(code: error.exitCode, error.message) }
}

func askingAgent<Value>(
    _ body: () throws(AgentFailure) -> Value
) throws(Failure) -> Value {
    do throws(AgentFailure) {
        return try body()
    } catch {
        throw Failure(error)
    }
}
