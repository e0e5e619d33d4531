// SPDX-License-Identifier: Apache-2.0
import HostProcess
import Testing

@Suite struct UniversalTimeTests {
    @Test(arguments: [
        (0, "1970-01-01T00:00:00.000Z"), (1, "1970-01-01T00:00:00.001Z"),
        (-1, "1969-12-31T23:59:59.999Z"), (951_782_399_999, "2000-02-28T23:59:59.999Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        (1_767_225_599_120, "2025-12-31T23:59:59.120Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ]) func textAndMomentStandForEachOther(milliseconds: Int64, text: String) {
        #expect(UniversalTime.text(milliseconds) == text)
        #expect(UniversalTime.parse(text) == milliseconds)
    }

    @Test(arguments: [
        ("2000-02-29", 951_782_400_000), ("2000-02-29T00:00", 951_782_400_000),
        ("2000-02-29 00:00:00", 951_782_400_000), ("2000-02-29T00:00:00", 951_782_400_000),
        ("2000-02-29T01:00:00+01:00", 951_782_400_000),
        ("2000-02-28T22:30:00-01:30", 951_782_400_000),
        ("2000-02-29T00:00:00.1234567Z", 951_782_400_123),
        ("2000-02-29T00:00:00.5Z", 951_782_400_500),
    ]) func otherSpellingsAreRead(text: String, milliseconds: Int64) {
        #expect(UniversalTime.parse(text) == milliseconds)
    }

    @Test(arguments: [
        "", "x", "2000", "2000-02", "2000-13-01", "2000-02-30", "2001-02-29", "2000-02-29T",
        "2000-02-29T25:00", "2000-02-29T00:00:00x", "2000-02-29T00:00:00.", "10m",
        "2000-02-29T00:00:00Zx",
    ]) func whatIsNoMomentIsRefused(text: String) {
        #expect(UniversalTime.parse(text) == nil)
    }
}
