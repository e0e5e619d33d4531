// SPDX-License-Identifier: Apache-2.0

/// Ids of devices by name, whatever its case; of equals by id. Kept in order with each change: that
/// one device is enrolled sorts no thousands.
struct DeviceOrder: Sendable {
    private struct Entry: Comparable {
        let name: [UInt8]
        let id: String

        init(_ device: Device) {
            name = Array(device.name.lowercased().utf8)
            id = device.id
        }

        static func < (left: Entry, right: Entry) -> Bool {
            left.name == right.name
                ? left.id < right.id : left.name.lexicographicallyPrecedes(right.name)
        }
    }

    private var entries: [Entry]

    init(_ devices: some Sequence<Device>) { entries = devices.map { Entry($0) }.sorted() }

    var count: Int { entries.count }
    /// `index` is below `count`.
    subscript(_ index: Int) -> String { entries[index].id }

    mutating func insert(_ device: Device) {
        let entry = Entry(device)
        entries.insert(entry, at: place(of: entry))
    }

    /// `device` as it was when it was inserted.
    mutating func remove(_ device: Device) {
        let entry = Entry(device)
        let index = place(of: entry)
        if index < entries.count, entries[index] == entry { entries.remove(at: index) }
    }

    /// Of the first that does not come before `entry`.
    private func place(of entry: Entry) -> Int {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle] < entry { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
