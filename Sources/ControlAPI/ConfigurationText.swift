// SPDX-License-Identifier: Apache-2.0
// What goes to the keeper: a file as wg-quick(8) reads it, without a hook (C26).

import WireGuard

/// What the device's operator decides about the interface, whatever the hub says.
public struct InterfaceSettings: Equatable, Sendable {
    /// nil: the hub's.
    public var listenPort: UInt16?
    /// nil: the hub's, or automatic.
    public var mtu: UInt16?
    /// nil: wg-quick's way.
    public var table: RoutingTable?
    public var fwmark: UInt32?
    /// Whether the hub's servers and domains are used.
    public var acceptsDNS = true

    public init() {}
}

extension ValidatedConfig {
    /// The configuration with the device's own settings and key.
    public func configurationFile(
        privateKey: SecretKey, settings: InterfaceSettings = InterfaceSettings()
    ) -> ConfigurationFile {
        var file = ConfigurationFile()
        file.interface.privateKey = privateKey
        file.interface.listenPort = settings.listenPort ?? listenPort
        file.interface.fwmark = settings.fwmark
        file.interface.addresses = addresses
        file.interface.mtu = settings.mtu ?? mtu
        file.interface.table = settings.table
        if settings.acceptsDNS {
            file.interface.dnsServers = dnsServers
            file.interface.searchDomains = searchDomains
        }
        file.peers = [hub] + peers
        return file
    }

    /// Its text. Holds the keys; the caller erases it.
    public func configurationText(
        privateKey: SecretKey, settings: InterfaceSettings = InterfaceSettings()
    ) -> [UInt8] {
        configurationFile(privateKey: privateKey, settings: settings).write()
    }
}
