// SPDX-License-Identifier: Apache-2.0
// The client's side of the texts on the keeper's socket.
import TunnelPlan
import WireGuard

enum RequestText {
    static func plain(_ verb: String) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.number("schemaVersion", keeperSchemaVersion)
        json.string("verb", verb)
        json.endObject()
        return json.text + [0x0A]
    }

    static func down(staysPersistent: Bool) -> [UInt8] {
        guard staysPersistent else { return plain("down") }
        var json = JSONWriter()
        json.beginObject()
        json.number("schemaVersion", keeperSchemaVersion)
        json.string("verb", "down")
        json.beginObject("options")
        json.bool("staysPersistent", true)
        json.endObject()
        json.endObject()
        return json.text + [0x0A]
    }

    /// The caller erases the result, as it does `configuration`.
    static func apply(
        _ configuration: [UInt8], _ options: KeeperClient.ApplyOptions
    ) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.number("schemaVersion", keeperSchemaVersion)
        json.string("verb", options.isDryRun ? "plan" : "apply")
        json.beginObject("options")
        json.string("backend", options.backend?.rawValue ?? "auto")
        if let seconds = options.confirmSeconds { json.number("confirmSeconds", UInt64(seconds)) }
        json.bool("allowHooks", options.hooks == .allow)
        if options.hooks == .ignore { json.bool("ignoreHooks", true) }
        json.bool("lenient", options.isLenient)
        if options.isPersistent { json.bool("persistent", true) }
        if options.renewsLink { json.bool("renewsLink", true) }
        write(options.gateway, to: &json)
        json.endObject()
        // The writer's buffer would grow with keys in it, and a String of them is erased by nobody.
        var text = json.text
        let key = Array(",\"configuration\":\"".utf8)
        text.reserveCapacity(
            text.count + key.count + configuration.reduce(8) { $0 + escapedLength($1) })
        text += key
        for byte in configuration { append(byte, to: &text) }
        text += Array("\"}\n".utf8)
        return text
    }

    private static func write(_ gateway: Gateway, to json: inout JSONWriter) {
        if gateway.masquerades { json.bool("masquerades", true) }
        if gateway.forwardsBetweenPeers { json.bool("forwardsBetweenPeers", true) }
        if gateway.answersThroughTunnel { json.bool("answersThroughTunnel", true) }
        guard !gateway.forwards.isEmpty else { return }
        json.beginArray("forwards")
        for forward in gateway.forwards { json.write(forward) }
        json.endArray()
    }

    /// RFC 8259 section 7.
    private static func escapedLength(_ byte: UInt8) -> Int {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), 0x0A: 2
        case 0..<0x20: 6
        default: 1
        }
    }

    private static func append(_ byte: UInt8, to text: inout [UInt8]) {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"):
            text.append(UInt8(ascii: "\\"))
            text.append(byte)
        case 0x0A:
            text.append(UInt8(ascii: "\\"))
            text.append(UInt8(ascii: "n"))
        case 0..<0x20:
            text += Array("\\u00".utf8)
            text.append(0x30 + byte >> 4)
            text.append(byte & 15 < 10 ? 0x30 + byte & 15 : 0x57 + byte & 15)
        default: text.append(byte)
        }
    }
}

/// Whatever the keeper may say. Members that this version does not know are skipped: a newer keeper
/// may say more.
struct ReceivedAnswer {
    var applied = AppliedReport()
    var status: KeeperStatus?
    var event: KeeperEvent?
    var device: DeviceState?
    var failure: KeeperFailure?

    private var isOK = false
    private var phase: KeeperStatus.Phase?
    private var process: UInt64 = 0
    private var unresolved: [String] = []
    private var clockBehind: UInt64?
    private var endpointsHeld: UInt64?
    private var mended: UInt64 = 0
    private var lastWarning: String?
    private var eventKind: KeeperEvent.Kind?
    private var message = ""

    init(_ line: [UInt8]) throws(JSONError) {
        applied.json = line
        var reader = JSONReader(line)
        try reader.beginObject()
        while let key = try reader.nextKey() { try read(key, &reader) }
        try reader.end()
        assemble()
        if event == nil, !isOK, failure == nil {
            throw JSONError(offset: 0, reason: "neither an answer nor an event")
        }
    }

    private mutating func read(_ key: String, _ reader: inout JSONReader) throws(JSONError) {
        switch key {
        case "ok": isOK = try reader.bool()
        case "isPlan": applied.isPlan = try reader.bool()
        case "changes": applied.changes = try reader.strings()
        case "warnings": applied.warnings = try reader.strings()
        case "confirmSeconds": applied.confirmSeconds = try reader.number()
        case "phase": phase = KeeperStatus.Phase(rawValue: try reader.word())
        case "process": process = try reader.number()
        case "unresolved": unresolved = try reader.strings()
        case "clockBehindSeconds": clockBehind = try reader.number()
        case "endpointsHeldSeconds": endpointsHeld = try reader.number()
        case "mended": mended = try reader.number()
        case "lastWarning": lastWarning = try reader.word()
        case "event": eventKind = KeeperEvent.Kind(rawValue: try reader.word())
        case "message": message = try reader.word()
        case "device": device = try reader.deviceState()
        case "error": failure = try Self.readFailure(&reader)
        default: try reader.skip()
        }
    }

    private static func readFailure(
        _ reader: inout JSONReader
    ) throws(JSONError) -> KeeperFailure {
        var failure = KeeperFailure(.failed, "")
        try reader.beginObject()
        while let key = try reader.nextKey() {
            switch key {
            case "kind":
                failure.kind = KeeperFailure.Kind(rawValue: try reader.word()) ?? .failed
            case "message": failure.message = try reader.word()
            default: try reader.skip()
            }
        }
        return failure
    }

    private mutating func assemble() {
        if let eventKind { event = KeeperEvent(eventKind, message) }
        guard let phase else { return }
        var status = KeeperStatus(phase: phase, process: Int32(clamping: process))
        status.confirmSeconds = applied.confirmSeconds
        status.unresolved = unresolved
        status.clockBehind = clockBehind
        status.endpointsHeld = endpointsHeld
        status.mended = mended
        status.lastWarning = lastWarning
        self.status = status
    }
}

extension JSONReader {
    mutating func word() throws(JSONError) -> String {
        String(decoding: try string(), as: UTF8.self)
    }

    mutating func strings() throws(JSONError) -> [String] {
        var result: [String] = []
        try beginArray()
        while try nextElement() { result.append(try word()) }
        return result
    }
}
