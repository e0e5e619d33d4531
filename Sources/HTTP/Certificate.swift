// SPDX-License-Identifier: Apache-2.0
import CGnuTLS
import Glibc
import WireGuard

/// Certificates for servers: made here, or given and looked at.
public enum Certificate {
    public struct Made: Sendable {
        public var certificatePEM: [UInt8]
        public var key: ConnectionSecret
    }

    /// A certificate that vouches for itself: ECDSA with P-256, for servers only. Clients accept
    /// it by its `pin`. `addresses` are host names and numeric addresses that clients use; 1…36500
    /// days.
    public static func selfSigned(
        commonName: String, addresses: [String], days: Int
    ) throws(HTTPError) -> Made {
        let key = try GnuTLSKey.generate()
        let certificate = try GnuTLSCertificate()
        try certificate.describe(
            commonName: commonName, addresses: addresses, days: min(max(days, 1), 36500))
        try certificate.sign(with: key)
        return Made(certificatePEM: try certificate.exportPEM(), key: try key.exportPEM())
    }

    /// curl's form of the SHA-256 of the public key of the first certificate: `sha256//…`. It stays
    /// the same when a certificate is renewed with the same key.
    public static func pin(ofPEM pem: [UInt8]) throws(HTTPError) -> String {
        let certificate = try GnuTLSCertificate(pem: pem)
        return "sha256//" + PublicKey(bytes: try certificate.publicKeyHash()).base64
    }

    /// The last second at which the first certificate is valid, in seconds since 1970.
    public static func expiry(ofPEM pem: [UInt8]) throws(HTTPError) -> Int64 {
        let certificate = try GnuTLSCertificate(pem: pem)
        return unsafe Int64(gnutls_x509_crt_get_expiration_time(certificate.pointer))
    }

    /// Throws when the two are unusable or do not belong together.
    public static func check(_ certificatePEM: [UInt8], _ key: ConnectionSecret) throws(HTTPError) {
        _ = try GnuTLSCertificate(pem: certificatePEM)
        var credentials: gnutls_certificate_credentials_t?
        try checkTLS(
            unsafe gnutls_certificate_allocate_credentials(&credentials), "check a certificate")
        defer { unsafe gnutls_certificate_free_credentials(credentials) }
        let status = unsafe withDatum(certificatePEM) { certificate in
            unsafe key.withCString { text in
                var certificate = unsafe certificate
                var key = unsafe gnutls_datum_t(
                    data: UnsafeMutableRawPointer(mutating: text)
                        .assumingMemoryBound(to: UInt8.self),
                    size: UInt32(strlen(text)))
                return unsafe gnutls_certificate_set_x509_key_mem(
                    credentials, &certificate, &key, GNUTLS_X509_FMT_PEM)
            }
        }
        try checkTLS(status, "use the TLS certificate with its private key (both in PEM)")
    }
}

/// `what` completes "cannot …".
func checkTLS(_ status: Int32, _ what: String) throws(HTTPError) {
    guard status < 0 else { return }
    let reason = unsafe String(cString: gnutls_strerror(status))
    throw HTTPError("cannot \(what): \(reason)")
}

/// The library does not write to it.
func withDatum<R>(_ bytes: [UInt8], _ body: (gnutls_datum_t) -> R) -> R {
    unsafe bytes.withUnsafeBufferPointer { buffer in
        unsafe body(
            gnutls_datum_t(
                data: UnsafeMutablePointer(mutating: buffer.baseAddress),
                size: UInt32(buffer.count)))
    }
}
