// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import Crypto
import Synchronization
import WireGuard

/// Who is logged in. In memory only: operators log in again after a restart.
final class OperatorSessions: Sendable {
    /// Milliseconds.
    static let life: Int64 = 12 * 3_600_000
    private static let limit = 256

    private struct Session {
        var name: String
        var expires: Milliseconds
    }
    private struct State {
        /// By digest of the bearer token.
        var sessions: [String: Session] = [:]
        var failures = TokenBuckets(burst: 5, rate: 0.1)
    }
    private let state = Mutex(State())
    /// One password at a time: each check takes 64 MiB.
    private let isChecking = Atomic<Bool>(false)

    /// `account`: the one of that name, if there is one. `password` is erased by the caller.
    func logIn(
        _ name: String, password: [UInt8], account: OperatorAccount?, from source: String,
        at now: Milliseconds
    ) throws(Refusal) -> (BearerToken, expires: Milliseconds) {
        // Unlike a token a password can be guessed: the limit holds for the right one as well, or it
        // would only hide the wrong ones.
        let place = rateLimitKey(source)
        if let seconds = state.withLock({ $0.failures.wait(place, at: now) }) {
            throw Refusal(.tooManyRequests, "too many wrong logins", retryAfter: seconds)
        }
        guard !isChecking.exchange(true, ordering: .acquiring) else {
            throw Refusal(.tooManyRequests, "another login is being checked", retryAfter: 1)
        }
        defer { isChecking.store(false, ordering: .releasing) }
        // A name that does not exist takes as long as a wrong password.
        let isRight = PasswordHash.verify(password, account?.passwordHash ?? Self.nobody)
        guard isRight, account != nil else {
            let wait = state.withLock { $0.failures.fail(place, at: now) }
            if let wait {
                throw Refusal(.tooManyRequests, "too many wrong logins", retryAfter: wait)
            }
            throw Refusal(.authExpired, "name or password is wrong")
        }
        let bearer = BearerToken.generate()
        let expires = now + Self.life
        state.withLock { state in
            state.sessions = state.sessions.filter { $0.value.expires > now }
            if state.sessions.count >= Self.limit,
                let oldest = state.sessions.min(by: { $0.value.expires < $1.value.expires })
            {
                state.sessions[oldest.key] = nil
            }
            state.sessions[bearer.digest] = Session(name: name, expires: expires)
        }
        return (bearer, expires)
    }

    /// The operator's name; nil: no session.
    func name(of authorization: String?, at now: Milliseconds) -> String? {
        Self.key(of: authorization).flatMap { name(ofKey: $0, at: now) }
    }

    func name(ofKey key: String, at now: Milliseconds) -> String? {
        state.withLock { state in
            guard let session = state.sessions[key], session.expires > now else { return nil }
            return session.name
        }
    }

    func logOut(_ authorization: String?) {
        guard let key = Self.key(of: authorization) else { return }
        state.withLock { $0.sessions[key] = nil }
    }

    /// What a session is known by here, which is no secret; nil: no token at all.
    static func key(of authorization: String?) -> String? {
        bearerText(authorization).flatMap { SecretText($0).bearerToken?.digest }
    }

    /// After the account is gone or has another password.
    func end(_ name: String) {
        state.withLock { state in
            state.sessions = state.sessions.filter { $0.value.name != name }
        }
    }

    /// A hash that no password has.
    private static let nobody =
        (try? PasswordHash.hash(Random.bytes(32))) ?? ""
}
