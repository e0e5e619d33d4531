// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import TestSupport
import Testing

private let own = "0d9f1c2e-3b4a-4c5d-8e6f-708192a3b4c5"
private let now = Timestamp(rfc3339: "2026-11-30T10:00:00Z")!

private func classify(
    _ call: DeviceCall, _ status: Int, _ type: String?, _ body: String, retryAfter: String? = nil
) -> AnswerClass {
    AnswerClass.classify(
        call,
        ReceivedAnswer(
            status: status, contentType: type, retryAfter: retryAfter, body: Array(body.utf8)),
        deviceId: call == .provision ? nil : own, now: now)
}

private func problem(
    _ call: DeviceCall, _ code: Problem.Code, status: Int? = nil, device: String? = own
) -> AnswerClass {
    var problem = Problem(code, detail: "why", deviceId: device)
    problem.status = status ?? code.status
    let body = String(decoding: Wire.encode(problem), as: UTF8.self)
    return classify(call, problem.status, "application/problem+json; charset=utf-8", body)
}

extension AnswerClass {
    fileprivate var isTransient: Bool {
        if case .transient = self { true } else { false }
    }
}

@Suite struct AnswerTests {
    @Test func a_good_answer_is_accepted_with_its_body() {
        #expect(classify(.heartbeat, 200, "application/json", "{}") == .accepted(Array("{}".utf8)))
        #expect(
            classify(.heartbeat, 200, "Application/JSON ;charset=UTF-8", "{}")
                == .accepted(Array("{}".utf8)))
        #expect(classify(.events, 200, "text/event-stream", "") == .accepted([]))
        #expect(classify(.unenroll, 204, nil, "") == .accepted([]))
    }

    @Test func case_C68_three_classes_by_code_on_the_call_they_belong_to() {
        func name(_ answer: AnswerClass) -> String {
            switch answer {
            case .accepted: "accepted"
            case .transient: "transient"
            case .authExpired: "authExpired"
            case .refused: "refused"
            case .revoked: "revoked"
            case .unknownDevice: "unknownDevice"
            case .duplicateIdentity: "duplicateIdentity"
            case .upgradeRequired: "upgradeRequired"
            case .badRequest: "badRequest"
            }
        }
        let table: [(Problem.Code, provision: String, others: String)] = [
            (.badRequest, "badRequest", "badRequest"),
            (.publicKeyRequired, "badRequest", "badRequest"),
            (.tokenExpired, "refused", "transient"),
            (.tokenRefused, "refused", "transient"),
            (.authExpired, "transient", "authExpired"),
            (.unknownDevice, "transient", "unknownDevice"),
            (.duplicateIdentity, "duplicateIdentity", "duplicateIdentity"),
            (.revoked, "transient", "revoked"),
            (.upgradeRequired, "upgradeRequired", "upgradeRequired"),
        ]
        for (code, provision, others) in table {
            #expect(name(problem(.provision, code)) == provision, "\(code)")
            for call in DeviceCall.allCases where call != .provision {
                #expect(name(problem(call, code)) == others, "\(code) \(call)")
            }
        }
        for code in Problem.Code.allCases where !table.contains(where: { $0.0 == code }) {
            for call in DeviceCall.allCases {
                #expect(problem(call, code).isTransient, "\(code) \(call)")
            }
        }
    }

    @Test func case_C68_nothing_but_a_revocation_of_this_very_device_ends_a_tunnel() {
        #expect(problem(.heartbeat, .revoked) == .revoked(reason: "status 410 revoked: why"))
        let provision = AnswerClass.classify(
            .provision,
            ReceivedAnswer(
                status: 410, contentType: Problem.contentType,
                body: Wire.encode(Problem(.revoked, deviceId: own))), deviceId: own, now: now)
        #expect(provision.isTransient)
        #expect(problem(.heartbeat, .revoked, device: nil).isTransient)
        #expect(problem(.heartbeat, .revoked, device: "another").isTransient)
        #expect(problem(.heartbeat, .unknownDevice, device: "another").isTransient)
        #expect(problem(.heartbeat, .authExpired, device: "another").isTransient)
        for status in [200, 400, 401, 404, 500, 502] {
            #expect(problem(.heartbeat, .revoked, status: status).isTransient, "\(status)")
        }
    }

    @Test func case_C68_C69_a_bare_status_decides_nothing() {
        for status in [100, 204, 301, 302, 307, 400, 401, 403, 404, 407, 409, 410, 426, 500, 502] {
            for call in DeviceCall.allCases where status != 204 || call != .unenroll {
                #expect(classify(call, status, nil, "").isTransient)
                #expect(classify(call, status, "text/html", "<html>revoked</html>").isTransient)
                #expect(classify(call, status, "application/problem+json", "").isTransient)
                #expect(
                    classify(call, status, "application/problem+json", #"{"status":410}"#)
                        .isTransient)
                #expect(
                    classify(
                        call, status, "application/json", #"{"code":"revoked","status":410}"#
                    ).isTransient)
            }
        }
    }

    @Test func case_C69_a_captive_portal_is_no_answer() {
        for type in [
            "text/html", "text/html; charset=utf-8", nil, "", "application/jsonp", "text/json",
        ] {
            #expect(classify(.heartbeat, 200, type, "{}").isTransient, "\(type ?? "none")")
        }
        #expect(
            classify(.heartbeat, 200, "text/html", "<html>")
                == .transient(
                    reason: "the answer is text/html, not application/json", retryAfter: nil))
    }

    @Test func case_C69_what_is_too_large_is_not_read() {
        let body = "{\"a\":\"" + String(repeating: "x", count: Wire.limit) + "\"}"
        #expect(classify(.heartbeat, 200, "application/json", body).isTransient)
        #expect(
            thrown { () throws(WireError) in
                try Wire.decode(HeartbeatAnswer.self, from: Array(body.utf8))
            } == .tooLarge(body.utf8.count))
    }

    @Test func case_C69_every_beginning_of_an_answer_is_refused() throws {
        let answer = HeartbeatAnswer(
            configHash: "a", forwardsHash: "b", serverTime: Timestamp(unixSeconds: 0))
        let body = Wire.encode(answer)
        #expect(try Wire.decode(HeartbeatAnswer.self, from: body) == answer)
        for length in 0..<body.count {
            let failure = thrown { () throws(WireError) in
                try Wire.decode(HeartbeatAnswer.self, from: Array(body[..<length]))
            }
            #expect(failure == .notJSON, "\(length)")
        }
    }

    @Test func what_a_server_says_is_fit_for_a_log() {
        let detail = "line\\n\\u001b[2J\\u202e" + String(repeating: "x", count: 1000)
        let answer = classify(
            .heartbeat, 400, "application/problem+json",
            "{\"code\":\"bad_request\",\"status\":400,\"detail\":\"\(detail)\"}")
        guard case .badRequest(let reason) = answer else {
            Issue.record("\(answer)")
            return
        }
        #expect(reason.hasPrefix("status 400 bad_request: line??[2J?xxx"))
        #expect(reason.unicodeScalars.count < 260)
        #expect(reason.unicodeScalars.allSatisfy { 0x20..<0x7F ~= $0.value || $0 == "…" })
    }

    @Test func case_C66_retry_after_is_obeyed_within_an_hour() {
        let table: [(String, Int?)] = [
            ("0", 0), ("120", 120), (" 7 ", 7), ("3601", 3600), ("99999999999999999999999", 3600),
            ("Mon, 30 Nov 2026 10:02:00 GMT", 120), ("Mon, 30 Nov 2026 09:00:00 GMT", 0),
            ("Monday, 30-Nov-26 10:00:09 GMT", 9), ("Mon Nov 30 10:00:10 2026", 10),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 3600), ("-1", nil), ("1.5", nil), ("", nil),
            ("soon", nil), ("Mon, 30 Nov 2026 10:02:00 CET", nil),
            ("Mon, 31 Nov 2026 10:02:00 GMT", nil),
        ]
        for (field, seconds) in table {
            #expect(RetryAfter.seconds(field, now: now) == seconds, "\(field)")
            for status in [429, 503] {
                let answer = classify(.heartbeat, status, "text/html", "", retryAfter: field)
                guard case .transient(_, let retryAfter) = answer else {
                    Issue.record("\(answer)")
                    continue
                }
                #expect(retryAfter == seconds, "\(field)")
            }
        }
    }
}
