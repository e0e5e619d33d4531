// SPDX-License-Identifier: Apache-2.0

/// A name for a tunnel's link: 1 to 15 of `a-z A-Z 0-9 _ = + . -`, what wg-quick(8) takes from the
/// name of a file; not `.` or `..`, which Linux refuses (dev_valid_name of net/core/dev.c).
public struct InterfaceName: Hashable, Sendable, CustomStringConvertible {
    public let description: String

    public init?(_ text: String) {
        guard 1...15 ~= text.utf8.count, text != ".", text != "..",
            text.utf8.allSatisfy(Self.isAllowed)
        else { return nil }
        description = text
    }

    private static func isAllowed(_ character: UInt8) -> Bool {
        switch character {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        case UInt8(ascii: "_"), UInt8(ascii: "="), UInt8(ascii: "+"), UInt8(ascii: "."),
            UInt8(ascii: "-"):
            true
        default: false
        }
    }
}
