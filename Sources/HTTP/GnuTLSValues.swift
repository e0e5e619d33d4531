// SPDX-License-Identifier: Apache-2.0
import CGnuTLS
import Glibc
import WireGuard

/// Owner of a private key.
@safe struct GnuTLSKey: ~Copyable {
    fileprivate let pointer: gnutls_x509_privkey_t

    private init(_ pointer: gnutls_x509_privkey_t) { unsafe self.pointer = unsafe pointer }

    /// The library erases it.
    deinit { unsafe gnutls_x509_privkey_deinit(pointer) }

    /// ECDSA with P-256, which every TLS client of today knows.
    static func generate() throws(HTTPError) -> GnuTLSKey {
        var made: gnutls_x509_privkey_t?
        try checkTLS(unsafe gnutls_x509_privkey_init(&made), "make a private key")
        let key = unsafe GnuTLSKey(made!)
        // GNUTLS_CURVE_TO_BITS of gnutls.h, which is a macro.
        let curve = UInt32(1) << 31 | GNUTLS_ECC_CURVE_SECP256R1.rawValue
        try checkTLS(
            unsafe gnutls_x509_privkey_generate(key.pointer, GNUTLS_PK_ECDSA, curve, 0),
            "make a private key")
        return key
    }

    func exportPEM() throws(HTTPError) -> ConnectionSecret {
        var buffer = [UInt8](repeating: 0, count: 4096)
        var size = buffer.count
        defer { erase(&buffer) }
        try checkTLS(
            unsafe gnutls_x509_privkey_export(pointer, GNUTLS_X509_FMT_PEM, &buffer, &size),
            "write a private key as PEM")
        var text = Array(buffer[..<size])
        defer { erase(&text) }
        return ConnectionSecret(copying: text)
    }
}

/// Owner of a certificate.
@safe struct GnuTLSCertificate: ~Copyable {
    let pointer: gnutls_x509_crt_t

    /// An empty one.
    init() throws(HTTPError) { unsafe pointer = try Self.allocate() }

    /// The first of a PEM text.
    init(pem: [UInt8]) throws(HTTPError) {
        let empty = unsafe try Self.allocate()
        let status = unsafe withDatum(pem) { datum in
            var datum = unsafe datum
            return unsafe gnutls_x509_crt_import(empty, &datum, GNUTLS_X509_FMT_PEM)
        }
        if status < 0 { unsafe gnutls_x509_crt_deinit(empty) }
        try checkTLS(status, "read a certificate (PEM, -----BEGIN CERTIFICATE-----)")
        unsafe pointer = empty
    }

    deinit { unsafe gnutls_x509_crt_deinit(pointer) }

    private static func allocate() throws(HTTPError) -> gnutls_x509_crt_t {
        var made: gnutls_x509_crt_t?
        try checkTLS(unsafe gnutls_x509_crt_init(&made), "make a certificate")
        return unsafe made!
    }

    /// Everything but key and signature, as RFC 5280 and the CA/Browser Forum ask for.
    func describe(commonName: String, addresses: [String], days: Int) throws(HTTPError) {
        let what = "make a certificate for \(commonName)"
        let name = Array(commonName.utf8)
        try checkTLS(unsafe gnutls_x509_crt_set_version(pointer, 3), what)
        try checkTLS(
            unsafe gnutls_x509_crt_set_dn_by_oid(
                pointer, "2.5.4.3", 0, name, UInt32(name.count)), what)
        // Positive, and at most 20 bytes.
        let serial = [UInt8.random(in: 1...0x7F)] + (0..<15).map { _ in UInt8.random(in: 0...255) }
        try checkTLS(unsafe gnutls_x509_crt_set_serial(pointer, serial, serial.count), what)
        let now = time(nil)
        // Clocks differ: it is valid for those that are a day behind.
        try checkTLS(unsafe gnutls_x509_crt_set_activation_time(pointer, now - 86400), what)
        try checkTLS(
            unsafe gnutls_x509_crt_set_expiration_time(pointer, now + days * 86400), what)
        for address in addresses { try add(address, what) }
        try checkTLS(unsafe gnutls_x509_crt_set_basic_constraints(pointer, 0, -1), what)
        try checkTLS(
            unsafe gnutls_x509_crt_set_key_usage(pointer, UInt32(GNUTLS_KEY_DIGITAL_SIGNATURE)),
            what)
        // id-kp-serverAuth.
        try checkTLS(
            unsafe gnutls_x509_crt_set_key_purpose_oid(pointer, "1.3.6.1.5.5.7.3.1", 0), what)
    }

    /// A subject alternative name: of addresses the bytes (RFC 5280 section 4.2.1.6).
    private func add(_ address: String, _ what: String) throws(HTTPError) {
        var bytes = [UInt8](repeating: 0, count: 16)
        let type: gnutls_x509_subject_alt_name_t
        if unsafe inet_pton(AF_INET, address, &bytes) == 1 {
            bytes.removeLast(12)
            type = GNUTLS_SAN_IPADDRESS
        } else if unsafe inet_pton(AF_INET6, address, &bytes) == 1 {
            type = GNUTLS_SAN_IPADDRESS
        } else {
            bytes = Array(address.utf8)
            type = GNUTLS_SAN_DNSNAME
        }
        try checkTLS(
            unsafe gnutls_x509_crt_set_subject_alt_name(
                pointer, type, bytes, UInt32(bytes.count), UInt32(GNUTLS_FSAN_APPEND)), what)
    }

    func sign(with key: borrowing GnuTLSKey) throws(HTTPError) {
        try checkTLS(unsafe gnutls_x509_crt_set_key(pointer, key.pointer), "sign a certificate")
        try checkTLS(
            unsafe gnutls_x509_crt_sign2(pointer, pointer, key.pointer, GNUTLS_DIG_SHA256, 0),
            "sign a certificate")
    }

    func exportPEM() throws(HTTPError) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 32768)
        var size = buffer.count
        try checkTLS(
            unsafe gnutls_x509_crt_export(pointer, GNUTLS_X509_FMT_PEM, &buffer, &size),
            "write a certificate as PEM")
        return Array(buffer[..<size])
    }

    /// SHA-256 of the DER form of SubjectPublicKeyInfo.
    func publicKeyHash() throws(HTTPError) -> InlineArray<32, UInt8> {
        let what = "read the public key of a certificate"
        var made: gnutls_pubkey_t?
        try checkTLS(unsafe gnutls_pubkey_init(&made), what)
        defer { unsafe gnutls_pubkey_deinit(made) }
        try checkTLS(unsafe gnutls_pubkey_import_x509(made, pointer, 0), what)
        var info = [UInt8](repeating: 0, count: 16384)
        var size = info.count
        try checkTLS(
            unsafe gnutls_pubkey_export(made, GNUTLS_X509_FMT_DER, &info, &size), what)
        var hash = [UInt8](repeating: 0, count: 32)
        try checkTLS(unsafe gnutls_hash_fast(GNUTLS_DIG_SHA256, info, size, &hash), what)
        var result = InlineArray<32, UInt8>(repeating: 0)
        for index in 0..<32 { result[index] = hash[index] }
        return result
    }
}
