// SPDX-License-Identifier: Apache-2.0
import CMicroHTTPD
import Glibc
import Synchronization

/// One request and its answer.
///
/// Thread-safety: used by the thread of its connection only.
final class Exchange {
    private let connection: ServerConnection
    private var body: [UInt8] = []
    /// Bytes of the body that came, also those that were not kept.
    private var received = 0
    /// Bytes of the body as its head says; nil: it does not.
    private var announced: Int?
    /// The body is not kept; this status is the answer.
    private var refusal: Int?
    private var reserved = 0

    /// Bytes of a body that is taken however many others are there: a few clients that send much, and
    /// slowly, do not keep out the many that send little.
    private static let smallBody = 4096

    init(_ connection: ServerConnection) { self.connection = connection }

    /// At the end of the head. A body that says it is too long is refused before it comes.
    func begin(_ core: ServerCore, _ library: OpaquePointer, _ version: String) -> MHD_Result {
        connection.expectEnd(within: core.options.bodyDeadline)
        guard let framing = unsafe RequestFraming(Self.headers(of: library), version: version)
        else { return unsafe send(.lastOne(400), core, library) }
        announced = framing.announced
        guard let announced, announced > core.options.bodyLimit else { return .YES }
        return unsafe send(.lastOne(413), core, library)
    }

    /// A body that grows too long is read on and forgotten, since an answer in the middle of it
    /// would not be read; but not without end.
    func receive(_ piece: UnsafeRawBufferPointer, _ core: ServerCore) -> MHD_Result {
        received += piece.count
        guard received <= 4 * core.options.bodyLimit + (64 << 10) else { return .NO }
        if refusal == nil {
            if received > core.options.bodyLimit {
                refuse(413, core)
            } else if !reserve(piece.count, core) {
                refuse(503, core)
            } else {
                unsafe body.append(contentsOf: piece)
            }
        }
        return .YES
    }

    /// At the end of the body.
    func answer(
        _ core: ServerCore, _ library: OpaquePointer, _ method: String, _ path: String
    ) -> MHD_Result {
        if let refusal {
            var response = HTTPResponse.plain(refusal)
            if refusal == 503 { response.headers["Retry-After"] = "5" }
            return unsafe send(response, core, library)
        }
        // Whatever the library took for the length: what it takes for the next request would be this
        // one's body.
        guard announced == nil || announced == received else {
            release(core)
            return unsafe send(.lastOne(400), core, library)
        }
        let request = HTTPRequest(
            method: method, path: path, query: unsafe Self.query(of: library),
            headers: unsafe Self.headers(of: library), body: body, origin: connection.origin,
            isSecure: core.isSecure || connection.origin.isLocal)
        release(core)
        return unsafe send(core.handler(request), core, library)
    }

    /// The answer was taken, or the connection broke.
    func complete(_ core: ServerCore) {
        release(core)
        connection.expectEnd(within: core.options.idleDeadline)
    }

    private func refuse(_ status: Int, _ core: ServerCore) {
        refusal = status
        release(core)
    }

    private func reserve(_ count: Int, _ core: ServerCore) -> Bool {
        let (_, total) = core.bodyBytes.wrappingAdd(count, ordering: .relaxed)
        reserved += count
        return total <= core.options.bodiesLimit || received <= Self.smallBody
    }

    private func release(_ core: ServerCore) {
        core.bodyBytes.wrappingSubtract(reserved, ordering: .relaxed)
        reserved = 0
        body = []
    }

    private func send(
        _ response: HTTPResponse, _ core: ServerCore, _ library: OpaquePointer
    ) -> MHD_Result {
        guard (200...599).contains(response.status), response.headers.areWellFormed else {
            return unsafe send(.plain(500), core, library)
        }
        if let stream = response.stream {
            connection.expectEnd(within: nil)
            stream.attach(to: connection, of: core.connections)
            core.add(stream)
        } else {
            connection.expectEnd(within: core.options.answerDeadline)
        }
        let made = unsafe response.stream.map { unsafe streamResponse($0, core, library) }
        guard let made = unsafe made ?? bufferResponse(response.body) else { return .NO }
        defer { unsafe MHD_destroy_response(made) }
        for field in response.headers.fields {
            unsafe MHD_add_response_header(made, field.name, field.value)
        }
        return unsafe MHD_queue_response(library, UInt32(response.status), made)
    }

    private func bufferResponse(_ body: [UInt8]) -> OpaquePointer? {
        unsafe body.withUnsafeBytes { bytes in
            // It copies, and does not write to what it copies from.
            let start = unsafe UnsafeMutableRawPointer(mutating: bytes.baseAddress)
            return unsafe MHD_create_response_from_buffer(
                bytes.count, start, .RESPMEM_MUST_COPY)
        }
    }

    private func streamResponse(
        _ stream: EventStream, _ core: ServerCore, _ library: OpaquePointer
    ) -> OpaquePointer? {
        let reader = unsafe Unmanaged.passRetained(
            StreamReader(stream, core, LibraryConnection(library)))
        let made = unsafe MHD_create_response_from_callback(
            UInt64.max,  // MHD_SIZE_UNKNOWN
            4096,
            { context, _, buffer, size in
                let reader = unsafe Unmanaged<StreamReader>.fromOpaque(context!)
                return unsafe reader.takeUnretainedValue().read(buffer!, size)
            }, reader.toOpaque(),
            { context in
                let reader = unsafe Unmanaged<StreamReader>.fromOpaque(context!)
                unsafe reader.takeRetainedValue().end()
            })
        if unsafe made == nil { unsafe reader.takeRetainedValue().end() }
        return unsafe made
    }

    private static func headers(of library: OpaquePointer) -> HTTPHeaders {
        var headers = HTTPHeaders()
        unsafe withUnsafeMutablePointer(to: &headers) { pointer in
            _ = unsafe MHD_get_connection_values(
                library, .HEADER_KIND,
                { context, _, name, value in
                    let headers = unsafe context!.assumingMemoryBound(to: HTTPHeaders.self)
                    unsafe headers.pointee.append(
                        String(cString: name!), value.map { unsafe String(cString: $0) } ?? "")
                    return .YES
                }, pointer)
        }
        return headers
    }

    /// The library has cut it at `&` and `=` and made spaces of `+`.
    private static func query(of library: OpaquePointer) -> [String: String] {
        var query: [String: String] = [:]
        unsafe withUnsafeMutablePointer(to: &query) { pointer in
            _ = unsafe MHD_get_connection_values(
                library, .GET_ARGUMENT_KIND,
                { context, _, name, value in
                    let query = unsafe context!.assumingMemoryBound(to: [String: String].self)
                    let value = unsafe value.map { unsafe String(cString: $0) } ?? ""
                    // What cannot be decoded stands for itself.
                    let name = unsafe String(cString: name!)
                    let key = HTTPText.decoded(name) ?? name
                    if unsafe query.pointee[key] == nil {
                        unsafe query.pointee[key] = HTTPText.decoded(value) ?? value
                    }
                    return .YES
                }, pointer)
        }
        return query
    }
}

/// What the library asks for the bytes of an event stream.
private final class StreamReader {
    private let stream: EventStream
    private let core: ServerCore
    private let library: LibraryConnection

    init(_ stream: EventStream, _ core: ServerCore, _ library: LibraryConnection) {
        self.stream = stream
        self.core = core
        self.library = library
    }

    func read(_ buffer: UnsafeMutablePointer<CChar>, _ size: Int) -> Int {
        let room = unsafe UnsafeMutableRawBufferPointer(start: buffer, count: size)
        return unsafe stream.read(into: room, of: library)
    }

    func end() { core.remove(stream) }
}

extension HTTPRequest.Origin {
    fileprivate var isLocal: Bool {
        switch self {
        case .unix: true
        case .ip(let address): address == "::1" || address.hasPrefix("127.")
        }
    }
}

extension HTTPResponse {
    /// A refusal by the server itself. Agents take no notice of what is not JSON.
    fileprivate static func plain(_ status: Int) -> HTTPResponse {
        HTTPResponse(status: status)
    }

    /// Where the request ends is not known, or not waited for: nothing after it is one.
    fileprivate static func lastOne(_ status: Int) -> HTTPResponse {
        HTTPResponse(status: status, headers: ["Connection": "close"])
    }
}
