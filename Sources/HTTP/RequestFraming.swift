// SPDX-License-Identifier: Apache-2.0

/// How a request says where it ends. A proxy in front and this server must not see two different
/// ends, or the body of one client becomes the request of another (RFC 9112 section 11.2). What
/// leaves a choice is refused, also where the library would choose.
struct RequestFraming {
    /// Of `Content-Length`; nil: without a body, or in chunks.
    let announced: Int?

    /// nil: 400 is due, and the end of the connection.
    init?(_ headers: HTTPHeaders, version: String) {
        guard headers.areAcceptable else { return nil }
        // RFC 9112 section 3.2; a missing one the library refuses.
        guard headers.all("Host").count <= 1 else { return nil }
        let lengths = headers.all("Content-Length")
        let codings = headers.all("Transfer-Encoding")
        guard lengths.count + codings.count <= 1 else { return nil }
        // A value that begins in the line after the name (section 5.2) is appended to the name by
        // the library: the length of `Content-Length:`, ` 2` would be a name that nobody looks for.
        let others = headers.fields.filter { field in
            let name = field.name.lowercased()
            return name.hasPrefix("content-length") || name.hasPrefix("transfer-encoding")
        }
        guard others.count == lengths.count + codings.count else { return nil }
        if let coding = codings.first {
            // Section 6.1: unknown to HTTP/1.0. Other codings than this one are not taken.
            guard version == "HTTP/1.1", coding.lowercased() == "chunked" else { return nil }
        }
        guard let length = lengths.first else {
            announced = nil
            return
        }
        // Section 6.3 and RFC 9110 section 8.6: digits and nothing else.
        guard !length.isEmpty, length.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
        announced = Int(length) ?? .max
    }
}
