// SPDX-License-Identifier: Apache-2.0
// A tunnel that the agent or the hub of this machine wants up is not taken down behind its back: it
// would ask for it again, and has no right to start the keeper that ends with `down`.
import Agent
import ControlAPI
import HostProcess
import Hub
import TunnelPlan

func refuseWhereWanted(_ name: InterfaceName) throws(Failure) {
    if isAgents(name) {
        throw Failure(
            code: ExitCode.busy,
            "the agent of this host wants \(name) up; run \(programName) unenroll to leave the hub, "
                + "or stop the agent first (systemctl stop nexusguard-agent)")
    }
    if isHubs(name) {
        throw Failure(
            code: ExitCode.busy,
            "the hub of this host wants \(name) up; stop it first (systemctl stop nexusguard-hub)")
    }
}

/// False also where there is no agent, or one that does not answer.
private func isAgents(_ name: InterfaceName) -> Bool {
    guard let status = try? AgentClient().status() else { return false }
    return status.isEnrolled && status.interface == name.description && status.code != "revoked"
}

private func isHubs(_ name: InterfaceName) -> Bool {
    guard HostFile.exists(defaultHubSocket),
        let client = try? HubClient(Invocation()),
        let hub = try? client.ask(HubView.self, "GET", "/status")
    else { return false }
    return hub.interface == name.description
}
