// SPDX-License-Identifier: Apache-2.0
import HostNetwork
import HostProcess
import Keeper
import WireGuard

extension LiveHost {
    public var descriptors: [Int32] {
        var descriptors = [monitor.descriptor, names.descriptor]
        switch firewallMonitor {
        case .some(let monitor): descriptors.append(monitor.descriptor)
        case nil: break
        }
        switch sleep {
        case .some(let monitor): descriptors.append(monitor.descriptor)
        case nil: break
        }
        return descriptors
    }

    /// Each kind at most once: the keeper looks again anyway.
    public mutating func drainEvents() -> [HostEvent] {
        var events: [HostEvent] = []
        while let event = monitor.next() { add(meaning(of: event), to: &events) }
        if firewallMonitor?.next() == true { add(.tunnelChanged, to: &events) }
        if hasWoken() { add(.overflow, to: &events) }
        while let answer = names.next() { events.append(meaning(of: answer)) }
        return events
    }

    /// Whatever happened meanwhile went unseen (C87).
    private mutating func hasWoken() -> Bool {
        let news: SleepMonitor.News
        switch sleep {
        case .some(let monitor): news = monitor.next()
        case nil: return false
        }
        if news == .ended { sleep = nil }
        return news == .woke
    }

    private func add(_ event: HostEvent, to events: inout [HostEvent]) {
        if !events.contains(event) { events.append(event) }
    }

    private mutating func meaning(of event: NetlinkEvent) -> HostEvent {
        if event.kind == .overflow { return .overflow }
        if event.port != 0, event.port == netlink.port { return .ownEcho }
        switch event.kind {
        case .link where event.linkIndex != index:
            // Ours may have just come, or come back under its name.
            let ours = (try? netlink.link(named: name))?.index
            guard ours == event.linkIndex else { return .pathsChanged }
            index = ours
            return .tunnelChanged
        case .forwarding: return .tunnelChanged
        case .rule, .ruleGone:
            return event.protocolNumber == Netlink.ownProtocol ? .tunnelChanged : .pathsChanged
        default:
            return event.linkIndex != 0 && event.linkIndex == index ? .tunnelChanged : .pathsChanged
        }
    }

    // MARK: names

    public mutating func resolve(_ host: HostName) {
        do throws(NetworkError) {
            // The port is the keeper's to add.
            try names.request(host, port: 0, id: 0)
        } catch {
            // Without an answer the keeper asks again.
            Log.write(.warning, error.message)
        }
    }

    private mutating func meaning(of answer: NameLookup.Answer) -> HostEvent {
        let host = answer.request.host
        switch answer.outcome {
        case .temporary(let reason):
            return .unresolved(host, reason: reason, isFinal: false)
        case .final(let reason):
            return .unresolved(host, reason: reason, isFinal: true)
        case .found(let endpoints):
            let ordered = NameLookup.orderedByReachability(endpoints) { isReachable($0.address) }
            let addresses = ordered.map { ResolvedAddress($0.address, zone: $0.zone) }
            resolved[host] = addresses
            return .resolved(host, addresses)
        }
    }

    /// By another link than ours.
    private func isReachable(_ address: IPAddress) -> Bool {
        guard let path = try? netlink.path(to: address, mark: rules.first { $0.isInverted }?.mark)
        else { return false }
        return path.linkIndex != index
    }
}
