// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import HostProcess

/// One client of the agent's socket: a line in, a line out, never waiting.
final class AgentSession {
    /// Milliseconds without a byte until a client is let go.
    static let patience: Int64 = 30_000

    private let descriptor: Descriptor
    private var input: [UInt8] = []
    private var output: [UInt8] = []
    private var written = 0
    /// Its answer comes later.
    private(set) var isWaiting = false
    private(set) var isOver = false
    private var lastActivity: Int64

    init(_ descriptor: consuming Descriptor, now: Int64) {
        self.descriptor = descriptor
        lastActivity = now
    }

    var number: Int32 { descriptor.number }
    var wantsWrite: Bool { written < output.count }
    var wantsRead: Bool { !isWaiting && !wantsWrite }

    func isStale(now: Int64) -> Bool { !isWaiting && now - lastActivity >= Self.patience }

    /// The request, when its line is complete. What is no request ends the connection with a reason.
    func read(using buffer: inout [UInt8], now: Int64) -> AgentRequest? {
        switch descriptor.read(into: &buffer) {
        case .empty: return nil
        case .ended:
            isOver = true
            return nil
        case .bytes(let count):
            lastActivity = now
            input += buffer[..<count]
        }
        guard let newline = input.firstIndex(of: 0x0A) else {
            if input.count >= AgentRequest.limit { refuse("a request has at most 4096 bytes") }
            return nil
        }
        let line = Array(input[..<newline])
        input.removeSubrange(...newline)
        guard let request = try? Wire.decode(AgentRequest.self, from: line),
            request.schemaVersion == AgentStatus.schemaVersion
        else {
            refuse("the request is not understood; use programs of one version")
            return nil
        }
        isWaiting = true
        return request
    }

    private func refuse(_ reason: String) {
        answer(.failed(1, reason))
        if !wantsWrite { isOver = true }
    }

    func answer(_ answer: AgentAnswer) {
        isWaiting = false
        output = Wire.encode(answer) + [0x0A]
        written = 0
        flush()
    }

    func flush() {
        while wantsWrite {
            guard let count = descriptor.write(output, from: written) else {
                isOver = true
                return
            }
            guard count > 0 else { return }
            written += count
        }
    }
}
