// SPDX-License-Identifier: Apache-2.0
// What a device is told to do. Each command is handed out with one heartbeat's answer; whether it
// was done shows in what the device does then.
import ControlAPI
import Crypto

/// How long a token made for `reprovision` is good, in milliseconds.
private let reprovisionTokenLife: Int64 = 60 * 60_000

extension HubCore {
    /// The command for this heartbeat's answer. It is written as handed out before it is answered:
    /// a lost answer may lose `reset` and `rotateKey`, which the operator can repeat, but no command
    /// is done twice.
    mutating func handOut(_ device: Device, at now: Milliseconds) throws(Refusal) -> DeviceCommand?
    {
        guard let command = device.command else { return nil }
        var changed = device
        changed.command = nil
        var changes: [Change] = []
        let answer: DeviceCommand
        switch command {
        case .reset: answer = .reset
        case .rotateKey: answer = .rotateKey
        case .reprovision:
            let bearer = BearerToken.generate()
            var token = EnrolToken(
                id: newTokenId(), digest: bearer.digest, label: "reprovision \(device.name)",
                created: now)
            token.expires = now + reprovisionTokenLife
            token.deviceId = device.id
            changes.append(.token(token))
            answer = .reprovision(token: SecretText(bearer))
        }
        changes.insert(.device(changed), at: 0)
        changes.append(
            .log(
                LogRecord(
                    time: now, level: "info", tag: "command",
                    message: "\(device.name) was told: \(command.text)", deviceId: device.id)))
        try commit(changes)
        return answer
    }

    /// Eight hexadecimal digits that no token has.
    func newTokenId() -> String {
        while true {
            let id = hexadecimal(Random.bytes(4))
            if model.tokens[id] == nil { return id }
        }
    }
}
