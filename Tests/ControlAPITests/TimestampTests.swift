// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import FoundationEssentials
import TestSupport
import Testing

@Suite struct TimestampTests {
    /// Against date(1): `date -u -d '2026-11-30T10:14:22Z' +%s`.
    @Test(arguments: [
        ("1970-01-01T00:00:00Z", Int64(0)), ("2000-02-29T12:00:00Z", 951_825_600),
        ("2026-11-30T10:14:22Z", 1_796_033_662), ("2100-03-01T00:00:00Z", 4_107_542_400),
        ("9999-12-31T23:59:59Z", 253_402_300_799),
    ])
    func known_moments(text: String, seconds: Int64) {
        #expect(Timestamp(rfc3339: text)?.unixSeconds == seconds)
        #expect(Timestamp(unixSeconds: seconds).description == text)
    }

    /// FoundationEssentials as the other implementation.
    @Test func random_moments_agree_with_foundation() throws {
        var random = SeededRandom(seed: 5)
        for _ in 0..<5000 {
            let seconds = Int64(random.below(Int(Timestamp.limit)))
            let text = Timestamp(unixSeconds: seconds).description
            hold(Timestamp(rfc3339: text)?.unixSeconds == seconds, text)
            let date = Date(timeIntervalSince1970: Double(seconds))
            hold(date.formatted(.iso8601) == text, text)
        }
    }

    @Test func offsets_fractions_and_leap_seconds() {
        let table: [(String, String)] = [
            ("2026-11-30T10:14:22.123456Z", "2026-11-30T10:14:22Z"),
            ("2026-11-30t10:14:22z", "2026-11-30T10:14:22Z"),
            ("2026-11-30T10:14:22+05:30", "2026-11-30T04:44:22Z"),
            ("2026-11-30T23:59:59-00:01", "2026-12-01T00:00:59Z"),
            ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
        ]
        for (text, expected) in table {
            #expect(Timestamp(rfc3339: text)?.description == expected, "\(text)")
        }
    }

    @Test func what_is_no_moment_is_refused() {
        let texts = [
            "", "2026-11-30", "2026-11-30T10:14:22", "2026-11-30 10:14:22Z", "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z",
            "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:61Z",
            "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00+1:00", "2026-01-01T00:00:00+24:00",
            "1969-12-31T23:59:59Z", "1970-01-01T00:00:00+00:01", "+026-01-01T00:00:00Z",
            "2026-01-01T00:00:00ZZ", "9999-12-31T23:59:59-00:01",
        ]
        for text in texts { #expect(Timestamp(rfc3339: text) == nil, "\(text)") }
    }

    /// The three spellings of RFC 9110 section 5.6.7.
    @Test func dates_of_http() {
        let now = Timestamp(rfc3339: "2026-11-30T10:00:00Z")!
        let texts = [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ]
        for text in texts {
            let date = Timestamp(httpDate: text, now: now)
            #expect(date?.description == "1994-11-06T08:49:37Z", "\(text)")
        }
        #expect(
            Timestamp(httpDate: "Sunday, 06-Nov-76 08:49:37 GMT", now: now)?.description
                == "2076-11-06T08:49:37Z")
        #expect(
            Timestamp(httpDate: "Sunday, 06-Nov-77 08:49:37 GMT", now: now)?.description
                == "1977-11-06T08:49:37Z")
    }
}
