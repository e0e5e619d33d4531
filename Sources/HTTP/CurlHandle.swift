// SPDX-License-Identifier: Apache-2.0
import CCurl
import Glibc
import WireGuard

/// Once, before all else of libcurl (curl_global_init(3)).
private let isLibraryReady: Bool = curl_global_init(Int(CURL_GLOBAL_ALL)) == CURLE_OK

/// Owner of an easy handle, with its connections, and of the memory that libcurl writes to.
///
/// `@unchecked Sendable`: a value of its own, which only its owner reaches.
@safe struct CurlHandle: ~Copyable, @unchecked Sendable {
    private let curl: UnsafeMutableRawPointer
    /// Connections refer to it, so that it lives until they are closed.
    private let seen: UnsafeMutablePointer<ccurl_certificate>
    private let errorText: UnsafeMutablePointer<CChar>

    init() throws(HTTPError) {
        guard isLibraryReady, let made = unsafe curl_easy_init() else {
            throw HTTPError("cannot start libcurl: no memory")
        }
        unsafe curl = made
        unsafe seen = .allocate(capacity: 1)
        unsafe seen.initialize(to: ccurl_certificate())
        unsafe errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        unsafe errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    deinit {
        unsafe curl_easy_cleanup(curl)
        unsafe seen.deallocate()
        unsafe errorText.deallocate()
    }

    /// Connections, sessions and names stay.
    mutating func reset() {
        unsafe curl_easy_reset(curl)
        unsafe seen.pointee = ccurl_certificate()
        unsafe errorText.pointee = 0
    }

    // ---- settings

    private func set(_ option: CURLoption, _ value: Int) throws(HTTPClientError) {
        try check(unsafe ccurl_set_number(curl, option, value))
    }

    private func set(_ option: CURLoption, _ value: String?) throws(HTTPClientError) {
        if let value {
            try check(unsafe ccurl_set_text(curl, option, value))
        } else {
            try check(unsafe ccurl_set_text(curl, option, nil))
        }
    }

    /// No setting is optional: one that libcurl does not take ends the request.
    private func check(_ status: CURLcode) throws(HTTPClientError) {
        guard status != CURLE_OK else { return }
        let reason = unsafe String(cString: curl_easy_strerror(status))
        throw HTTPClientError(.other, "cannot set libcurl up: \(reason)")
    }

    mutating func configure(
        _ options: HTTPClient.Options, _ trust: [UInt8]?
    ) throws(HTTPClientError) {
        try set(CURLOPT_NOSIGNAL, 1)
        try set(CURLOPT_PROTOCOLS_STR, "http,https")
        try set(CURLOPT_FOLLOWLOCATION, 0)
        try set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        try set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        try set(CURLOPT_USERAGENT, options.userAgent)
        try set(CURLOPT_UNIX_SOCKET_PATH, options.unixSocket)
        try set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        // The key that was agreed on beforehand says more than any authority could, and a
        // self-made certificate has none: with a pin, chain and name are not looked at.
        let hasPin = !options.pins.isEmpty
        try set(CURLOPT_SSL_VERIFYPEER, hasPin ? 0 : 1)
        try set(CURLOPT_SSL_VERIFYHOST, hasPin ? 0 : 2)
        if hasPin {
            try set(CURLOPT_PINNEDPUBLICKEY, options.pins.joined(separator: ";"))
        }
        if let trust {
            for option in [CURLOPT_CAINFO_BLOB, CURLOPT_PROXY_CAINFO_BLOB] {
                try check(unsafe ccurl_set_bytes(curl, option, trust, trust.count))
            }
        }
        if options.systemBundle != nil { try set(CURLOPT_CAPATH, nil) }
        try check(unsafe ccurl_observe_certificate(curl, seen))
        try check(unsafe ccurl_set_pointer(curl, CURLOPT_ERRORBUFFER, errorText))
    }

    mutating func configure(
        _ target: RequestTarget, connectTimeout: Duration, total: Duration?, silence: Duration,
        isFresh: Bool
    ) throws(HTTPClientError) {
        try set(CURLOPT_URL, target.url)
        // What is plain stays on this host.
        if !target.isTLS { try set(CURLOPT_PROXY, "") }
        try set(CURLOPT_CONNECTTIMEOUT_MS, Int(connectTimeout.milliseconds))
        if let total {
            try set(CURLOPT_TIMEOUT_MS, Int(total.milliseconds))
        } else {
            try set(CURLOPT_LOW_SPEED_LIMIT, 1)
            try set(CURLOPT_LOW_SPEED_TIME, Int(max(silence.components.seconds, 1)))
        }
        if isFresh { try set(CURLOPT_FRESH_CONNECT, 1) }
    }

    // ---- a request

    mutating func perform(
        _ request: HTTPClientRequest, _ target: RequestTarget, _ transfer: Transfer
    ) throws(HTTPClientError) -> HTTPClientResponse {
        guard request.headers.areWellFormed else {
            throw HTTPClientError(
                .other, "cannot ask \(target.place): a header field has forbidden characters")
        }
        try set(CURLOPT_CUSTOMREQUEST, request.method)
        if request.method == "HEAD" { try set(CURLOPT_NOBODY, 1) }
        let list = HeaderList(request)
        try check(unsafe ccurl_set_pointer(curl, CURLOPT_HTTPHEADER, list.head))
        unsafe installCallbacks(curl, transfer)
        let status = try send(request)
        _ = consume list
        guard status == CURLE_OK || transfer.isSatisfied else {
            throw failure(status, target, transfer)
        }
        return HTTPClientResponse(
            status: unsafe ccurl_number(curl, CURLINFO_RESPONSE_CODE), headers: transfer.headers,
            body: transfer.body)
    }

    /// libcurl does not copy the body: it is there until the end.
    private func send(_ request: HTTPClientRequest) throws(HTTPClientError) -> CURLcode {
        guard !request.body.isEmpty || ["POST", "PUT", "PATCH"].contains(request.method) else {
            return withoutBrokenPipes { unsafe curl_easy_perform(curl) }
        }
        try check(
            unsafe ccurl_set_size(curl, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(request.body.count))
        )
        let body = request.body + [0]  // never empty: libcurl would read its callback instead
        return unsafe body.withUnsafeBytes { bytes in
            let start = unsafe UnsafeMutableRawPointer(mutating: bytes.baseAddress)
            _ = unsafe ccurl_set_pointer(curl, CURLOPT_POSTFIELDS, start)
            return withoutBrokenPipes { unsafe curl_easy_perform(curl) }
        }
    }

    private func failure(
        _ status: CURLcode, _ target: RequestTarget, _ transfer: Transfer
    ) -> HTTPClientError {
        let text = unsafe String(cString: errorText)
        return clientError(
            status, text: text.isEmpty ? unsafe String(cString: curl_easy_strerror(status)) : text,
            place: target.place, transfer: transfer,
            proxyStatus: unsafe ccurl_number(curl, CURLINFO_HTTP_CONNECTCODE), seen: seenCertificate
        )
    }

    private var seenCertificate: HTTPClientError.SeenCertificate? {
        let subject = unsafe string(
            &seen.pointee.subject, MemoryLayout.size(ofValue: seen.pointee.subject))
        let pin = unsafe string(&seen.pointee.pin, MemoryLayout.size(ofValue: seen.pointee.pin))
        guard !pin.isEmpty else { return nil }
        return .init(
            subject: subject,
            issuer: unsafe string(
                &seen.pointee.issuer, MemoryLayout.size(ofValue: seen.pointee.issuer)),
            pin: pin,
            problem: unsafe string(
                &seen.pointee.problem, MemoryLayout.size(ofValue: seen.pointee.problem)))
    }

    /// C text in a field of `size` bytes.
    private func string(_ field: UnsafeMutableRawPointer, _ size: Int) -> String {
        let bytes = unsafe UnsafeRawBufferPointer(start: field, count: size)
        return unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
}

/// Owner of the list of header fields. Erased at the end, for the token among them.
@safe private struct HeaderList: ~Copyable {
    private(set) var head: UnsafeMutablePointer<curl_slist>?

    init(_ request: HTTPClientRequest) {
        unsafe head = nil
        for field in request.headers.fields { append("\(field.name): \(field.value)") }
        // curl would wait up to a second for a 100 (RFC 9110 section 10.1.1), and call a body a form.
        if request.headers["Expect"] == nil { append("Expect:") }
        if request.headers["Content-Type"] == nil {
            append(request.body.isEmpty ? "Content-Type:" : "Content-Type: application/json")
        }
        request.bearer?.withBytes { token in
            var text = Array("Authorization: Bearer ".utf8)
            text.reserveCapacity(text.count + token.count + 1)
            defer { erase(&text) }
            for index in token.indices { text.append(token[index]) }
            text.append(0)
            unsafe text.withUnsafeBufferPointer { buffer in
                unsafe buffer.withMemoryRebound(to: CChar.self) { text in
                    unsafe head = curl_slist_append(head, text.baseAddress) ?? head
                }
            }
        }
    }

    deinit {
        var entry = unsafe head
        while let current = unsafe entry {
            unsafe explicit_bzero(current.pointee.data, strlen(current.pointee.data))
            unsafe entry = current.pointee.next
        }
        unsafe curl_slist_free_all(head)
    }

    private mutating func append(_ line: String) {
        unsafe head = curl_slist_append(head, line) ?? head
    }
}

private func installCallbacks(_ curl: UnsafeMutableRawPointer, _ transfer: Transfer) {
    func noted(_ context: UnsafeMutableRawPointer?) -> Transfer {
        unsafe Unmanaged<Transfer>.fromOpaque(context!).takeUnretainedValue()
    }
    // A number other than that of the bytes given ends the transfer.
    unsafe ccurl_set_callbacks(
        curl,
        { bytes, _, count, context in
            let piece = unsafe Array(UnsafeRawBufferPointer(start: bytes, count: count))
            return unsafe noted(context).receive(piece) ? count : 0
        },
        { bytes, _, count, context in
            let line = unsafe Array(UnsafeRawBufferPointer(start: bytes, count: count))
            return unsafe noted(context).receive(headerLine: line) ? count : 0
        },
        { context, _, _, _, _ in unsafe noted(context).isCancelled() ? 1 : 0 },
        Unmanaged.passUnretained(transfer).toOpaque())
}

/// With CURLOPT_NOSIGNAL(3) libcurl leaves SIGPIPE to us: blocked, and taken away if one came.
private func withoutBrokenPipes(_ body: () -> CURLcode) -> CURLcode {
    var pipe = sigset_t()
    var before = sigset_t()
    unsafe sigemptyset(&pipe)
    unsafe sigaddset(&pipe, SIGPIPE)
    unsafe pthread_sigmask(SIG_BLOCK, &pipe, &before)
    let status = body()
    var atOnce = timespec()
    while unsafe sigtimedwait(&pipe, nil, &atOnce) > 0 {}
    unsafe pthread_sigmask(SIG_SETMASK, &before, nil)
    return status
}
