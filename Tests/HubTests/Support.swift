// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import Crypto
import HTTP
import HostProcess
import SQLite
import Synchronization
import Testing
import WireGuard

@testable import Hub

/// A clock that stands still unless it is moved.
final class TestClock: Sendable {
    private let time = Mutex<Milliseconds>(1_800_000_000_000)

    var now: Milliseconds { time.withLock { $0 } }
    func advance(seconds: Int64) { time.withLock { $0 += seconds * 1000 } }
}

/// A hub whose tables are in memory, and what an operator and devices do with it.
struct TestHub {
    let clock = TestClock()
    let hub: Hub

    init(
        database: consuming sending Database? = nil, keys: HubKeys = .generate(),
        configure: (inout HubSettings) -> Void = { _ in }
    ) throws {
        var settings = HubSettings()
        settings.endpoint = "vpn.example.org:51820"
        settings.pools = [Prefix("10.99.0.0/24")!, Prefix("fd99::/64")!]
        configure(&settings)
        let store = try Store(database ?? Database())
        try store.write([.settings(settings)])
        let clock = clock
        let core = try HubCore(store: store, keys: keys, now: clock.now)
        hub = Hub(core: core, surroundings: Hub.Surroundings()) { clock.now }
        hub.setControlPort(443)
    }

    // MARK: requests

    /// From the network, without credentials unless `bearer` is given.
    func send(
        _ method: String, _ path: String, _ body: some Encodable, bearer: String? = nil,
        from address: String = "192.0.2.1", query: [String: String] = [:]
    ) -> HTTPResponse {
        send(method, path, bytes: Wire.encode(body), bearer: bearer, from: address, query: query)
    }

    func send(
        _ method: String, _ path: String, bytes: [UInt8] = [], bearer: String? = nil,
        from address: String = "192.0.2.1", query: [String: String] = [:]
    ) -> HTTPResponse {
        var headers: HTTPHeaders = ["Content-Type": "application/json"]
        if let bearer { headers["Authorization"] = "Bearer \(bearer)" }
        return hub.answer(
            HTTPRequest(
                method: method, path: path, query: query, headers: headers, body: bytes,
                origin: .ip(address)))
    }

    /// Through the unix socket.
    func operate(
        _ method: String, _ path: String, _ body: (any Encodable)? = nil,
        query: [String: String] = [:]
    ) -> HTTPResponse {
        hub.answer(
            HTTPRequest(
                method: method, path: "/api/v1/admin" + path, query: query,
                headers: ["Content-Type": "application/json"], body: body.map { encode($0) } ?? [],
                origin: .unix(user: 0, group: 0, process: 1)))
    }

    private func encode(_ value: some Encodable) -> [UInt8] { Wire.encode(value) }

    // MARK: devices

    func makeToken(_ change: (inout TokenRequest) -> Void = { _ in }) throws -> String {
        var request = TokenRequest()
        change(&request)
        let response = operate("POST", "/tokens", request)
        #expect(response.status == 201)
        return try #require(try response.decoded(TokenView.self).token).exposed
    }

    func provision(
        _ token: String, hwid: String = hwid(1), key: PublicKey? = SecretKey.generate().publicKey,
        from address: String = "192.0.2.1"
    ) -> HTTPResponse {
        send(
            "POST", "/api/v1/provision",
            ProvisionRequest(
                token: SecretText(token), hwid: hwid, publicKey: key?.base64, name: "gate",
                platform: "linux/amd64", agentVersion: "0.1.0"), from: address)
    }

    /// Enrols a machine of its own; it has reported once.
    func enrol(_ number: Int = 1) throws -> TestDevice {
        let key = SecretKey.generate().publicKey
        let answer = try provision(makeToken(), hwid: hwid(number), key: key)
            .decoded(ProvisionAnswer.self)
        let device = TestDevice(answer, hwid: hwid(number), key: key)
        #expect(heartbeat(device).status == 200)
        return device
    }

    func heartbeat(
        _ device: TestDevice, boot: UInt64 = 1, session: String = "s1",
        _ change: (inout HeartbeatRequest) -> Void = { _ in }
    ) -> HTTPResponse {
        var request = HeartbeatRequest(
            deviceId: device.id, boot: boot, sessionId: session, sequence: device.next(),
            agentVersion: "0.1.0")
        change(&request)
        return send("POST", "/api/v1/heartbeat", request, bearer: device.token)
    }

    func view(_ id: String) throws -> DeviceView {
        try operate("GET", "/devices/\(id)").decoded(DeviceView.self)
    }

    /// The model in memory is what a restart would read.
    func expectStored() throws {
        try hub.locked { (core) throws(Refusal) in
            let stored = try? core.store.load()
            #expect(stored == core.model)
        }
    }
}

final class TestDevice: Sendable {
    let id: String
    let token: String
    let hwid: String
    let key: PublicKey
    let answer: ProvisionAnswer
    private let sequence = Mutex<UInt64>(0)

    init(_ answer: ProvisionAnswer, hwid: String, key: PublicKey) {
        id = answer.deviceId
        token = answer.deviceToken.exposed
        self.hwid = hwid
        self.key = key
        self.answer = answer
    }

    func next() -> UInt64 {
        sequence.withLock { sequence in
            sequence += 1
            return sequence
        }
    }

    var configuration: WireGuardConfig {
        get throws { try open(answer.salt, answer.encrypted) }
    }

    func open(_ salt: String?, _ encrypted: String?) throws -> WireGuardConfig {
        let text = try Envelope.open(
            try #require(encrypted), hwid: hwid, salt: try #require(salt))
        return try Wire.decode(WireGuardConfig.self, from: text)
    }
}

/// The hardware id of machine `number`.
func hwid(_ number: Int) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: 32 - digits.count) + digits
}

extension HTTPResponse {
    func decoded<T: Decodable>(_ type: T.Type, status: Int? = nil) throws -> T {
        #expect(self.status < 300, "\(String(decoding: body, as: UTF8.self))")
        return try Wire.decode(type, from: body)
    }

    var problem: Problem? {
        guard headers["Content-Type"] == Problem.contentType else { return nil }
        return try? Wire.decode(Problem.self, from: body)
    }
    var code: String? { problem?.code }
}

/// A name that no other test uses, in a directory that the system cleans.
func temporaryPath() throws -> String {
    let directory = "/tmp/nexusguard-hub-tests"
    try HostFile.makeDirectory(directory, permissions: 0o700)
    return "\(directory)/\(Random.uuid()).db"
}
