// SPDX-License-Identifier: Apache-2.0
import CSystemd
import Glibc

/// A connection to the system's D-Bus (sd-bus(3)), for calls that wait a short time.
@safe struct SystemBus: ~Copyable {
    struct Failure: Error, Equatable {
        /// Positive.
        var errno: Int32
        /// The error's name on the bus, where a service answered with one.
        var name: String?
        var text: String
    }

    /// Microseconds. Everybody called is on this host.
    private static let timeout: UInt64 = 3_000_000

    let bus: OpaquePointer

    /// `address` as in the D-Bus specification ("Server Addresses"); nil: the system's.
    init(address: String?) throws(Failure) {
        var made: OpaquePointer?
        guard let address else {
            try Self.check(unsafe sd_bus_open_system(&made))
            unsafe bus = made!
            return
        }
        try Self.check(unsafe sd_bus_new(&made))
        var status = unsafe sd_bus_set_address(made, address)
        if status >= 0 { status = unsafe sd_bus_set_bus_client(made, 1) }
        if status >= 0 { status = unsafe sd_bus_start(made) }
        guard status >= 0 else {
            unsafe sd_bus_unref(made)
            throw Failure(status)
        }
        unsafe bus = made!
    }

    deinit { unsafe sd_bus_flush_close_unref(bus) }

    /// Calls `method`; `build` appends the arguments. The answer can be read from its beginning.
    @discardableResult
    func call(
        _ service: String, _ path: String, _ interface: String, _ method: String,
        _ build: (BusMessage) throws(Failure) -> Void = { (_) throws(Failure) in }
    ) throws(Failure) -> BusMessage {
        var made: OpaquePointer?
        try Self.check(
            unsafe sd_bus_message_new_method_call(bus, &made, service, path, interface, method))
        let message = unsafe BusMessage(owning: made!)
        try build(message)
        var answer: OpaquePointer?
        var error = unsafe sd_bus_error()
        let status = unsafe sd_bus_call(bus, message.pointer, Self.timeout, &error, &answer)
        defer { unsafe sd_bus_error_free(&error) }
        guard status >= 0 else {
            throw unsafe Failure(
                errno: -status, name: error.name.map { unsafe String(cString: $0) },
                text: error.message.map { unsafe String(cString: $0) } ?? textOfErrno(-status))
        }
        return unsafe BusMessage(owning: answer!)
    }

    static func check(_ status: Int32) throws(Failure) {
        guard status >= 0 else { throw Failure(status) }
    }
}

extension SystemBus.Failure {
    fileprivate init(_ status: Int32) {
        self.init(errno: -status, name: nil, text: textOfErrno(-status))
    }
}

/// One message; types by their letters in the D-Bus specification ("Type System").
@safe final class BusMessage {
    fileprivate let pointer: OpaquePointer

    init(owning pointer: OpaquePointer) { unsafe self.pointer = unsafe pointer }

    deinit { unsafe sd_bus_message_unref(pointer) }

    func isSignal(_ interface: String, _ member: String) -> Bool {
        unsafe sd_bus_message_is_signal(pointer, interface, member) > 0
    }

    func append(_ number: Int32) throws(SystemBus.Failure) {
        var number = number
        try SystemBus.check(unsafe sd_bus_message_append_basic(pointer, letter("i"), &number))
    }

    func append(_ flag: Bool) throws(SystemBus.Failure) {
        var number: Int32 = flag ? 1 : 0
        try SystemBus.check(unsafe sd_bus_message_append_basic(pointer, letter("b"), &number))
    }

    func append(_ text: String) throws(SystemBus.Failure) {
        let status = unsafe text.withCString { text in
            unsafe sd_bus_message_append_basic(pointer, letter("s"), text)
        }
        try SystemBus.check(status)
    }

    func append(_ bytes: [UInt8]) throws(SystemBus.Failure) {
        let status = unsafe bytes.withUnsafeBytes { bytes in
            unsafe sd_bus_message_append_array(
                pointer, letter("y"), bytes.baseAddress, bytes.count)
        }
        try SystemBus.check(status)
    }

    /// An array of structures.
    func appendArray<Element>(
        of contents: String, _ elements: [Element],
        _ append: (Element) throws(SystemBus.Failure) -> Void
    ) throws(SystemBus.Failure) {
        try SystemBus.check(
            unsafe sd_bus_message_open_container(pointer, letter("a"), "(\(contents))"))
        for element in elements {
            try SystemBus.check(
                unsafe sd_bus_message_open_container(pointer, letter("r"), contents))
            try append(element)
            try SystemBus.check(unsafe sd_bus_message_close_container(pointer))
        }
        try SystemBus.check(unsafe sd_bus_message_close_container(pointer))
    }

    func readNumber() throws(SystemBus.Failure) -> Int32 {
        var number: Int32 = 0
        try SystemBus.check(unsafe sd_bus_message_read_basic(pointer, letter("i"), &number))
        return number
    }

    /// A number of type "u".
    func readUnsigned() throws(SystemBus.Failure) -> UInt32 {
        var number: UInt32 = 0
        try SystemBus.check(unsafe sd_bus_message_read_basic(pointer, letter("u"), &number))
        return number
    }

    func readFlag() throws(SystemBus.Failure) -> Bool {
        var number: Int32 = 0
        try SystemBus.check(unsafe sd_bus_message_read_basic(pointer, letter("b"), &number))
        return number != 0
    }

    /// A string or, by `type` "o", an object path.
    func readText(type: Character = "s") throws(SystemBus.Failure) -> String {
        var text: UnsafePointer<CChar>?
        try SystemBus.check(unsafe sd_bus_message_read_basic(pointer, letter(type), &text))
        return unsafe String(cString: text!)
    }

    /// A string in a variant, as the value of a property is.
    func readTextInVariant() throws(SystemBus.Failure) -> String {
        try SystemBus.check(unsafe sd_bus_message_enter_container(pointer, letter("v"), "s"))
        return try readText()
    }

    func readBytes() throws(SystemBus.Failure) -> [UInt8] {
        var start: UnsafeRawPointer?
        var count = 0
        try SystemBus.check(
            unsafe sd_bus_message_read_array(pointer, letter("y"), &start, &count))
        guard let start = unsafe start else { return [] }
        return unsafe Array(UnsafeRawBufferPointer(start: start, count: count))
    }

    /// An array of structures in a variant, as the value of a property is.
    func readArrayInVariant<Element>(
        of contents: String, _ read: () throws(SystemBus.Failure) -> Element
    ) throws(SystemBus.Failure) -> [Element] {
        var elements: [Element] = []
        try SystemBus.check(
            unsafe sd_bus_message_enter_container(pointer, letter("v"), "a(\(contents))"))
        try SystemBus.check(
            unsafe sd_bus_message_enter_container(pointer, letter("a"), "(\(contents))"))
        while true {
            let status = unsafe sd_bus_message_enter_container(pointer, letter("r"), contents)
            try SystemBus.check(status)
            guard status > 0 else { break }
            elements.append(try read())
            try SystemBus.check(unsafe sd_bus_message_exit_container(pointer))
        }
        try SystemBus.check(unsafe sd_bus_message_exit_container(pointer))
        try SystemBus.check(unsafe sd_bus_message_exit_container(pointer))
        return elements
    }

    private func letter(_ character: Character) -> CChar { CChar(character.asciiValue!) }
}
