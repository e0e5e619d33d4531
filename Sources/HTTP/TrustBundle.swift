// SPDX-License-Identifier: Apache-2.0
import CCurl
import CGnuTLS
import HostProcess
import WireGuard

/// What a client trusts where an extra CA file is given. libcurl would trust that file alone
/// (CURLOPT_CAINFO(3)), so the system's certificates are put beside it.
enum TrustBundle {
    /// A few hundred KiB are usual.
    private static let sizeLimit = 8 << 20

    /// nil: nothing extra was asked for.
    static func read(_ options: HTTPClient.Options) throws(HTTPError) -> [UInt8]? {
        guard options.extraCAFile != nil || options.systemBundle != nil else { return nil }
        var bundle: [UInt8] = []
        if let system = options.systemBundle ?? systemBundlePath {
            // Where the system has none, its directory of certificates may still be there.
            bundle = (try? HostFile.read(system, limit: sizeLimit))?.bytes ?? []
        }
        if let extra = options.extraCAFile {
            bundle.append(UInt8(ascii: "\n"))
            bundle += try readExtra(extra)
        }
        return bundle
    }

    private static func readExtra(_ path: String) throws(HTTPError) -> [UInt8] {
        let bytes: [UInt8]
        do throws(HostError) {
            bytes = try HostFile.read(path, limit: sizeLimit).bytes
        } catch {
            throw HTTPError(error.kind, "\(error); it was to hold the extra CA certificates")
        }
        do throws(HTTPError) {
            _ = try GnuTLSCertificate(pem: bytes)
        } catch {
            throw HTTPError("cannot use the CA file \(path): it holds no certificate in PEM")
        }
        return bytes
    }

    /// What libcurl was built to trust.
    private static var systemBundlePath: String? {
        guard let info = unsafe curl_version_info(CURLVERSION_SEVENTH) else { return nil }
        return unsafe info.pointee.cainfo.map { unsafe String(cString: $0) }
    }
}

enum Pin {
    /// libcurl takes anything else for the name of a file.
    static func check(_ pin: String) throws(HTTPError) {
        let prefix = "sha256//"
        guard pin.hasPrefix(prefix), (try? PublicKey(base64: String(pin.dropFirst(8)))) != nil
        else {
            throw HTTPError(
                "cannot use the pin \"\(pin)\": it must be sha256// and the 44 characters of the "
                    + "base64 of a SHA-256, as the hub shows it")
        }
    }
}
