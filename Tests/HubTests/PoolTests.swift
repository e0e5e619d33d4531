// SPDX-License-Identifier: Apache-2.0
import Testing
import WireGuard

@testable import Hub

struct PoolTests {
    @Test func theLowestFreeAddressIsNext() {
        var pool = AddressPool(Prefix("10.0.0.0/29")!)
        #expect(pool.hubAddress == IPAddress("10.0.0.1"))
        var taken: [String] = []
        while let address = pool.free {
            taken.append("\(address)")
            pool.take(address)
        }
        #expect(taken == ["10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6"])
        pool.release(IPAddress("10.0.0.5")!)
        pool.release(IPAddress("10.0.0.3")!)
        #expect(pool.free == IPAddress("10.0.0.3"))
    }

    @Test func hubNetworkAndBroadcastAreNeverGiven() {
        var pool = AddressPool(Prefix("10.0.0.0/30")!)
        #expect(pool.free == IPAddress("10.0.0.2"))
        pool.take(IPAddress("10.0.0.2")!)
        #expect(pool.free == nil)
        // What is no device's cannot be released into the pool.
        pool.release(IPAddress("10.0.0.1")!)
        pool.release(IPAddress("10.0.0.3")!)
        pool.release(IPAddress("192.0.2.2")!)
        #expect(pool.free == nil)
        for small in ["10.0.0.0/31", "10.0.0.0/32", "fd00::/127", "fd00::/128"] {
            #expect(AddressPool(Prefix(small)!).hubAddress == nil)
            #expect(AddressPool(Prefix(small)!).free == nil)
        }
    }

    @Test func anIPv6PoolOfAnySizeHasRoom() {
        for (text, first) in [
            ("fd00::/64", "fd00::2"), ("fd00::/16", "fd00::2"), ("::/0", "::2"),
            ("fd00::1:0/112", "fd00::1:2"), ("fd00::4/126", "fd00::6"),
        ] {
            let pool = AddressPool(Prefix(text)!)
            #expect(pool.free == IPAddress(first), "\(text)")
        }
        #expect(AddressPool(Prefix("0.0.0.0/0")!).free == IPAddress("0.0.0.2"))
    }

    /// Against the slow and obvious: a sorted list.
    @Test func randomOrderGivesWhatAListWould() {
        var generator = SystemRandomNumberGenerator()
        var pool = AddressPool(Prefix("10.0.0.0/26")!)
        var free = (2...62).map { IPAddress.v4(0x0A00_0000 + UInt32($0)) }
        var taken: [IPAddress] = []
        for _ in 0..<1000 {
            if Bool.random(using: &generator), let address = pool.free {
                #expect(address == free.first)
                free.removeFirst()
                pool.take(address)
                taken.append(address)
            } else if let address = taken.randomElement(using: &generator) {
                taken.removeAll { $0 == address }
                pool.release(address)
                free.append(address)
                free.sort { number($0) < number($1) }
            }
            #expect(pool.free == free.first)
        }
    }

    private func number(_ address: IPAddress) -> UInt32 {
        if case .v4(let bits) = address { bits } else { 0 }
    }

    @Test func prefixesOverlapWhenOneHoldsTheOther() {
        for (left, right, expected) in [
            ("10.0.0.0/8", "10.1.0.0/16", true), ("10.0.0.0/16", "10.1.0.0/16", false),
            ("0.0.0.0/0", "192.0.2.1/32", true), ("fd00::/8", "10.0.0.0/8", false),
            ("fd00::/64", "fd00::1/128", true),
        ] {
            #expect(Prefix(left)!.overlaps(Prefix(right)!) == expected)
            #expect(Prefix(right)!.overlaps(Prefix(left)!) == expected)
        }
    }
}

struct SettingsTests {
    @Test func everySettingReadsBackWhatItPrints() {
        var settings = HubSettings()
        for (name, value) in [
            ("endpoint", "[2001:db8::1]:51820"), ("listenPort", "1234"),
            ("pools", "10.0.0.0/16,fd00::/64"), ("dns", "10.0.0.1"), ("routes", "0.0.0.0/0,::/0"),
            ("mtu", "1380"), ("keepalive", ""), ("heartbeatSeconds", "5"),
            ("allowsHubKeys", "true"), ("masquerades", "true"),
            ("nextPin", "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="),
            ("reservedPorts", "22,80"),
        ] {
            #expect(settings.set(name, value) == nil, "\(name)")
            #expect(settings.text(name) == value)
        }
        let rows = Dictionary(uniqueKeysWithValues: settings.rows.map { ($0.name, $0.value) })
        #expect(Set(rows.keys) == Set(HubSettings.names))
        #expect(HubSettings(rows: rows) == settings)
    }

    @Test func whatIsNoValueIsRefusedAndChangesNothing() {
        for (name, value) in [
            ("endpoint", "vpn.example.org"), ("endpoint", "vpn.example.org:0"),
            ("endpoint", "a b:1"), ("endpoint", "host:+1"), ("listenPort", "0"),
            ("listenPort", "70000"), ("pools", "10.0.0.0/31"), ("pools", "10.0.0.0/8,10.1.0.0/16"),
            ("pools", "x"), ("mtu", "100"), ("keepalive", "0"), ("heartbeatSeconds", "4"),
            ("allowsHubKeys", "yes"), ("nextPin", "sha256//x"), ("nextPin", "AAAA"),
            ("reservedPorts", "x"), ("nonsense", "1"),
        ] {
            var settings = HubSettings()
            #expect(settings.set(name, value) != nil, "\(name)=\(value)")
            #expect(settings == HubSettings())
        }
    }
}
