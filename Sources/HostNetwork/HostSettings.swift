// SPDX-License-Identifier: Apache-2.0
import Glibc
import TunnelPlan

/// The kernel's settings that a tunnel needs, as sysctl(8) has them: those of this process's
/// network namespace. Writing needs root's access to /proc/sys/net.
public struct HostSettings: Sendable {
    private let root: String

    /// `root`: where /proc/sys is.
    public init(root: String = "/proc/sys") { self.root = root }

    /// Throws `.unsupported` when the kernel does not have it.
    public func read(_ setting: HostSetting) throws(NetworkError) -> UInt32 {
        let path = path(setting)
        let bytes: [UInt8]
        do throws(SmallFile.Failure) {
            bytes = try SmallFile.read(path)
        } catch {
            throw Self.error("read", path, error.errno)
        }
        let text = String(decoding: bytes, as: UTF8.self)
        guard let value = UInt32(text.split(whereSeparator: \.isWhitespace).first ?? "") else {
            throw NetworkError(.other, "cannot read \(path): it holds no number")
        }
        return value
    }

    /// Writes `value` unless it is there already; whether it was written.
    @discardableResult
    public func write(_ setting: HostSetting, _ value: UInt32) throws(NetworkError) -> Bool {
        guard try read(setting) != value else { return false }
        try overwrite(path(setting), value)
        return true
    }

    /// Of the link: when the first address of a subnet goes, the next one takes its place instead of
    /// going along (ip-sysctl.rst of the kernel).
    public func promoteSecondaries(of link: InterfaceName) throws(NetworkError) {
        try overwrite("\(root)/net/ipv4/conf/\(link)/promote_secondaries", 1)
    }

    /// Of the link: it sends no redirects, unless `HostSetting.sendsRedirects` is on.
    public func sendNoRedirects(from link: InterfaceName) throws(NetworkError) {
        try overwrite("\(root)/net/ipv4/conf/\(link)/send_redirects", 0)
    }

    private func overwrite(_ path: String, _ value: UInt32) throws(NetworkError) {
        do throws(SmallFile.Failure) {
            try SmallFile.overwrite(path, Array("\(value)\n".utf8), truncating: false)
        } catch {
            throw Self.error("write \(value) to", path, error.errno)
        }
    }

    private func path(_ setting: HostSetting) -> String {
        switch setting {
        case .sourceValidMark: "\(root)/net/ipv4/conf/all/src_valid_mark"
        case .forwardsIPv4: "\(root)/net/ipv4/ip_forward"
        case .forwardsIPv6: "\(root)/net/ipv6/conf/all/forwarding"
        case .sendsRedirects: "\(root)/net/ipv4/conf/all/send_redirects"
        }
    }

    private static func error(_ purpose: String, _ path: String, _ errno: Int32) -> NetworkError {
        let (kind, advice): (NetworkError.Kind, String) =
            switch errno {
            case EPERM, EACCES: (.permission, "; it needs root")
            case EROFS: (.permission, "; /proc/sys is read-only here: set it on the host")
            case ENOENT: (.unsupported, "; this kernel does not have it")
            default: (.other, "")
            }
        return NetworkError(
            kind, errno: errno, "cannot \(purpose) \(path): \(textOfErrno(errno))\(advice)")
    }
}
