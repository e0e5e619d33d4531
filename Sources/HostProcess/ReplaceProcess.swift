// SPDX-License-Identifier: Apache-2.0
import Glibc

extension Host {
    /// Becomes the program at `path`, with this process's environment and standard streams. Returns
    /// only by throwing.
    public static func become(_ path: String, arguments: [String]) throws(HostError) -> Never {
        var vector = unsafe ([path] + arguments).map { unsafe strdup($0) }
        unsafe vector.append(nil)
        signal(SIGPIPE, SIG_DFL)  // an ignored signal stays ignored across execve(2)
        let failure = unsafe vector.withUnsafeBufferPointer { list in
            unsafe execv(path, list.baseAddress!)
            return errno
        }
        for index in unsafe vector.indices { unsafe free(vector[index]) }
        throw HostError(errno: failure, "cannot start \(path): \(textOfErrno(failure))")
    }
}
