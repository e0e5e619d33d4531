// SPDX-License-Identifier: Apache-2.0
import Glibc
import HostNetwork
import TunnelPlan
import WireGuard

func firewall(_ words: [String]) throws {
    guard words.count >= 2, let interface = InterfaceName(words[1]) else {
        fail("firewall: which verb and interface?", code: 2)
    }
    let firewall = try Firewall()
    switch words[0] {
    case "apply": try firewall.apply(firewallSettings(words.dropFirst(2)), for: interface)
    case "current": say(describe(try firewall.current(interface)))
    case "remove": try firewall.remove(interface)
    case "watch": try watchFirewall(interface)
    default: fail("firewall: unknown verb \(words[0])", code: 2)
    }
}

private func firewallSettings(_ words: ArraySlice<String>) -> FirewallSettings {
    var settings = FirewallSettings()
    for word in words {
        let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
        switch parts[0] {
        case "clamp": settings.clampsSegmentSize = true
        case "mark": settings.fullTunnelMark = UInt32(parts[1])
        case "protect":
            guard let address = interfaceAddress(parts[1]) else { fail("no address: \(word)") }
            settings.protectedAddresses.append(address)
        case "own":
            guard let address = interfaceAddress(parts[1]) else { fail("no address: \(word)") }
            settings.ownAddresses.append(address)
        case "forward":
            let words = String(parts[1].map { $0 == "," ? " " : $0 })
            guard let forward = PortForward(words: words) else { fail("no forward: \(word)") }
            settings.forwards.append(forward)
        case "masquerade": settings.masquerades = true
        case "answer": settings.answerMark = UInt32(parts[1])
        default: fail("firewall: unknown setting \(word)", code: 2)
        }
    }
    return settings
}

private func interfaceAddress(_ text: String) -> InterfaceAddress? {
    let bytes = Array(text.utf8)
    return InterfaceAddress(bytes.span)
}

private func describe(_ state: FirewallState) -> String {
    switch state {
    case .absent: return "absent"
    case .foreign: return "foreign"
    case .ours(let settings, let isIntact):
        var words = [isIntact ? "intact" : "changed"]
        if settings.clampsSegmentSize { words.append("clamp") }
        if let mark = settings.fullTunnelMark { words.append("mark=\(mark)") }
        words += settings.protectedAddresses.map { "protect=\($0)" }
        words += settings.ownAddresses.map { "own=\($0)" }
        words += settings.forwards.map { forward in
            "forward=" + String(forward.words.map { $0 == " " ? "," : $0 })
        }
        if settings.masquerades { words.append("masquerade") }
        if let mark = settings.answerMark { words.append("answer=\(mark)") }
        return words.joined(separator: " ")
    }
}

/// Prints one line for each event until standard input ends.
private func watchFirewall(_ interface: InterfaceName) throws {
    var monitor = try FirewallMonitor(interface)
    say("watching")
    while true {
        var entries = [
            pollfd(fd: monitor.descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0),
        ]
        _ = unsafe poll(&entries, 2, -1)
        if entries[0].revents != 0 { say(monitor.next() ? "touched" : "other") }
        if entries[1].revents != 0 { return }
    }
}
