// SPDX-License-Identifier: Apache-2.0
import Keeper
import Testing
import TunnelPlan
import WireGuard

@testable import nexusguard

@Suite struct GatewayOptionsTests {
    private func read(_ list: String) throws(Failure) -> [PortForward] {
        var invocation = Invocation()
        invocation.values["forward"] = list
        var options = KeeperClient.ApplyOptions()
        try readGatewayOptions(invocation, into: &options)
        return options.forwards
    }

    @Test func aListOfForwardsIsRead() throws {
        let forwards = try read("tcp:8443=10.1.2.3:443,udp:5000-5010=[fd00::2]:5000!")
        #expect(
            forwards == [
                PortForward(
                    .tcp, publicPort: 8443, target: IPAddress("10.1.2.3")!, targetPort: 443)!,
                PortForward(
                    .udp, publicPort: 5000, publicPortEnd: 5010, target: IPAddress("fd00::2")!,
                    targetPort: 5000, keepsSource: true)!,
            ])
    }

    @Test(arguments: [
        "tcp", "tcp:1", "tcp:1=", "tcp:1=10.0.0.1", "tcp:=10.0.0.1:1", "tcp:0=10.0.0.1:1",
        "tcp:+1=10.0.0.1:1", "tcp:1-=10.0.0.1:1", "tcp:2-1=10.0.0.1:1", "tcp:1-2-3=10.0.0.1:1",
        "icmp:1=10.0.0.1:1", "tcp:1=host:1", "tcp:1=fd00::2:1=2", "tcp:1=10.0.0.1:0",
        "tcp:1=10.0.0.1:65536", "tcp:1=[fe80::1%1]:1", "tcp:1 =10.0.0.1:1", "tcp:1=10.0.0.1:1!!",
    ])
    func whatIsNoForwardIsUsage(_ text: String) {
        #expect(throws: Failure.self) { try read(text) }
    }
}
