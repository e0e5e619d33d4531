// SPDX-License-Identifier: Apache-2.0
// What a device is told to do. An answer may be lost, so a command comes with each answer until the hub
// sees that it was done: a device tells the id of the latest one, offers its new key, or comes with its
// new token.
import ControlAPI
import Crypto

/// How long a token made for `reprovision` is good, in milliseconds.
private let reprovisionTokenLife: Int64 = 60 * 60_000

extension HubCore {
    /// The command for this heartbeat's answer, with its id. `done`: what the device says of the latest
    /// one; nil: it never says, and is told to reset once only.
    mutating func handOut(
        _ device: Device, done: String?, at now: Milliseconds
    ) throws(Refusal) -> (DeviceCommand, id: String)? {
        guard let command = device.command else { return nil }
        let former = live[device.id]?.handedOut.flatMap { $0.command == command ? $0 : nil }
        if let former, former.id == done {
            try commit([.device(withoutCommand(device))])
            live[device.id]?.handedOut = nil
            return nil
        }
        var handed = former ?? HandedOut(id: hexadecimal(Random.bytes(8)), command: command)
        var changes: [Change] = []
        let answer: DeviceCommand
        switch command {
        case .reset:
            answer = .reset
            if done == nil { changes.append(.device(withoutCommand(device))) }
        case .rotateKey: answer = .rotateKey
        case .reprovision:
            let bearer = BearerToken.generate()
            let token = reprovisionToken(for: device, bearer.digest, at: now)
            // The one before was lost with its answer, or did not serve.
            if let tokenId = handed.tokenId, model.tokens[tokenId]?.uses == 0 {
                changes.append(.removeToken(tokenId))
            }
            changes.append(.token(token))
            handed.tokenId = token.id
            answer = .reprovision(token: SecretText(bearer))
        }
        if former == nil { changes.append(told(device, command, at: now)) }
        try commit(changes)
        live[device.id, default: LiveDevice()].handedOut = handed
        return (answer, handed.id)
    }

    private func withoutCommand(_ device: Device) -> Device {
        var device = device
        device.command = nil
        return device
    }

    private func reprovisionToken(
        for device: Device, _ digest: String, at now: Milliseconds
    ) -> EnrolToken {
        var token = EnrolToken(
            id: newTokenId(), digest: digest, label: "reprovision \(device.name)", created: now)
        token.expires = now + reprovisionTokenLife
        token.deviceId = device.id
        return token
    }

    private func told(_ device: Device, _ command: PendingCommand, at now: Milliseconds) -> Change {
        .log(
            LogRecord(
                time: now, level: "info", tag: "command",
                message: "\(device.name) was told: \(command.text)", deviceId: device.id))
    }

    /// Eight hexadecimal digits that no token has.
    func newTokenId() -> String {
        while true {
            let id = hexadecimal(Random.bytes(4))
            if model.tokens[id] == nil { return id }
        }
    }
}
