// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import HTTP
import Synchronization

/// Where events go: an event stream, or a test.
protocol EventSink: AnyObject, Sendable {
    var isClosed: Bool { get }
    @discardableResult func send(event: String, data: String) -> Bool
    func close()
}

extension EventStream: EventSink {}

/// The event streams that are open: those of devices, and those of operators.
final class Streams: Sendable {
    /// A device that reconnects has its former stream open for a while.
    private static let perDevice = 2
    private static let forOperators = 64

    private struct Open {
        var devices: [String: [any EventSink]] = [:]
        var operators: [Listener] = []
    }
    private struct Listener {
        var stream: any EventSink
        var isWelcome: @Sendable (Milliseconds) -> Bool
    }
    private let open = Mutex(Open())

    func add(_ stream: any EventSink, device: String) {
        let excess = open.withLock { open in
            var list = (open.devices[device] ?? []).filter { !$0.isClosed } + [stream]
            let excess = Array(list.dropLast(Self.perDevice))
            list.removeFirst(excess.count)
            open.devices[device] = list
            return excess
        }
        for stream in excess { stream.close() }
    }

    /// False: there are too many. `isWelcome` is asked now and then, and the stream ends with it.
    func addOperator(
        _ stream: any EventSink, while isWelcome: @escaping @Sendable (Milliseconds) -> Bool
    ) -> Bool {
        open.withLock { open in
            open.operators.removeAll { $0.stream.isClosed }
            guard open.operators.count < Self.forOperators else { return false }
            open.operators.append(Listener(stream: stream, isWelcome: isWelcome))
            return true
        }
    }

    func tell(_ device: String, _ event: DeviceEvent) {
        let list = open.withLock { $0.devices[device] ?? [] }
        for stream in list { stream.send(event: event.rawValue, data: "{}") }
    }

    func tellOperators(_ note: Effects.OperatorNote) {
        let list = open.withLock { $0.operators.map(\.stream) }
        guard !list.isEmpty else { return }
        let data = String(decoding: Wire.encode(OperatorEvent(id: note.id)), as: UTF8.self)
        for stream in list { stream.send(event: note.kind, data: data) }
    }

    /// Ends those of `device`, after what they were told.
    func close(device: String) {
        let list = open.withLock { $0.devices.removeValue(forKey: device) ?? [] }
        for stream in list { stream.close() }
    }

    /// Ends those of operators who may listen no longer, and forgets what is closed.
    func forgetClosed(at now: Milliseconds) {
        for listener in open.withLock({ $0.operators }) where !listener.isWelcome(now) {
            listener.stream.close()
        }
        open.withLock { open in
            open.operators.removeAll { $0.stream.isClosed }
            for (device, list) in open.devices {
                let rest = list.filter { !$0.isClosed }
                open.devices[device] = rest.isEmpty ? nil : rest
            }
        }
    }

    func close() {
        let all = open.withLock { open in
            defer { open = Open() }
            return open.operators.map(\.stream) + open.devices.values.joined()
        }
        for stream in all { stream.close() }
    }
}

/// The data of an event for operators: what it is about. Its kind is the event's name.
public struct OperatorEvent: Codable, Equatable, Sendable {
    /// Empty for the settings.
    public var id: String
}
