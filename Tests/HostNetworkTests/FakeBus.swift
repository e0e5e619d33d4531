// SPDX-License-Identifier: Apache-2.0
// A bus of the test's own (dbus-daemon(1)), and services on it that answer as the test says.
import CSystemd
import Foundation
import HostProcess
import Synchronization

/// A message bus that ends with this value. nil where there is no dbus-daemon.
final class PrivateBus: @unchecked Sendable {
    let address: String
    private var daemon: ChildProcess
    private let directory: String

    init?() {
        let program = "/usr/bin/dbus-daemon"
        guard unsafe access(program, X_OK) == 0 else { return nil }
        var template = Array("/tmp/nexusguard-bus.XXXXXX".utf8CString)
        directory = unsafe String(cString: mkdtemp(&template))
        address = "unix:path=\(directory)/bus"
        let configuration = """
            <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
             "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
            <busconfig>
              <type>session</type>
              <listen>\(address)</listen>
              <auth>EXTERNAL</auth>
              <policy context="default">
                <allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/>
              </policy>
            </busconfig>
            """
        try? configuration.write(
            toFile: "\(directory)/bus.conf", atomically: true, encoding: .utf8)
        do throws(HostError) {
            daemon = try ChildProcess.start(
                program,
                arguments: [
                    "--config-file=\(directory)/bus.conf", "--nofork", "--nopidfile",
                ], environment: [])
        } catch {
            return nil
        }
        // It binds first and listens a moment later; at most 10 s.
        for _ in 0..<1000 where (try? Descriptor.connect("\(directory)/bus")) == nil {
            usleep(10_000)
        }
    }

    func stop() {
        daemon.kill()
        _ = daemon.wait(milliseconds: 10_000)
    }

    deinit {
        stop()
        try? FileManager.default.removeItem(atPath: directory)
    }
}

/// A service in a thread of its own. `answer` gets each call, and says what comes back.
final class FakeService: Sendable {
    /// One basic type, by its letter.
    enum Value: Sendable {
        case text(String)
        case path(String)
        case textVariant(String)
        case flag(Bool)
        case unsigned(UInt32)
    }
    struct Signal: Sendable {
        var path: String
        var interface: String
        var member: String
        var values: [Value]
    }
    struct Reply: Sendable {
        var values: [Value] = []
        var signals: [Signal] = []
    }

    /// "Member text text …" of each call.
    let calls = Mutex<[String]>([])
    private let signals = Mutex<[Signal]>([])
    private let isOver = Mutex(false)
    private let ended = DispatchSemaphore(value: 0)

    init(
        _ bus: PrivateBus, name: String,
        answer: @escaping @Sendable (_ call: String) -> Reply = { _ in Reply() }
    ) {
        let ready = DispatchSemaphore(value: 0)
        Thread { [self] in
            serve(bus.address, name, answer) { ready.signal() }
            ended.signal()
        }.start()
        ready.wait()
    }

    func stop() {
        isOver.withLock { $0 = true }
        ended.wait()
    }

    func emit(_ signal: Signal) { signals.withLock { $0.append(signal) } }

    private func serve(
        _ address: String, _ name: String, _ answer: (String) -> Reply, ready: () -> Void
    ) {
        var bus: OpaquePointer?
        unsafe sd_bus_new(&bus)
        unsafe sd_bus_set_address(bus, address)
        unsafe sd_bus_set_bus_client(bus, 1)
        unsafe sd_bus_start(bus)
        unsafe sd_bus_request_name(bus, name, 0)
        ready()
        while !isOver.withLock({ $0 }) {
            for signal in signals.withLock({
                let all = $0
                $0 = []
                return all
            }) {
                unsafe send(signal, bus)
            }
            var message: OpaquePointer?
            let status = unsafe sd_bus_process(bus, &message)
            if status < 0 { break }
            if let message = unsafe message {
                unsafe reply(to: message, bus, answer)
                unsafe sd_bus_message_unref(message)
            } else if status == 0 {
                unsafe sd_bus_wait(bus, 10_000)
            }
        }
        unsafe sd_bus_flush_close_unref(bus)
    }

    private func reply(
        to message: OpaquePointer, _ bus: OpaquePointer?, _ answer: (String) -> Reply
    ) {
        guard unsafe sd_bus_message_is_method_call(message, nil, nil) > 0 else { return }
        var words = [unsafe String(cString: sd_bus_message_get_member(message))]
        var text: UnsafePointer<CChar>?
        while unsafe sd_bus_message_read_basic(message, CChar(UInt8(ascii: "s")), &text) > 0 {
            words.append(unsafe String(cString: text!))
        }
        let call = words.joined(separator: " ")
        calls.withLock { $0.append(call) }
        let reply = answer(call)
        var made: OpaquePointer?
        unsafe sd_bus_message_new_method_return(message, &made)
        for value in reply.values { unsafe append(value, to: made) }
        unsafe sd_bus_send(bus, made, nil)
        unsafe sd_bus_message_unref(made)
        for signal in reply.signals { unsafe send(signal, bus) }
    }

    private func send(_ signal: Signal, _ bus: OpaquePointer?) {
        var made: OpaquePointer?
        unsafe sd_bus_message_new_signal(
            bus, &made, signal.path, signal.interface, signal.member)
        for value in signal.values { unsafe append(value, to: made) }
        unsafe sd_bus_send(bus, made, nil)
        unsafe sd_bus_flush(bus)
        unsafe sd_bus_message_unref(made)
    }

    private func append(_ value: Value, to message: OpaquePointer?) {
        func letter(_ character: Unicode.Scalar) -> CChar { CChar(UInt8(ascii: character)) }
        switch value {
        case .text(let text): unsafe sd_bus_message_append_basic(message, letter("s"), text)
        case .path(let text): unsafe sd_bus_message_append_basic(message, letter("o"), text)
        case .textVariant(let text):
            unsafe sd_bus_message_open_container(message, letter("v"), "s")
            unsafe sd_bus_message_append_basic(message, letter("s"), text)
            unsafe sd_bus_message_close_container(message)
        case .flag(let flag):
            var number: Int32 = flag ? 1 : 0
            unsafe sd_bus_message_append_basic(message, letter("b"), &number)
        case .unsigned(var number):
            unsafe sd_bus_message_append_basic(message, letter("u"), &number)
        }
    }
}
