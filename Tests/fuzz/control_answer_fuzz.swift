// SPDX-License-Identifier: Apache-2.0
// Any bytes as an answer of a control server: nothing crashes; only a revocation of this very device
// ends a tunnel; a configuration that is accepted has one hash and reaches the keeper as itself, without
// a hook; canonical JSON stays as it is. The first line is status, Retry-After and media type.

import ControlAPI
import WireGuard

private let sampleKey = "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE="
private let otherKey = "YmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmI="
private let now = Timestamp(unixSeconds: 1_796_033_662)

let lineSamples = [
    "200;;application/json", "410;;application/problem+json", "404;7;application/problem+json",
    "429;Mon, 30 Nov 2026 10:02:00 GMT;application/problem+json",
    "{", "}", "},", "[", "]", ",", "{}",
    #""deviceId":"dev-1","#, #""code":"revoked","status":410,"title":"t","type":"about:blank""#,
    #""code":"unknown_device","#, #""detail":"d\u0007\n","#,
    #""internalIp":"10.172.21.2/32, fd00::2/128","serverPub":"\#(sampleKey)","#,
    #""endpoint":"hub.example:51820","allowedIps":"10.172.21.0/24, 10.0.0.9/8""#,
    #","dns":"10.172.21.1, lan","mtu":1380,"listenPort":0,"persistentKeepalive":25"#,
    #","presharedKey":"\#(sampleKey)","privateKey":"\#(sampleKey)","serverWgIp":"fd00::1""#,
    #","peers":[{"publicKey":"\#(otherKey)","allowedIps":"10.9.0.0/16","name":"a # b"}]"#,
    #","endpoint":"[2001:db8::1]:7","configHash":"x","forwardsHash":null"#,
    #""configHash":"a","forwardsHash":"b","serverTime":"2026-11-30T10:14:22Z""#,
    #","command":{"type":"reprovision","token":"t"},"forwards":[]"#,
    #"{"id":"f","protocol":"tcp","publicPort":1,"publicPortEnd":9,"targetIp":"::1","targetPort":2}"#,
]

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzAnswer(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = unsafe Array(UnsafeBufferPointer(start: data, count: count))
    countLines(bytes)
    let lines = bytes.split(
        separator: UInt8(ascii: "\n"), maxSplits: 1, omittingEmptySubsequences: false)
    let head = String(decoding: lines[0], as: UTF8.self)
        .split(separator: ";", maxSplits: 2, omittingEmptySubsequences: false).map(String.init)
    let body = lines.count > 1 ? Array(lines[1]) : []
    let answer = ReceivedAnswer(
        status: Int(head[0]) ?? 200, contentType: head.count > 2 ? head[2] : nil,
        retryAfter: head.count > 1 ? head[1] : nil, body: body)
    for call in DeviceCall.allCases { checkClass(call, answer) }
    checkConfiguration(body)
    if let forwards = try? Wire.decode([Forward].self, from: body),
        let hash = try? forwardsHash(forwards)
    {
        precondition(try! forwardsHash(forwards.reversed()) == hash)
    }
    if let canonical = try? CanonicalJSON.canonicalize(body) {
        precondition(try! CanonicalJSON.canonicalize(canonical) == canonical)
    }
    return 0
}

private func checkClass(_ call: DeviceCall, _ answer: ReceivedAnswer) {
    switch AnswerClass.classify(call, answer, deviceId: "dev-1", now: now) {
    case .revoked:
        let problem = try! Wire.decode(Problem.self, from: answer.body)
        precondition(problem.deviceId == "dev-1" && problem.code == "revoked")
        precondition(answer.status == 410 && call.isAuthenticated)
    case .transient(let reason, let seconds):
        precondition(reason.unicodeScalars.allSatisfy { 0x20..<0x7F ~= $0.value || $0 == "…" })
        precondition(0...RetryAfter.limit ~= seconds ?? 0)
    case .accepted(let body):
        _ = try? Wire.decode(HeartbeatAnswer.self, from: body)
        _ = try? Wire.decode(ProvisionAnswer.self, from: body)
    default: precondition(answer.status >= 400)
    }
}

private func checkConfiguration(_ body: [UInt8]) {
    guard let config = try? Wire.decode(WireGuardConfig.self, from: body),
        let validated = try? config.validated()
    else { return }
    var reordered = config
    reordered.peers?.reverse()
    precondition(try! configHash(reordered) == validated.meaningHash)
    let key = SecretKey(copying: [UInt8](repeating: 64, count: 32).span)
    let text = validated.configurationText(privateKey: key)
    let parsed = try! ConfigurationFile.parse(text.span, file: "fuzz").configuration
    precondition(parsed == validated.configurationFile(privateKey: key))
    precondition(parsed.interface.hooks.isEmpty)
}
