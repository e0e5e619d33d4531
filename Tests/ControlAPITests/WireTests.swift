// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import Crypto
import TestSupport
import Testing

private func decode<T: Decodable>(_ type: T.Type, _ json: String) throws(WireError) -> T {
    try Wire.decode(type, from: Array(json.utf8))
}

@Suite struct WireTests {
    @Test func a_request_reads_as_it_was_written() throws {
        var heartbeat = HeartbeatRequest(
            deviceId: "d", boot: 7, sessionId: "s", sequence: .max, agentVersion: "1.0",
            uptimeSeconds: 5, state: .connected, tunnelUp: true)
        heartbeat.backend = .userspace
        heartbeat.lastHandshake = Timestamp(unixSeconds: 1_796_033_662)
        heartbeat.rxBytes = 1 << 60
        heartbeat.problems = ["dns_failed"]
        let text = String(decoding: Wire.encode(heartbeat), as: UTF8.self)
        #expect(text.contains(#""lastHandshake":"2026-11-30T10:14:22Z""#))
        #expect(try decode(HeartbeatRequest.self, text) == heartbeat)
    }

    @Test func unknown_fields_are_ignored_and_null_is_absent() throws {
        let json = #"""
            {"deviceId":"d","boot":1,"sessionId":"s","sequence":1,"agentVersion":"1",
             "uptimeSeconds":0,"state":"failed","tunnelUp":false,"backend":null,
             "lastHandshake":null,"rxBytes":0,"txBytes":0,"later":{"x":[1.5]}}
            """#
        let heartbeat = try decode(HeartbeatRequest.self, json)
        #expect(heartbeat.backend == nil && heartbeat.lastHandshake == nil)
    }

    @Test func a_wrong_field_is_named_and_its_value_is_not() throws {
        let table: [(String, String)] = [
            (#"{"salt":"s"}"#, "deviceId"),
            (#"{"deviceId":7,"secret":"x"}"#, "deviceId"),
            (#"[]"#, "(the whole)"),
        ]
        for (json, path) in table {
            let failure = thrown { () throws(WireError) in try decode(ProvisionAnswer.self, json) }
            #expect(failure == .field(path), "\(json)")
        }
        let peers = #"{"deviceId":"","internalIp":"","serverPub":"","endpoint":"","allowedIps":"","#
        #expect(
            thrown { () throws(WireError) in
                try decode(
                    WireGuardConfig.self,
                    peers + #""peers":[{"publicKey":"","allowedIps":""},{"publicKey":1}]}"#)
            } == .field("peers[1].publicKey"))
    }

    @Test func numbers_that_are_none_of_ours_are_refused() throws {
        for number in ["1.5", "\"1\"", "-1", "1e99", "18446744073709551616", "true"] {
            let json = #"""
                {"deviceId":"d","boot":\#(number),"sessionId":"s","sequence":1,"agentVersion":"1",
                 "uptimeSeconds":0,"state":"failed","tunnelUp":false,"rxBytes":0,"txBytes":0}
                """#
            // The library does not tell the field of a number that does not fit.
            let failure = thrown { () throws(WireError) in try decode(HeartbeatRequest.self, json) }
            #expect(failure == .field("boot") || failure == .notJSON, "\(number)")
        }
    }

    /// A proxy that looks for something in a body reads UTF-8 (RFC 8259 section 8.1).
    @Test func json_in_another_encoding_is_refused() throws {
        let text = #"{"publicKey":"k"}"#
        #expect(try decode(RotateRequest.self, text).publicKey == "k")
        let wide = text.utf16.flatMap { [UInt8(truncatingIfNeeded: $0 >> 8), UInt8($0 & 255)] }
        let encodings = [
            wide, [0xFE, 0xFF] + wide, text.utf16.flatMap { [UInt8($0 & 255), 0] },
            text.utf8.flatMap { [0, 0, 0, $0] }, Array(text.utf8) + [0],
        ]
        for bytes in encodings {
            let failure = thrown { () throws(WireError) in
                try Wire.decode(RotateRequest.self, from: bytes)
            }
            #expect(failure == .notJSON)
        }
    }

    @Test func commands_have_one_shape_and_a_later_one_is_no_failure() throws {
        let table: [(String, DeviceCommand)] = [
            (#"{"type":"reset"}"#, .reset), (#"{"type":"rotateKey"}"#, .rotateKey),
            (#"{"token":"t","type":"reprovision"}"#, .reprovision(token: SecretText("t"))),
            (#"{"type":"dance"}"#, .unknown("dance")),
        ]
        for (json, command) in table {
            #expect(try decode(DeviceCommand.self, json) == command)
            #expect(String(decoding: Wire.encode(command), as: UTF8.self) == json)
        }
        #expect(throws: WireError.self) {
            try decode(DeviceCommand.self, #"{"type":"reprovision"}"#)
        }
        #expect(!"\(DeviceCommand.reprovision(token: SecretText("hush")))".contains("hush"))
    }

    @Test func the_interval_stays_within_its_range() {
        let table: [(Int?, Int)] = [(nil, 30), (-5, 5), (4, 5), (5, 5), (3600, 3600), (3601, 3600)]
        for (seconds, expected) in table {
            #expect(HeartbeatInterval.seconds(seconds) == expected)
        }
    }

    @Test func tokens_travel_as_text() throws {
        let token = BearerToken.generate()
        let answer = TokenAnswer(deviceToken: SecretText(token))
        let read = try Wire.decode(TokenAnswer.self, from: Wire.encode(answer))
        #expect(read.deviceToken.bearerToken == token)
        #expect(SecretText("short").bearerToken == nil)
        #expect("\(answer)" == "TokenAnswer(deviceToken: (hidden))")
    }

    @Test func codes_and_problems_do_not_change() {
        #expect(
            String(decoding: Wire.encode(Problem(.revoked, deviceId: "d")), as: UTF8.self)
                == #"{"code":"revoked","deviceId":"d","status":410,"#
                + #""title":"The device was revoked","type":"about:blank"}"#)
        let codes = Problem.Code.allCases.map { "\($0.status) \($0.rawValue)" }
        #expect(
            codes == [
                "400 bad_request", "400 public_key_required", "401 token_expired",
                "401 auth_expired", "403 token_refused", "403 forbidden", "404 unknown_device",
                "404 not_found", "405 method_not_allowed", "409 duplicate_identity", "409 conflict",
                "410 revoked", "413 too_large", "415 unsupported_media_type",
                "426 upgrade_required", "429 too_many_requests", "500 internal_error",
                "503 unavailable",
            ])
    }
}
