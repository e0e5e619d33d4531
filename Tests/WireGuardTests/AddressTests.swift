// SPDX-License-Identifier: Apache-2.0
import Glibc
import TestSupport
import Testing

@testable import WireGuard

/// inet_pton(3) and inet_ntop(3) of the C library: an independent opinion.
private enum Libc {
    static func parse(_ text: String) -> IPAddress? {
        var bytes = [UInt8](repeating: 0, count: 16)
        let family = text.contains(":") ? AF_INET6 : AF_INET
        // Unsafe: the buffer is as long as the longer of the two addresses.
        guard unsafe inet_pton(family, text, &bytes) == 1 else { return nil }
        func word(_ range: Range<Int>) -> UInt64 {
            range.reduce(0) { $0 << 8 | UInt64(bytes[$1]) }
        }
        return family == AF_INET
            ? .v4(UInt32(word(0..<4))) : .v6(high: word(0..<8), low: word(8..<16))
    }

    static func print(_ address: IPAddress) -> String {
        var bytes: [UInt8] = []
        var family = AF_INET
        switch address {
        case .v4(let bits):
            for shift in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: bits >> shift)) }
        case .v6(let high, let low):
            family = AF_INET6
            for word in [high, low] {
                for shift in [56, 48, 40, 32, 24, 16, 8, 0] {
                    bytes.append(UInt8(truncatingIfNeeded: word >> shift))
                }
            }
        }
        var text = [CChar](repeating: 0, count: 64)
        // Unsafe: 64 exceeds INET6_ADDRSTRLEN, 46.
        _ = unsafe inet_ntop(family, bytes, &text, 64)
        return String(
            decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

@Suite struct IPAddressTests {
    /// RFC 5952 sections 4 and 5, and RFC 4291 section 2.2.
    @Test(arguments: [
        ("2001:0DB8:0:0:0:0:0:1", "2001:db8::1"), ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
        ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"), ("2001:0:0:1:0:0:0:1", "2001:0:0:1::1"),
        ("::", "::"), ("0:0:0:0:0:0:0:1", "::1"), ("1:0:0:0:0:0:0:0", "1::"),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.1"), ("::FFFF:C000:201", "::ffff:192.0.2.1"),
        ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"), ("::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"),
        ("64:ff9b::192.0.2.33", "64:ff9b::c000:221"), ("192.0.2.1", "192.0.2.1"),
        ("0.0.0.0", "0.0.0.0"), ("255.255.255.255", "255.255.255.255"),
    ]) func an_address_prints_in_the_recommended_form(text: String, printed: String) {
        #expect(IPAddress(text)?.description == printed)
    }

    @Test(arguments: [
        "", ".", "1.2.3", "1.2.3.4.5", "1.2.3.", ".1.2.3", "1..2.3", "256.1.1.1", "1.2.3.4 ",
        "+1.2.3.4", "0x1.2.3.4", "1.2.3.999999999999", ":", ":::", "1::2::3", "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9", "::1:2:3:4:5:6:7:8", "12345::", "g::", "1:", ":1", "1.2.3.4::",
        "::1.2.3", "1:2:3:4:5:6:7:1.2.3.4", "::1.2.3.4:5", "fe80::1%lo", "[::1]",
        "::ffff:1.2.3.400",
        "localhost",
    ]) func what_is_no_address_is_refused(text: String) { #expect(IPAddress(text) == nil) }

    @Test func random_addresses_read_and_print_as_the_c_library_does() {
        var random = SeededRandom(seed: 2)
        for _ in 0..<50_000 {
            let address = random.address()
            let text = address.description
            hold(IPAddress(text) == address, text)
            // inet_ntop writes ::/96 with dots; RFC 5952 section 5 only well-known prefixes.
            if case .v6(0, let low) = address, low >> 32 == 0 { continue }
            hold(text == Libc.print(address), text)
        }
    }

    @Test func mutated_texts_are_accepted_exactly_when_the_c_library_does() {
        var random = SeededRandom(seed: 3)
        let alphabet = [UInt8]("0123456789abcfF:.%/[".utf8)
        var accepted = 0
        for _ in 0..<100_000 {
            var text = [UInt8](random.address().description.utf8)
            for _ in 0...random.below(2) {
                let position = random.below(text.count)
                switch random.below(3) {
                case 0: text[position] = alphabet.randomElement(using: &random)!
                case 1: text.insert(alphabet.randomElement(using: &random)!, at: position)
                default: if text.count > 1 { text.remove(at: position) }
                }
            }
            let string = String(decoding: text, as: UTF8.self)
            let address = IPAddress(string)
            hold(address == Libc.parse(string), string)
            accepted += address == nil ? 0 : 1
        }
        #expect(accepted > 10_000)
    }
}

@Suite struct PrefixTests {
    @Test(arguments: [
        ("10.0.0.1/24", "10.0.0.0/24"), ("10.0.0.1", "10.0.0.1/32"), ("1.2.3.4/0", "0.0.0.0/0"),
        ("2001:db8::1/64", "2001:db8::/64"), ("2001:db8::1", "2001:db8::1/128"), ("::1/0", "::/0"),
        ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/65", "ffff:ffff:ffff:ffff:8000::/65"),
        ("ffff:ffff:ffff:ffff:ffff::/63", "ffff:ffff:ffff:fffe::/63"),
        ("::ffff:10.0.0.1/128", "::ffff:10.0.0.1/128"),
        ("255.255.255.255/31", "255.255.255.254/31"),
    ]) func c19_host_bits_are_cleared_on_the_way_in(text: String, printed: String) {
        #expect(Prefix(text)?.description == printed)
        #expect(Prefix(text) == Prefix(printed))
    }

    @Test(arguments: [
        "010.0.0.1/32", "10.0.0.01", "example.com", "example.com/32", "fe80::1%lo/128",
        "fe80::1%1", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/+8",
        "10.0.0.0/08", "10.0.0.0/8/8", "/8", "", "10.0.0.0/ 8", "10.0.0.0/255.0.0.0",
        "10.0.0.0/18446744073709551617",
    ]) func c20_octal_names_zones_and_bad_lengths_are_refused(text: String) {
        #expect(Prefix(text) == nil)
    }

    @Test func masking_keeps_exactly_the_first_bits() {
        var random = SeededRandom(seed: 4)
        for _ in 0..<20_000 {
            let address = random.address()
            let length = UInt8(random.below(Int(address.bitWidth) + 1))
            let prefix = Prefix(address: address, length: length)!
            hold(Prefix(prefix.description) == prefix, prefix.description)
            for bit in 0..<address.bitWidth {
                let expected = bit < length && isSet(bit, in: address)
                hold(isSet(bit, in: prefix.address) == expected, "\(prefix), bit \(bit)")
            }
        }
        #expect(Prefix(address: .v4(0), length: 33) == nil)
        #expect(Prefix(address: .v6(high: 0, low: 0), length: 129) == nil)
    }

    private func isSet(_ bit: UInt8, in address: IPAddress) -> Bool {
        switch address {
        case .v4(let bits): bits >> (31 - UInt32(bit)) & 1 == 1
        case .v6(let high, let low):
            (bit < 64 ? high >> (63 - UInt64(bit)) : low >> (127 - UInt64(bit))) & 1 == 1
        }
    }
}

@Suite struct EndpointTests {
    @Test(arguments: [
        ("192.0.2.1:51820", "192.0.2.1:51820"), ("[2001:db8::1]:51820", "[2001:db8::1]:51820"),
        ("192.0.2.1:0", "192.0.2.1:0"), ("[2001:DB8:0::1]:00080", "[2001:db8::1]:80"),
        ("[::ffff:192.0.2.1]:1", "[::ffff:192.0.2.1]:1"),
    ]) func an_endpoint_reads_and_prints(text: String, printed: String) {
        #expect(Endpoint(text)?.description == printed)
    }

    @Test func c16_without_brackets_the_last_colon_is_before_the_port() {
        let endpoint = Endpoint("2001:db8::1:51820")
        #expect(endpoint == Endpoint(address: IPAddress("2001:db8::1")!, port: 51820))
        #expect(endpoint?.description == "[2001:db8::1]:51820")
        #expect(Endpoint("fe80::1%eth0:51820")?.description == "[fe80::1%eth0]:51820")
        #expect(Endpoint("::1:5")?.description == "[::1]:5")
    }

    @Test func c17_the_zone_is_kept_as_number_or_name() {
        let address = IPAddress("fe80::1")!
        let byName = Endpoint("[fe80::1%eth0]:51820")
        #expect(byName == Endpoint(address: address, port: 51820, zone: .name("eth0")))
        #expect(byName?.description == "[fe80::1%eth0]:51820")
        let byNumber = Endpoint("[fe80::1%3]:51820")
        #expect(byNumber == Endpoint(address: address, port: 51820, zone: .index(3)))
        #expect(byNumber?.description == "[fe80::1%3]:51820")
        let longest = "[fe80::1%eth0.100-abc_de]:1"
        #expect(Endpoint(longest)?.description == longest)
    }

    @Test func c18_what_is_printed_is_read_back_the_same() {
        var random = SeededRandom(seed: 5)
        for _ in 0..<20_000 {
            var zone: Endpoint.Zone?
            let address = random.address()
            if case .v6 = address, random.oneIn(3) {
                zone = random.oneIn(2) ? .index(UInt32(1 + random.below(1000))) : .name("wg-lan0")
            }
            let port = UInt16(truncatingIfNeeded: random.next())
            let endpoint = Endpoint(address: address, port: port, zone: zone)!
            hold(Endpoint(endpoint.description) == endpoint, endpoint.description)
        }
    }

    @Test(arguments: [
        "", ":", "192.0.2.1", "192.0.2.1:", ":51820", "[::1]", "[::1]:", "[]:1", "[::1:1", "::1]:1",
        "192.0.2.1:65536", "192.0.2.1:70000", "192.0.2.1:-1", "192.0.2.1:+1", "192.0.2.1:0x50",
        "192.0.2.1:domain", "192.0.2.1: 1", "[192.0.2.1]:1", "example.com:1", "192.0.2.1%eth0:1",
        "[fe80::1%]:1", "[fe80::1%0]:1", "[fe80::1%4294967296]:1x", "[fe80::1%a/b]:1",
        "[fe80::1%sixteen-letters-]:1", "[fe80::1%a%b]:1", "[fe80::1%a b]:1", "[[::1]]:1",
        "010.0.0.1:1",
    ]) func what_is_no_endpoint_is_refused(text: String) { #expect(Endpoint(text) == nil) }

    @Test func link_local_is_fe80_slash_10() {
        for (text, expected) in [
            ("fe80::", true), ("febf:ffff::", true), ("fec0::", false), ("fe7f::", false),
            ("::1", false), ("169.254.0.1", false),
        ] { #expect(IPAddress(text)!.isLinkLocal == expected) }
    }
}
