// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import SQLite
import WireGuard

/// How a device is, as far as is known: in memory, and written now and then. What is lost with the
/// process comes back with the next heartbeat.
struct LiveDevice: Equatable, Sendable {
    /// Last heartbeat; nil: none since the device was enrolled.
    var seen: Milliseconds?
    var judge = SessionJudge()
    var state = DeviceState.disconnected
    var isTunnelUp = false
    var backend: DeviceBackend?
    /// As the device tells it; nil: never.
    var handshake: Milliseconds?
    var received: UInt64 = 0
    var sent: UInt64 = 0
    var configHash: String?
    var forwardsHash: String?
    var rejectedHash: String?
    var rejectedCode: String?
    var problems: [String] = []

    /// What the hub's own interface knows of the peer.
    var peer: PeerReport?
    /// Where a key that the device has begun to use is reached: the former one's place. For a hub that
    /// begins the first handshake the device's packets wait for no timer.
    var movedEndpoint: Endpoint?
    /// What a heartbeat is compared with; nil: to be made.
    var wanted: WantedHashes?
    /// nil: nothing since this process began, or since the operator asked for something else.
    var handedOut: HandedOut?
}

/// A command that the device was told, and may not have heard.
struct HandedOut: Equatable, Sendable {
    /// What the device tells when it has done it.
    var id: String
    var command: PendingCommand
    /// Of the token that came with it.
    var tokenId: String?
}

/// A peer of the hub's interface, without secrets.
struct PeerReport: Equatable, Sendable {
    var endpoint: String?
    /// nil: never.
    var handshake: Milliseconds?
    var received: UInt64 = 0
    var sent: UInt64 = 0
}

extension Store {
    /// Devices without a row are left out.
    func loadLive() throws(StoreError) -> [String: LiveDevice] {
        var devices: [String: LiveDevice] = [:]
        try each("live") { row -> (String, LiveDevice)? in
            guard let id = row.text("device_id"), let seen = row.integer("seen") else {
                return nil
            }
            var device = LiveDevice()
            device.seen = seen
            device.state = row.text("state").flatMap { DeviceState(rawValue: $0) } ?? .disconnected
            device.backend = row.text("backend").flatMap { DeviceBackend(rawValue: $0) }
            device.isTunnelUp = row.flag("tunnel_up")
            device.handshake = row.integer("handshake")
            device.received = UInt64(clamping: row.integer("received") ?? 0)
            device.sent = UInt64(clamping: row.integer("sent") ?? 0)
            device.problems = (row.text("problems") ?? "").split(separator: ",").map(String.init)
            return (id, device)
        } body: {
            devices[$0.0] = $0.1
        }
        return devices
    }

    /// One transaction. Devices that are gone meanwhile are left out.
    static func write(
        live rows: [(id: String, LiveDevice)], to database: Database
    ) throws(SQLiteError) {
        guard !rows.isEmpty else { return }
        try database.transaction { () throws(SQLiteError) in
            for (id, device) in rows {
                guard let seen = device.seen else { continue }
                try database.run(
                    """
                    INSERT OR REPLACE INTO live (device_id, seen, state, backend, tunnel_up,
                    handshake, received, sent, problems) SELECT id, ?, ?, ?, ?, ?, ?, ?, ?
                    FROM devices WHERE id = ?
                    """,
                    [
                        .integer(seen), .text(device.state.rawValue),
                        .text(device.backend?.rawValue ?? ""), Value(device.isTunnelUp),
                        Value(device.handshake), .integer(Int64(clamping: device.received)),
                        .integer(Int64(clamping: device.sent)),
                        .text(device.problems.joined(separator: ",")), .text(id),
                    ])
            }
        }
    }
}
