// SPDX-License-Identifier: Apache-2.0

/// A moment, in whole seconds. In JSON it is a string of RFC 3339 in UTC.
public struct Timestamp: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The last second of the year 9999, which the text form can show.
    public static let limit: Int64 = 253_402_300_799

    /// Since 1970-01-01T00:00:00Z, without leap seconds; 0 to `limit`.
    public let unixSeconds: Int64

    /// What is out of range becomes the nearest end of it.
    public init(unixSeconds: Int64) { self.unixSeconds = min(max(unixSeconds, 0), Self.limit) }

    public static func < (left: Timestamp, right: Timestamp) -> Bool {
        left.unixSeconds < right.unixSeconds
    }
}

extension Timestamp {
    /// `2026-11-30T10:14:22Z`.
    public var description: String {
        let (year, month, day) = civil(unixSeconds / secondsOfDay)
        let second = unixSeconds % secondsOfDay
        return "\(digits(year, 4))-\(digits(month, 2))-\(digits(day, 2))T"
            + "\(digits(second / 3600, 2)):\(digits(second / 60 % 60, 2)):\(digits(second % 60, 2))Z"
    }

    /// RFC 3339 section 5.6. A fraction of a second is dropped; nil for what is no moment from 1970
    /// to 9999.
    public init?(rfc3339 text: String) {
        let text = Array(text.utf8)
        guard text.count >= 20, text[4] == UInt8(ascii: "-"), text[7] == UInt8(ascii: "-"),
            text[10] | 0x20 == UInt8(ascii: "t"), text[13] == UInt8(ascii: ":"),
            text[16] == UInt8(ascii: ":"), let year = number(text[..<4]),
            let month = number(text[5..<7]), let day = number(text[8..<10]),
            let hour = number(text[11..<13]), let minute = number(text[14..<16]),
            let second = number(text[17..<19]), let offset = offsetSeconds(text[19...])
        else { return nil }
        self.init(year, month, day, hour, minute, second, offset: offset)
    }

    /// The three forms of a date in HTTP (RFC 9110 section 5.6.7): the preferred one and the two of
    /// old. `now` tells the century of a year with two digits.
    public init?(httpDate text: String, now: Timestamp) {
        // The forms differ in separators and order, and in nothing else.
        let words = text.utf8.split { [0x20, UInt8(ascii: ","), UInt8(ascii: "-")].contains($0) }
            .map { ArraySlice($0) }
        let isOrdered = words.count == 6 && words[5].elementsEqual("GMT".utf8)
        guard isOrdered || words.count == 5 else { return nil }
        let monthWord = isOrdered ? words[2] : words[1]
        guard let day = number(isOrdered ? words[1] : words[2]),
            let month = monthNames.firstIndex(where: { monthWord.elementsEqual($0.utf8) }),
            var year = number(isOrdered ? words[3] : words[4])
        else { return nil }
        if isOrdered, words[3].count == 2 {
            // More than 50 years ahead means the century before.
            let thisYear = civil(now.unixSeconds / secondsOfDay).year
            year += thisYear / 100 * 100
            if year > thisYear + 50 { year -= 100 }
        }
        let time = words[isOrdered ? 4 : 3].split(separator: UInt8(ascii: ":"))
        guard time.count == 3, let hour = number(time[0]), let minute = number(time[1]),
            let second = number(time[2])
        else { return nil }
        self.init(year, Int64(month) + 1, day, hour, minute, second, offset: 0)
    }

    private init?(
        _ year: Int64, _ month: Int64, _ day: Int64, _ hour: Int64, _ minute: Int64,
        _ second: Int64, offset: Int64
    ) {
        // A leap second counts as the one after it.
        guard 1970...9999 ~= year, 1...12 ~= month, 1...daysOf(month, year) ~= day, hour < 24,
            minute < 60, second <= 60
        else { return nil }
        var days = daysBefore(year) - daysBefore(1970) + day - 1
        for earlier in 1..<month { days += daysOf(earlier, year) }
        let seconds = days * secondsOfDay + hour * 3600 + minute * 60 + second - offset
        guard 0...Self.limit ~= seconds else { return nil }
        unixSeconds = seconds
    }
}

extension Timestamp: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let moment = Timestamp(rfc3339: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "not a time of RFC 3339")
        }
        self = moment
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

private let secondsOfDay: Int64 = 86400
private let monthNames = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
]

private func digits(_ number: Int64, _ width: Int) -> String {
    let text = String(number)
    return String(repeating: "0", count: width - text.utf8.count) + text
}

/// 1 to 4 decimal digits.
private func number(_ text: ArraySlice<UInt8>) -> Int64? {
    guard 1...4 ~= text.count, text.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
    return text.reduce(0) { 10 * $0 + Int64($1 - 0x30) }
}

/// What follows the seconds: perhaps a fraction, then `Z` or `+hh:mm`.
private func offsetSeconds(_ text: ArraySlice<UInt8>) -> Int64? {
    var text = text
    if text.first == UInt8(ascii: ".") {
        let fraction = text.dropFirst().prefix { 0x30...0x39 ~= $0 }
        guard !fraction.isEmpty else { return nil }
        text = text[fraction.endIndex...]
    }
    guard let first = text.first else { return nil }
    if first | 0x20 == UInt8(ascii: "z") { return text.count == 1 ? 0 : nil }
    let start = text.startIndex
    guard first == UInt8(ascii: "+") || first == UInt8(ascii: "-"), text.count == 6,
        text[start + 3] == UInt8(ascii: ":"), let hours = number(text[(start + 1)..<(start + 3)]),
        let minutes = number(text[(start + 4)...]), hours < 24, minutes < 60
    else { return nil }
    return (first == UInt8(ascii: "-") ? -1 : 1) * (hours * 3600 + minutes * 60)
}

// MARK: the Gregorian calendar

private func isLeap(_ year: Int64) -> Bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

private func daysOf(_ month: Int64, _ year: Int64) -> Int64 {
    switch month {
    case 2: isLeap(year) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
}

/// Days from the first of January of the year 1 to that of `year`.
private func daysBefore(_ year: Int64) -> Int64 {
    let past = year - 1
    return 365 * past + past / 4 - past / 100 + past / 400
}

/// The date of a day counted from 1970-01-01.
private func civil(_ day: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let day = day + daysBefore(1970)
    // 146097 days are 400 years: the estimate is right or one too early or late.
    var year = day * 400 / 146_097 + 1
    while daysBefore(year) > day { year -= 1 }
    while daysBefore(year + 1) <= day { year += 1 }
    var rest = day - daysBefore(year)
    var month: Int64 = 1
    while rest >= daysOf(month, year) {
        rest -= daysOf(month, year)
        month += 1
    }
    return (year, month, rest + 1)
}
