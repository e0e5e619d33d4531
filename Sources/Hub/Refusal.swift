// SPDX-License-Identifier: Apache-2.0
import ControlAPI

/// Why a request is not done, as the answer says it.
struct Refusal: Error, Equatable {
    var problem: Problem
    /// Seconds; for 429 and 503.
    var retryAfter: Int?
    /// For 405: the methods there are.
    var allow: String?

    init(
        _ code: Problem.Code, _ detail: String, deviceId: String? = nil, retryAfter: Int? = nil
    ) {
        problem = Problem(code, detail: detail, deviceId: deviceId)
        self.retryAfter = retryAfter
    }
}
