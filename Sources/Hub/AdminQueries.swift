// SPDX-License-Identifier: Apache-2.0
// What operators look at: lists by page, counts, logs.
import ControlAPI
import SQLite

/// Which devices a list has.
struct DeviceQuery: Equatable, Sendable {
    /// In name, id, hardware id, platform, key, addresses or networks; any case; empty: all.
    var search = ""
    var control: DeviceView.Control?
    var offset = 0
    /// 1 to 500.
    var limit = 50
}

extension HubCore {
    /// By name; of equals by id.
    mutating func devices(_ query: DeviceQuery, at now: Milliseconds) -> Page<DeviceView> {
        let pattern = Array(query.search.lowercased().utf8)
        var total = 0
        var page: [String] = []
        for index in 0..<order.count {
            // Of those that are only counted nothing else is looked at.
            let id = order[index]
            if !pattern.isEmpty, !contains(model.searchTexts[id] ?? [], pattern) { continue }
            if let wanted = query.control {
                guard let device = model.devices[id], control(device, at: now) == wanted else {
                    continue
                }
            }
            if total >= query.offset, page.count < query.limit { page.append(id) }
            total += 1
        }
        let items = page.compactMap { model.devices[$0] }.map { view($0, at: now) }
        return Page(items: items, total: total, offset: query.offset)
    }

    func counts(at now: Milliseconds) -> CountsView {
        var counts = CountsView(
            devices: model.devices.count, pending: 0, reporting: 0, silent: 0, revoked: 0,
            tunnelsUp: 0, tokens: model.tokens.count, forwards: model.forwards.count,
            openAlarms: model.openAlarms.count)
        for device in model.devices.values {
            switch control(device, at: now) {
            case .pending: counts.pending += 1
            case .silent: counts.silent += 1
            case .revoked: counts.revoked += 1
            case .reporting:
                counts.reporting += 1
                if live[device.id]?.isTunnelUp == true { counts.tunnelsUp += 1 }
            }
        }
        return counts
    }

    /// Newest first. `before`: only records with smaller numbers.
    func logs(
        device: String?, before: Int64?, limit: Int
    ) throws(Refusal) -> [LogView] {
        do throws(SQLiteError) {
            let rows = try store.database.rows(
                """
                SELECT * FROM log WHERE (? IS NULL OR device_id = ?) AND id < ?
                ORDER BY id DESC LIMIT ?
                """,
                [
                    Value(device), Value(device), .integer(before ?? .max), .integer(Int64(limit)),
                ])
            return rows.compactMap { row in
                guard let record = LogRecord(row), let id = row.integer("id") else { return nil }
                return LogView(
                    id: id, time: Timestamp(record.time), level: record.level, tag: record.tag,
                    message: record.message, deviceId: record.deviceId, actor: record.actor)
            }
        } catch {
            throw Refusal(.unavailable, "cannot read the log: \(error)", retryAfter: 30)
        }
    }

    mutating func acknowledge(
        _ id: Int64, by actor: String, at now: Milliseconds
    ) throws(Refusal) -> AlarmView {
        guard var alarm = model.alarms[id] else {
            throw Refusal(.notFound, "there is no alarm \(id)")
        }
        guard alarm.acknowledged == nil else { return AlarmView(alarm) }
        alarm.acknowledged = now
        try commit([
            .alarm(alarm),
            log("alarm", "alarm \(id) acknowledged", device: alarm.deviceId, by: actor, at: now),
        ])
        return AlarmView(alarm)
    }
}

/// Whether `pattern`, which is not empty, is somewhere in `text`.
private func contains(_ text: [UInt8], _ pattern: [UInt8]) -> Bool {
    // A newline stands between two fields.
    guard pattern.count <= text.count, !pattern.contains(0x0A) else { return false }
    let (text, pattern) = (text.span, pattern.span)
    for start in 0...text.count - pattern.count where text[start] == pattern[0] {
        var length = 1
        while length < pattern.count, text[start + length] == pattern[length] { length += 1 }
        if length == pattern.count { return true }
    }
    return false
}
