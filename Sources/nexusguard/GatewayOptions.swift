// SPDX-License-Identifier: Apache-2.0
// What `up`, `sync` and `plan` are told of forwards.
import Keeper
import TunnelPlan
import WireGuard

let gatewayOptions = [
    Option(
        long: "forward", argument: "LIST",
        help: "lead ports of this host on, as tcp:8443=10.1.2.3:443,udp:5000-5010=10.1.2.3:5000; "
            + "with ! at the end the target sees who asks"),
    Option(
        long: "masquerade", help: "what leaves the tunnel by another link does so as this host"),
    Option(long: "forward-peers", help: "let peers reach each other through this host"),
    Option(
        long: "answer-through-tunnel",
        help: "answer what came through the tunnel through it, whatever the routes say"),
]

func readGatewayOptions(
    _ invocation: Invocation, into options: inout KeeperClient.ApplyOptions
) throws(Failure) {
    options.masquerades = invocation.has("masquerade")
    options.forwardsBetweenPeers = invocation.has("forward-peers")
    options.answersThroughTunnel = invocation.has("answer-through-tunnel")
    for text in (invocation.values["forward"] ?? "").split(separator: ",") {
        guard let forward = PortForward(option: text) else {
            throw .usage(
                "--forward: \(quoted(String(text))) is not PROTOCOL:PORT[-PORT]=ADDRESS:PORT, with "
                    + "tcp or udp, an IPv6 address in brackets, and at most "
                    + "\(PortForward.shiftedPortLimit) ports where the target's are others")
        }
        options.forwards.append(forward)
    }
}

extension PortForward {
    /// `tcp:8443=10.1.2.3:443`, `udp:5000-5010=[fd00::2]:5000!`.
    init?(option text: Substring) {
        let keepsSource = text.hasSuffix("!")
        let text = keepsSource ? text.dropLast() : text
        let sides = text.split(separator: "=", omittingEmptySubsequences: false)
        guard sides.count == 2, let target = Endpoint(String(sides[1])), target.zone == nil else {
            return nil
        }
        let words = sides[0].split(separator: ":", omittingEmptySubsequences: false)
        guard words.count == 2, let transport = Transport(rawValue: String(words[0])) else {
            return nil
        }
        let ports = words[1].split(separator: "-", omittingEmptySubsequences: false)
            .map { Self.port($0) }
        guard 1...2 ~= ports.count, let first = ports[0], let last = ports[ports.count - 1] else {
            return nil
        }
        self.init(
            transport, publicPort: first, publicPortEnd: last, target: target.address,
            targetPort: target.port, keepsSource: keepsSource)
    }

    /// UInt16.init takes a sign; a port has none.
    private static func port(_ text: Substring) -> UInt16? {
        text.utf8.allSatisfy { 0x30...0x39 ~= $0 } ? UInt16(text) : nil
    }
}
