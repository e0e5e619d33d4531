// SPDX-License-Identifier: Apache-2.0
import CHostProcess
import Glibc

/// What the kernel made of `Confinement.enter`.
public struct Confinement: Sendable {
    /// nil: the kernel has no Landlock; the system call filter alone keeps files out of reach.
    public let landlockABI: Int?
    /// False: the process was started without CAP_SETPCAP.
    public let isBoundingSetEmpty: Bool

    /// Whether this process may configure networks now.
    public static var hasNetAdmin: Bool { host_has_net_admin() }

    /// Gives up every right but CAP_NET_ADMIN, CAP_NET_BIND_SERVICE and a list of system calls.
    /// Names can be removed beneath `removableDirectories` only. Before any thread exists.
    public static func enter(removableDirectories: [String]) throws(HostError) -> Confinement {
        var result = host_confinement()
        // The C strings live until they are freed below.
        var directories = unsafe removableDirectories.map { unsafe UnsafePointer(strdup($0)) }
        unsafe directories.append(nil)
        defer {
            for index in unsafe directories.indices {
                unsafe free(UnsafeMutableRawPointer(mutating: directories[index]))
            }
        }
        try unsafe withErrorText { text, status in
            status = unsafe directories.withUnsafeBufferPointer { list in
                unsafe host_confine(list.baseAddress!, &result, text)
            }
        }
        return Confinement(
            landlockABI: result.landlock_abi == 0 ? nil : Int(result.landlock_abi),
            isBoundingSetEmpty: result.bounding_set_emptied)
    }
}
