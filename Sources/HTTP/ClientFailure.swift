// SPDX-License-Identifier: Apache-2.0
import CCurl

/// What an error of libcurl (libcurl-errors(3)) means, and what to do.
func clientError(
    _ status: CURLcode, text: String, place: String, transfer: Transfer, proxyStatus: Int,
    seen: HTTPClientError.SeenCertificate?
) -> HTTPClientError {
    if proxyStatus != 0, !(200..<300).contains(proxyStatus) {
        return HTTPClientError(
            .connect,
            "cannot reach \(place): the proxy answers \(proxyStatus) to CONNECT; check the variables "
                + "https_proxy and no_proxy, and what the proxy allows")
    }
    if transfer.isTooLarge || status == CURLE_FILESIZE_EXCEEDED {
        return HTTPClientError(
            .tooLarge,
            "cannot take the answer of \(place): it is larger than \(transfer.limit) bytes; that is "
                + "no control server")
    }
    switch status {
    case CURLE_ABORTED_BY_CALLBACK:
        return HTTPClientError(.cancelled, "the request to \(place) was cancelled")
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY:
        return HTTPClientError(
            .resolve,
            "cannot reach \(place): \(text); check the name and the resolver (/etc/resolv.conf)")
    case CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED, CURLE_PROXY:
        return HTTPClientError(
            .connect,
            "cannot reach \(place): \(text); check the network, the firewall and that the server "
                + "runs")
    case CURLE_OPERATION_TIMEDOUT:
        return HTTPClientError(
            .timeout, "no answer of \(place) in time: \(text); check the network and the server")
    case CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING, CURLE_RECV_ERROR, CURLE_SEND_ERROR:
        return HTTPClientError(
            .cut, "the connection to \(place) ended before the answer did: \(text); try again")
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
        return HTTPClientError(.pinMismatch(seen: seen), pinText(place, seen))
    case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE,
        CURLE_SSL_CIPHER, CURLE_SSL_CERTPROBLEM, CURLE_SSL_ISSUER_ERROR,
        CURLE_SSL_INVALIDCERTSTATUS,
        CURLE_USE_SSL_FAILED:
        return HTTPClientError(.tls(seen: seen), tlsText(place, text, seen))
    default:
        return HTTPClientError(.other, "cannot ask \(place): \(text)")
    }
}

private func pinText(_ place: String, _ seen: HTTPClientError.SeenCertificate?) -> String {
    let shown = seen.map { "shows the key \($0.pin) (certificate of \"\($0.subject)\")" }
    return "cannot trust \(place): it \(shown ?? "shows a key") that is not pinned; somebody else "
        + "answers there, or its key was changed: compare with what the hub shows"
}

private func tlsText(
    _ place: String, _ text: String, _ seen: HTTPClientError.SeenCertificate?
) -> String {
    guard let seen else {
        return "cannot speak TLS 1.2 or newer with \(place): \(text); check the port, and what "
            + "stands in between"
    }
    let reason = seen.problem.isEmpty ? text : seen.problem
    return "cannot trust \(place): the certificate of \"\(seen.subject)\", signed by "
        + "\"\(seen.issuer)\": \(reason); if that signer is right, give its certificate as CA file, "
        + "otherwise TLS is intercepted on the way"
}
