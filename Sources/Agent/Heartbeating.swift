// SPDX-License-Identifier: Apache-2.0
// One heartbeat: what is reported, and what its answer brings. Blocking.
import ControlAPI
import Crypto
import WireGuard

/// What a good answer brought.
struct HeartbeatResult: Sendable {
    var news: HeartbeatNews
    /// A configuration, or forwards, that came with it.
    var offer: Offer?
    var reprovisionToken: SecretText?
    var nextPin: String?

    enum Offer: Sendable {
        case usable(UsableConfiguration)
        case refused(ConfigRefusal)
    }
}

struct Heartbeat: Sendable {
    let request: HeartbeatRequest
    let token: BearerToken
    let hwid: String
    /// What is applied, or would be if a keeper answered.
    let present: UsableConfiguration?

    func perform(_ hub: HubConnection) throws(ControlFault) -> HeartbeatResult {
        let id = request.deviceId
        var body = try hub.call(.heartbeat, Wire.encode(request), token: token, deviceId: id)
        defer { erase(&body) }
        let answer = try decoded(HeartbeatAnswer.self, body, "the answer to the heartbeat")
        var news = HeartbeatNews(
            revision: Revision(
                configHash: answer.configHash, forwardsHash: answer.forwardsHash))
        news.intervalSeconds = answer.heartbeatSeconds.map { HeartbeatInterval.seconds($0) }
        var result = HeartbeatResult(news: news)
        result.nextPin = answer.nextPin
        take(answer.command, &result)
        result.news.commandId = answer.commandId
        try takeOffer(answer, &result)
        return result
    }

    private func take(_ command: DeviceCommand?, _ result: inout HeartbeatResult) {
        switch command {
        case .reset: result.news.command = .reset
        case .rotateKey: result.news.command = .rotateKey
        case .reprovision(let token):
            result.news.command = .reprovision
            result.reprovisionToken = token
        case .unknown, nil: break
        }
    }

    private func takeOffer(
        _ answer: HeartbeatAnswer, _ result: inout HeartbeatResult
    ) throws(ControlFault) {
        var config: WireGuardConfig?
        if let salt = answer.salt, let envelope = answer.encrypted {
            config = try openedConfig(
                envelope, salt: salt, hwid: hwid, deviceId: request.deviceId)
            config?.privateKey = nil
        }
        guard config != nil || answer.forwards != nil,
            let newConfig = config ?? present?.stored.config
        else { return }
        let stored = StoredConfiguration(
            configHash: config == nil
                ? present?.stored.configHash ?? "" : answer.configHash,
            forwardsHash: answer.forwards == nil
                ? present?.stored.forwardsHash ?? "" : answer.forwardsHash,
            config: newConfig, forwards: answer.forwards ?? present?.stored.forwards ?? [])
        result.news.revision = stored.revision
        result.news.isOffer = true
        do throws(ConfigRefusal) {
            let usable = try UsableConfiguration(stored)
            result.news.isSameMeaning = present.map { usable.meansTheSame(as: $0) } ?? false
            result.offer = .usable(usable)
        } catch {
            result.offer = .refused(error)
        }
    }
}
