// SPDX-License-Identifier: Apache-2.0
import Glibc
import HostNetwork
import TunnelPlan
import WireGuard

/// `words`: directory, address of the bus, verb, interface, its index, settings.
func resolver(_ words: [String]) throws {
    guard words.count >= 5, let name = InterfaceName(words[3]), let index = UInt32(words[4]) else {
        fail("resolver: which directory, bus, verb, interface and index?", code: 2)
    }
    var paths = Resolver.Paths()
    paths.resolvConf = "\(words[0])/resolv.conf"
    paths.nameServiceSwitch = "\(words[0])/nsswitch.conf"
    paths.state = "\(words[0])/state"
    paths.run = words[0]
    paths.busAddress = words[1]
    paths.resolvconfPrograms = ["\(words[0])/resolvconf"]
    let resolver = Resolver(paths)
    switch words[2] {
    case "apply":
        say("\(try resolver.apply(dnsSettings(words.dropFirst(5)), for: name, index: index))")
    case "current": say(resolver.current(name, index: index).map(describe) ?? "nothing")
    case "revert": try resolver.revert(name, index: index)
    default: fail("resolver: unknown verb \(words[2])", code: 2)
    }
}

private func dnsSettings(_ words: ArraySlice<String>) -> DNSSettings {
    var settings = DNSSettings()
    for word in words {
        let bytes = Array(word.utf8)
        if let server = DNSServer(bytes.span) {
            settings.servers.append(server)
        } else if let domain = SearchDomain(bytes.span) {
            settings.searchDomains.append(domain)
        } else {
            fail("resolver: neither server nor domain: \(word)", code: 2)
        }
    }
    return settings
}

private func describe(_ settings: DNSSettings) -> String {
    let servers = settings.servers.map { server in
        var text: [UInt8] = []
        server.append(to: &text)
        return String(decoding: text, as: UTF8.self)
    }
    return (servers + settings.searchDomains.map(\.description)).joined(separator: " ")
}
