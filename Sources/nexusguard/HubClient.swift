// SPDX-License-Identifier: Apache-2.0
// Asks the hub that runs on this machine, through its socket.
import ControlAPI
import HTTP
import HostProcess
import Hub

/// One answer that is no success ends the command with what the hub says.
struct HubClient {
    private let client: HTTPClient
    private let path: String
    private static let base = "http://localhost/api/v1/admin"

    init(_ invocation: Invocation) throws(Failure) {
        path = invocation.values["socket"] ?? defaultHubSocket
        var options = HTTPClient.Options()
        options.unixSocket = path
        options.userAgent = "\(programName)/\(programVersion)"
        // A backup, or a long list.
        options.bodyLimit = 1 << 30
        options.totalTimeout = .seconds(120)
        do throws(HTTPError) {
            client = try HTTPClient(options)
        } catch {
            throw Failure(error.description)
        }
    }

    /// The body of the answer.
    @discardableResult
    func ask(
        _ method: String, _ path: String, query: [(String, String?)] = [],
        body: (any Encodable & Sendable)? = nil
    ) throws(Failure) -> [UInt8] {
        let pairs = query.compactMap { name, value in
            value.map { "\(HTTPText.encoded(name))=\(HTTPText.encoded($0))" }
        }
        let url = Self.base + path + (pairs.isEmpty ? "" : "?" + pairs.joined(separator: "&"))
        var request = HTTPClientRequest(method, url)
        if let body {
            request.headers["Content-Type"] = Wire.contentType
            request.body = encoded(body)
        }
        let answer: HTTPClientResponse
        do throws(HTTPClientError) {
            answer = try client.perform(request)
        } catch {
            throw failure(error)
        }
        guard 200...299 ~= answer.status else { throw failure(answer) }
        return answer.body
    }

    func ask<Answer: Decodable>(
        _ type: Answer.Type, _ method: String, _ path: String, query: [(String, String?)] = [],
        body: (any Encodable & Sendable)? = nil
    ) throws(Failure) -> Answer {
        try decode(type, ask(method, path, query: query, body: body))
    }

    func decode<Answer: Decodable>(
        _ type: Answer.Type, _ bytes: [UInt8]
    ) throws(Failure) -> Answer {
        do throws(WireError) {
            return try Wire.decode(type, from: bytes, limit: 1 << 30)
        } catch {
            throw Failure("cannot understand the hub: \(error); use programs of one version")
        }
    }

    private func encoded(_ value: some Encodable) -> [UInt8] { Wire.encode(value) }

    private func failure(_ error: HTTPClientError) -> Failure {
        guard case .connect = error.kind else { return Failure(error.description) }
        // What libcurl does not tell.
        do throws(HostError) {
            _ = try Descriptor.connect(path)
        } catch {
            if error.kind == .noPermission {
                return Failure(
                    code: ExitCode.noPermission,
                    "\(error.description); run this as root or as a member of the group nexusguard")
            }
        }
        return Failure(
            code: ExitCode.notRunning,
            "no hub answers on \(path): start it with \(programName) hub run")
    }

    private func failure(_ answer: HTTPClientResponse) -> Failure {
        let problem = try? Wire.decode(Problem.self, from: answer.body)
        let text =
            problem?.detail ?? problem?.title ?? "the hub answers with status \(answer.status)"
        let code = [401, 403].contains(answer.status) ? ExitCode.noPermission : ExitCode.failed
        // It may name a device.
        return Failure(code: code, LogPrinter.visible(text))
    }
}

extension HubClient {
    /// The id of a device that is named by its id or by its name.
    func deviceId(_ text: String) throws(Failure) -> String {
        let found = try devices(matching: text)
        if found.contains(where: { $0.id == text }) { return text }
        let named = found.filter { $0.name == text }
        guard let first = named.first else { throw Failure("there is no device \(quoted(text))") }
        guard named.count == 1 else {
            throw Failure(
                "several devices are called \(quoted(text)): "
                    + named.map(\.id).joined(separator: ", ") + "; name one by its id")
        }
        return first.id
    }
}

extension HubClient {
    /// All of them, page by page: devices that take names like another's shall not hide it.
    private func devices(matching text: String) throws(Failure) -> [DeviceView] {
        var found: [DeviceView] = []
        while true {
            let page = try ask(
                Page<DeviceView>.self, "GET", "/devices",
                query: [("search", text), ("limit", "500"), ("offset", "\(found.count)")])
            found += page.items
            if page.items.isEmpty || found.count >= page.total { return found }
        }
    }
}

/// Rows of text below a heading, each column as wide as it needs to be. What devices say of
/// themselves steers no terminal.
func columns(_ heading: [String], _ rows: [[String]]) -> String {
    let rows = rows.map { $0.map(LogPrinter.visible) }
    var widths = heading.map(\.count)
    for row in rows {
        for (index, cell) in row.enumerated() { widths[index] = max(widths[index], cell.count) }
    }
    return ([heading] + rows).map { row in
        var line = ""
        for (index, cell) in row.enumerated() {
            line += cell
            guard index + 1 < row.count else { continue }
            line += String(repeating: " ", count: widths[index] - cell.count + 2)
        }
        return line + "\n"
    }.joined()
}

extension Invocation {
    /// With --json the answer as it is, else what `text` makes of it.
    func show(_ answer: [UInt8], _ text: () throws(Failure) -> String) throws(Failure) {
        if has("json") {
            try Output.write(bytes: answer + [0x0A])
        } else {
            try Output.write(text())
        }
    }
}
