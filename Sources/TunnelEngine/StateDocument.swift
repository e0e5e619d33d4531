// SPDX-License-Identifier: Apache-2.0
import WireGuard

/// The engine's state as JSON; docs/engine-state.md is its description.
public struct StateDocument: Equatable, Sendable {
    public static let schemaVersion: UInt64 = 1

    public var name: String
    public var version: String
    public var timestampFloor: TimestampFloor
    public var statistics: EngineStatistics

    public init(
        name: String, version: String, timestampFloor: TimestampFloor, statistics: EngineStatistics
    ) {
        self.name = name
        self.version = version
        self.timestampFloor = timestampFloor
        self.statistics = statistics
    }

    /// One line, without a newline.
    public func json() -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.number("schemaVersion", Self.schemaVersion)
        writer.string("name", name)
        writer.string("version", version)
        writer.string("aead", statistics.aead)
        writer.string("timestamp_floor", timestampFloor.description)
        writer.number("sessions", UInt64(statistics.sessions))
        writer.beginObject("ladder")
        for rung in statistics.ladder { writer.bool(rung.name, rung.value) }
        writer.endObject()
        write(statistics.drops, as: "drops", to: &writer)
        write(statistics.fallbacks, as: "fallbacks", to: &writer)
        writer.beginObject("handshakes")
        writer.number("initiated", statistics.handshakesInitiated)
        writer.number("completed", statistics.handshakesCompleted)
        writer.number("messages_received", statistics.handshakeMessagesReceived)
        writer.number("cookie_replies_sent", statistics.cookieRepliesSent)
        writer.endObject()
        writer.number("staged_bytes", statistics.stagedBytes)
        writer.number("control_wakeups", statistics.controlWakeups)
        writer.beginArray("workers")
        for worker in statistics.workers {
            writer.beginObject()
            writer.bool("split", worker.isSplit)
            writer.number("spun_ns", worker.spunNanoseconds)
            writer.number("spin_hits", worker.spinHits)
            write(worker.sending, as: "tx", to: &writer)
            write(worker.receiving, as: "rx", to: &writer)
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
        return writer.text
    }
}

private func write(
    _ counters: [EngineStatistics.Named<UInt64>], as key: String, to writer: inout JSONWriter
) {
    writer.beginObject(key)
    for counter in counters { writer.number(counter.name, counter.value) }
    writer.endObject()
}

private func write(
    _ direction: EngineStatistics.Direction, as key: String, to writer: inout JSONWriter
) {
    writer.beginObject(key)
    writer.number("packets", direction.packets)
    writer.number("bytes", direction.bytes)
    writer.number("batches", direction.batches)
    writer.number("system_calls", direction.systemCalls)
    writer.number("cpu_ns", direction.cpuNanoseconds)
    writer.beginArray("histogram")
    for count in direction.histogram { writer.number(nil, count) }
    writer.endArray()
    writer.endObject()
}
