// SPDX-License-Identifier: Apache-2.0
import CCurl

/// A URL that was looked at before anything is sent to it.
struct RequestTarget {
    let url: String
    let isTLS: Bool
    /// `host:port`, for messages.
    let place: String

    /// Throws for what is no URL, for one with a password in it, and for plain HTTP to anywhere but
    /// this host.
    init(_ url: String, isLocalSocket: Bool) throws(HTTPClientError) {
        guard let parts = unsafe curl_url() else {
            throw HTTPClientError(.other, "cannot open \(url): no memory")
        }
        defer { unsafe curl_url_cleanup(parts) }
        guard unsafe curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK,
            let scheme = unsafe Self.part(parts, CURLUPART_SCHEME),
            let host = unsafe Self.part(parts, CURLUPART_HOST)
        else {
            throw HTTPClientError(
                .other,
                "cannot open \"\(url)\": that is no URL; write https://HOST/ or https://HOST:PORT/")
        }
        let port = unsafe Self.part(parts, CURLUPART_PORT)
        place = port.map { "\(host):\($0)" } ?? host
        isTLS = scheme == "https"
        self.url = url
        guard unsafe Self.part(parts, CURLUPART_USER) == nil else {
            throw HTTPClientError(
                .other, "cannot open a URL of \(place): a name or password stands in it; remove it")
        }
        guard isTLS || scheme == "http" && (isLocalSocket || Self.isThisHost(host)) else {
            throw HTTPClientError(
                .other,
                "cannot open \(scheme)://\(place): tokens would be readable on the way; use https")
        }
    }

    /// curl resolves localhost by itself, to loopback addresses (curl 7.77).
    private static func isThisHost(_ host: String) -> Bool {
        let address = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        return host == "localhost" || isLoopback(address)
    }

    private static func part(_ parts: OpaquePointer, _ what: CURLUPart) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard unsafe curl_url_get(parts, what, &text, 0) == CURLUE_OK, let text = unsafe text else {
            return nil
        }
        defer { unsafe curl_free(text) }
        return unsafe String(cString: text)
    }
}
