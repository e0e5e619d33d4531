// SPDX-License-Identifier: Apache-2.0
import Crypto
import Testing
import WireGuard

@testable import Hub

@Suite struct DeviceOrderTests {
    private func device(_ name: String) -> Device {
        Device(
            id: Random.uuid(), hwid: "", name: name,
            publicKey: PublicKey(bytes: InlineArray(repeating: 1)), tokenId: "", created: 0,
            provisioned: 0)
    }

    private func ids(_ order: DeviceOrder) -> [String] { (0..<order.count).map { order[$0] } }

    /// However it came about, it is the order of a list that is sorted as a whole.
    @Test func whatIsInsertedAndRemovedLeavesTheOrderOfSorting() {
        var generator = SystemRandomNumberGenerator()
        var present: [Device] = []
        var order = DeviceOrder([Device]())
        for _ in 0..<600 {
            if Int.random(in: 0..<3, using: &generator) == 0,
                let index = present.indices.randomElement(using: &generator)
            {
                order.remove(present.remove(at: index))
            } else {
                let made = device(["gate", "Gate", "ä", "b", ""].randomElement(using: &generator)!)
                present.append(made)
                order.insert(made)
            }
        }
        #expect(present.count > 50)
        #expect(ids(order) == ids(DeviceOrder(present.shuffled(using: &generator))))
        order.remove(device("gate"))
        #expect(order.count == present.count, "one that is not there")
    }

    @Test func listsFollowNamesThatChange() throws {
        let test = try TestHub()
        let devices = try (1...5).map { try test.enrol($0) }
        func listed() throws -> [String] {
            try test.operate("GET", "/devices").decoded(Page<DeviceView>.self).items.map(\.id)
        }
        #expect(try listed() == devices.map(\.id).sorted(), "of one name: by id")
        let last = try #require(try listed().last)
        #expect(test.operate("PATCH", "/devices/\(last)", ["name": "A"]).status == 200)
        #expect(try listed().first == last)
        #expect(test.operate("PATCH", "/devices/\(last)", ["name": "z"]).status == 200)
        #expect(try listed().last == last)
        #expect(test.operate("POST", "/devices/\(last)/revoke").status == 204)
        #expect(test.operate("DELETE", "/devices/\(last)").status == 204)
        #expect(try listed().count == 4)
        let page = try test.operate("GET", "/devices", query: ["offset": "1", "limit": "2"])
            .decoded(Page<DeviceView>.self)
        #expect(page.total == 4)
        #expect(page.items.map(\.id) == Array(try listed()[1...2]))
    }
}
