// SPDX-License-Identifier: Apache-2.0
// A link takes the place of another: it is made and filled beside it, and only then the old one goes.
// What passes meanwhile passes by the old one; what is lost is what comes between its end and the first
// handshake of the new one.
import Backends
import HostNetwork
import HostProcess
import Keeper
import TunnelPlan
import WireGuard

extension LiveHost {
    /// Milliseconds after which an engine that a dead keeper has started is there, or never comes.
    private static var startLimit: Int64 { 5_000 }
    /// Milliseconds that a device may take to begin the handshakes it is asked for.
    private static var greetingLimit: Int64 { 500 }

    mutating func createReplacement(_ kind: BackendKind) throws(KeeperFailure) {
        guard try ownLink() != nil else { throw noLink }
        try settleReplacement()
        let maker = self.backend(kind)
        if case .unavailable(let error) = maker.availability() { throw KeeperFailure(error) }
        let new = Replacement(
            name: try nameBeside(maker), kind: kind, beganAt: Host.bootMilliseconds())
        try replacements.begin(new)
        replacement = new
        raiseFloorAboveOurs()
        do throws(KeeperFailure) {
            try askingBackend { () throws(BackendError) in try maker.create(new.name) }
            if kind == .userspace { setFloor(of: new.name) }
            try mark(new.name)
        } catch {
            try? drop(new)
            throw error
        }
    }

    /// A name for the time being: that of the tunnel, cut, and a number. An engine that began under one
    /// may still run, under the tunnel's name.
    private func nameBeside(_ maker: any Backend) throws(KeeperFailure) -> InterfaceName {
        for number in 2...9 {
            guard let other = InterfaceName(String(name.description.prefix(13)) + "_\(number)"),
                other != name
            else { continue }
            let link = try askingNetwork { () throws(NetworkError) in
                try netlink.link(named: other)
            }
            if link == nil, maker.isFree(other) { return other }
        }
        throw KeeperFailure(
            .busy, "cannot replace \(name): \(name.description.prefix(13))_2 to _9 are all taken")
    }

    /// The old one goes, the new one gets its name. A link that is up cannot be renamed before
    /// Linux 6.2.
    mutating func exchangeLink() throws(KeeperFailure) {
        guard let new = replacement else {
            throw KeeperFailure(.failed, "there is no link to take the place of \(name)")
        }
        try setDNS(nil)
        if let own = try ownLink() { try remove(own) }
        try finish(new)
        foundAddresses = []
    }

    private mutating func finish(_ new: Replacement) throws(KeeperFailure) {
        let link = try askingNetwork { () throws(NetworkError) in
            guard let link = try netlink.link(named: new.name) else {
                throw NetworkError(.notFound, "\(new.name) was removed before it was \(name)")
            }
            return link
        }
        let owner = self.backend(new.kind)
        try askingBackend { () throws(BackendError) in try owner.rename(new.name, to: name) }
        try askingNetwork { () throws(NetworkError) in
            try netlink.rename(index: link.index, to: name)
        }
        replacement = nil
        replacements.end()
        index = link.index
    }

    /// What a keeper that died, or a step that failed, left of a replacement: where the old link is
    /// there, the new one goes; where it has gone, the new one is all there is.
    mutating func settleReplacement() throws(KeeperFailure) {
        guard let left = replacement ?? replacements.read() else { return }
        // A keeper that died may have left an engine that is just beginning.
        if replacement == nil { try awaitStart(of: left) }
        let (own, new) = try askingNetwork { () throws(NetworkError) in
            (try netlink.link(named: name), try netlink.link(named: left.name))
        }
        // One without the mark was not even made whole.
        if own == nil, let new, new.alias == ownerTag { return try finish(left) }
        try drop(left)
    }

    private func awaitStart(of left: Replacement) throws(KeeperFailure) {
        guard left.kind == .userspace else { return }
        var pause = Poller()
        while !userspace.isAnswered(left.name),
            0..<Self.startLimit ~= Host.bootMilliseconds() - left.beganAt
        {
            // Where the old one has gone the new one was whole.
            let own = try askingNetwork { () throws(NetworkError) in try netlink.link(named: name) }
            if own == nil { return }
            pause.wait(milliseconds: 5)
        }
    }

    private mutating func drop(_ left: Replacement) throws(KeeperFailure) {
        replacement = nil
        let owner = self.backend(left.kind)
        try askingBackend { () throws(BackendError) in try owner.remove(left.name) }
        try askingNetwork { () throws(NetworkError) in
            // An engine that does not answer any more may have left its link.
            if let link = try netlink.link(named: left.name), link.alias == ownerTag {
                try netlink.removeLink(index: link.index)
            }
        }
        replacements.end()
    }

    // MARK: sessions

    /// A keepalive that is turned on is sent at once, and without a session it begins a handshake: it
    /// is turned off again when all have begun one.
    mutating func greet(_ keys: [PublicKey]) throws(KeeperFailure) {
        try configure(DeviceChange(), keys.map { PeerChange(of: $0, keepalive: 1) })
        guard let own = try ownLink() else { throw noLink }
        let device = self.backend(own.kind)
        let waited = Set(keys)
        let deadline = Host.monotonicMilliseconds() + Self.greetingLimit
        var pause = Poller()
        while Host.monotonicMilliseconds() < deadline {
            let now = try askingBackend { () throws(BackendError) in try device.snapshot(name) }
            if now.peers.allSatisfy({ $0.sentBytes > 0 || !waited.contains($0.publicKey) }) {
                break
            }
            pause.wait(milliseconds: 5)
        }
        try configure(DeviceChange(), keys.map { PeerChange(of: $0, keepalive: 0) })
    }
}

extension PeerChange {
    fileprivate init(of key: PublicKey, keepalive seconds: UInt16) {
        self.init(publicKey: key)
        updateOnly = true
        keepalive = seconds
    }
}
