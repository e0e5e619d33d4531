// SPDX-License-Identifier: Apache-2.0
// What netlink's negative errno becomes: a sentence, and a kind to act on.
import CNetlink
import Glibc

extension NetworkError.Kind {
    init(errno: Int32) {
        self =
            switch errno {
            case EPERM, EACCES: .permission
            case ENODEV, ENOENT, ESRCH, EADDRNOTAVAIL, ENXIO: .notFound
            case EEXIST: .exists
            case EBUSY, EADDRINUSE, EAGAIN: .busy
            case EOPNOTSUPP, EAFNOSUPPORT, EPROTONOSUPPORT, EPFNOSUPPORT: .unsupported
            default: .other
            }
    }
}

extension NetworkError {
    /// `what` was tried and failed with the negative errno `result`: "cannot WHAT: WHY; HINT".
    /// `explanation` is the kernel's own, `hint` says what to do.
    init(cannot what: String, result: Int32, explanation: String = "", hint: String? = nil) {
        let kind = Kind(errno: -result)
        var message = "cannot \(what): \(textOfErrno(-result))"
        if !explanation.isEmpty { message += " (\(explanation))" }
        if let hint = hint ?? kind.hint { message += "; \(hint)" }
        self.init(kind, errno: -result, message)
    }
}

extension NetworkError.Kind {
    fileprivate var hint: String? {
        switch self {
        case .permission: "run it as root or with CAP_NET_ADMIN"
        default: nil
        }
    }
}
